"""The raw material of every generated text: word lists written by hand for this project.

Lists are plain strings split at blanks, so that they stay easy to read and to extend.
"""

FIRST_NAMES = """
Anna Ben Clara David Elena Felix Grace Hugo Iris Jack Karin Liam Mara Noah Olga Paul Quinn Rosa Sam Tara Uma Victor
Wanda Xavier Yara Zoe Adam Alice Amir Aisha Boris Bella Carl Chloe Dara Diego Emma Erik Fatima Finn Gina Gustav Hana
Henry Ida Ivan Jana Jonas Kira Kofi Lena Leo Lucia Marco Maya Mina Nadia Nils Nora Omar Oscar Petra Pia Rafael Ravi
Ruth Sara Simon Sofia Stefan Theo Tina Tom Vera Walter Yuki Zara Arjun Astrid Bruno Carmen Chen Daria Dmitri Ella Esther
Farah Frida Gabriel Greta Hassan Helen Ines Isaac Jamal Julia Kenji Laura Lars Linda Luis Magda Malik Martha Mei Milan
Miriam Nina Otto Pablo Priya Rita Robin Samir Selma Tariq Ursula Vito Wei Yusuf Zelda José Zoë Jürgen Łukasz Søren
Chloé Inés Björn Ağa René Maëlle Peter Mary John Kate Mark Lucy Dan Eva Max Amy Ron Sue Joe Ann Ted Kim Lee Roy Fay
""".split()

SURNAME_HEADS = """
Ash Black Bright Brook Burn Cart Clay Cole Cross Dale East Fair Field Ford Fox Glen Gold Gray Green Hall Hart Hill Holm
Lake Lamb Long Marsh Mill Moor North Oak Park Penn Red Rose Sand Shaw Snow South Stan Stone Storm Swan Thorn Wall Ward
West White Wind Winter Wood York
""".split()
SURNAME_TAILS = "ard berg bury by dale er field ford gate ham ley lock lund man mann more sen son stead ton way well worth".split()
SURNAMES = """
Silva Santos Okafor Mensah Tanaka Sato Kim Park Nguyen Tran Singh Patel Khan Ali Haddad Cohen Novak Kowalski Petrov Ivanova
Rossi Bianchi Garcia Lopez Martin Dubois Moreau Weber Fischer Koch Berg Lind Dahl Virtanen Nagy Popescu Yilmaz Demir Costa
Reyes Cruz Diaz Vega Luna Adams Baker Carter Evans Gibson Hughes Jones King Lewis Morris Owen Price Quinn Reed Scott Turner
Vance Walsh Young
""".split()

CITIES = """
Oslo Paris Rome Berlin Madrid Lisbon Vienna Prague Warsaw Athens Dublin London Helsinki Stockholm Copenhagen Budapest Zurich
Geneva Milan Turin Naples Lyon Nice Porto Seville Hamburg Munich Cologne Bremen Leeds York Bath Bergen Malmo Tartu Riga
Vilnius Krakow Gdansk Sofia Varna Istanbul Ankara Cairo Tunis Rabat Dakar Accra Lagos Nairobi Kampala Lima Quito Bogota
Santiago Montevideo Havana Boston Chicago Denver Austin Seattle Portland Dallas Miami Atlanta Toronto Ottawa Montreal
Vancouver Sydney Perth Auckland Tokyo Osaka Kyoto Seoul Busan Taipei Hanoi Bangkok Manila Jakarta Delhi Mumbai Pune
Colombo Dhaka Doha Dubai Amman Beirut Tbilisi Baku
""".split()

CAPITALS = {
    "Norway": "Oslo", "France": "Paris", "Italy": "Rome", "Germany": "Berlin", "Spain": "Madrid",
    "Portugal": "Lisbon", "Austria": "Vienna", "Poland": "Warsaw", "Greece": "Athens",
    "Ireland": "Dublin", "Finland": "Helsinki", "Sweden": "Stockholm", "Denmark": "Copenhagen",
    "Hungary": "Budapest", "Latvia": "Riga", "Lithuania": "Vilnius", "Bulgaria": "Sofia",
    "Turkey": "Ankara", "Egypt": "Cairo", "Tunisia": "Tunis", "Morocco": "Rabat",
    "Senegal": "Dakar", "Ghana": "Accra", "Kenya": "Nairobi", "Uganda": "Kampala", "Peru": "Lima",
    "Ecuador": "Quito", "Colombia": "Bogota", "Chile": "Santiago", "Uruguay": "Montevideo",
    "Cuba": "Havana", "Canada": "Ottawa", "Japan": "Tokyo", "Vietnam": "Hanoi",
    "Thailand": "Bangkok", "Qatar": "Doha", "Jordan": "Amman", "Lebanon": "Beirut",
    "Georgia": "Tbilisi",
}  # fmt: skip
COUNTRIES = [*CAPITALS, "Brazil", "India", "Mexico", "Iceland", "Nepal", "Belgium", "Croatia"]

STREET_HEADS = "Oak Maple Cedar Elm Pine River Lake Hill Park Church Mill Station Garden Bridge High King Queen Market School Spring Sunset North".split()
STREET_TAILS = "Street Road Avenue Lane Drive Way Square Court".split()

COLORS = "red blue green yellow orange purple pink brown black white gray silver gold teal navy olive violet cyan beige maroon".split()
ANIMALS = """
cat dog horse cow sheep goat pig hen duck goose rabbit mouse fox wolf bear lion tiger zebra camel donkey owl eagle crow robin
parrot frog turtle snake lizard whale dolphin seal otter beaver badger deer moose bee ant spider butterfly salmon shark
hamster squirrel hedgehog penguin giraffe elephant monkey kangaroo
""".split()
FRUITS = "apple banana cherry grape lemon lime mango melon orange papaya peach pear plum fig kiwi apricot raspberry strawberry blueberry coconut".split()
FOODS = """
bread butter cheese rice pasta soup salad pizza stew curry omelet pancake noodle sandwich pie cake cookie yogurt honey jam
bean lentil carrot onion garlic potato tomato pepper spinach cabbage mushroom egg milk flour sugar salt oil basil
""".split()
DRINKS = "water tea coffee milk juice lemonade cocoa soda cider".split()
SPORTS = "tennis soccer chess rowing skiing running cycling swimming boxing golf hockey judo sailing climbing basketball rugby".split()
JOBS = """
doctor nurse teacher farmer baker pilot driver lawyer engineer painter writer singer chef gardener plumber carpenter dentist
librarian tailor waiter actor architect chemist clerk designer editor fisherman guide journalist mechanic miner musician
officer pharmacist photographer programmer scientist soldier student surgeon
""".split()
HOBBIES = "reading painting hiking cooking dancing singing fishing gardening photography chess knitting cycling swimming gaming travel music yoga running".split()
INSTRUMENTS = "piano violin guitar flute drum trumpet cello harp organ clarinet".split()
VEHICLES = (
    "car bus truck van bicycle train tram boat ship plane motorcycle scooter tractor taxi".split()
)
THINGS = """
lamp chair table desk bed sofa shelf clock mirror carpet curtain pillow blanket kettle pot pan plate bowl cup glass fork knife
spoon bottle basket box bag suitcase backpack wallet watch ring scarf hat coat jacket shirt sweater dress skirt shoe boot sock
glove belt umbrella tent rope hammer saw drill ladder bucket brush broom pen pencil notebook book map camera phone laptop
tablet keyboard mouse screen printer speaker radio battery charger cable candle key lock door window wheel engine ball
racket bike helmet drone puzzle doll kite guitar
""".split()
ADJECTIVES = """
small big old new red blue green quiet loud happy sad fast slow warm cold bright dark soft hard heavy light clean dirty strong
weak young tall short long wide narrow deep round flat sharp smooth rough sweet bitter fresh dry wet rich poor brave shy kind
proud calm angry tired hungry lazy busy clever funny gentle golden silver wooden broken empty full hidden lost modern ancient
simple strange lovely tiny huge
""".split()
PLACES = """
garden park forest river lake beach mountain village town city market school library museum station harbor bridge kitchen
house farm castle church office shop hotel field valley island street tower theater hospital factory cafe
""".split()
ABSTRACT = """
time hope love peace light shadow night morning winter summer spring autumn storm silence dream memory secret journey story
promise truth power wonder song voice fire rain snow wind star moon sun sky earth sea stone road home heart
""".split()
PAST_VERBS = "slept waited walked ran stood sat danced sang played worked rested hid jumped fell stayed laughed ate lived stopped arrived".split()
TRANSITIVE_PAST = "saw found bought sold painted lost carried cleaned opened closed broke fixed built liked moved made took gave hid kept".split()
ADVERBS = "slowly quickly quietly happily sadly often never always soon again today yesterday together alone early late".split()
WEATHER = "sunny cloudy rainy windy snowy foggy stormy clear".split()
WEEKDAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
MONTHS = (
    "January February March April May June July August September October November December".split()
)
GENRES = "drama comedy fantasy mystery romance thriller history poetry horror adventure biography science".split()
MUSIC_GENRES = "jazz rock pop folk blues classical metal soul reggae techno".split()
SUBJECTS = "math physics chemistry biology history geography music art English French Spanish German economics philosophy".split()
LANGUAGES = "English French German Spanish Italian Portuguese Polish Turkish Arabic Hindi Chinese Japanese Korean Swahili Dutch Swedish".split()
BRANDS = "Acorn Bluebird Comet Delta Evergreen Falcon Globe Horizon Juniper Keystone Lumen Meridian Nimbus Orbit Pioneer Quartz Ridge Summit Tundra Vertex Willow Zenith".split()
COMPANY_TAILS = "Ltd Inc Group Labs Works Partners Foods Systems Media Studio Energy Bank".split()
DEPARTMENTS = (
    "sales marketing finance support research legal design operations engineering security".split()
)
MATERIALS = "wood steel glass cotton wool leather plastic paper silk stone copper rubber".split()
CURRENCIES = "USD EUR GBP JPY CHF SEK NOK INR BRL CAD".split()
TAGS = "new sale popular limited urgent draft public private home work travel food health sport tech news fun local beta vip".split()
GREEK = "alpha beta gamma delta epsilon zeta theta kappa lambda sigma omega".split()
DOMAINS = "example.com example.org example.net mail.example shop.example".split()
GOOD = "great wonderful excellent lovely perfect delicious friendly amazing helpful superb".split()
BAD = "terrible awful bad horrible rude dirty broken boring useless cold".split()

TEXT_IN_MANY_SCRIPTS = [
    "café", "naïve", "jalapeño", "straße", "smörgås", "çay", "Привет", "мир", "Γεια", "שלום", "سلام", "नमस्ते",
    "你好", "世界", "日本", "東京", "こんにちは", "한국", "서울", "🙂", "🎉", "🚀", "❤️", "🌍", "🐱", "✓", "→", "€5", "10 °C", "½",
]  # fmt: skip
