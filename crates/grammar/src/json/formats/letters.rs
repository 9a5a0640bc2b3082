//! Characters of labels of internationalised host names by what the rules say of them (RFC 5892, RFC 5893), as members
//! of classes.

/// Letters, digits and marks, by category, that no label may have, because a normal form replaces or ignores them (RFC
/// 5892, section 2). The ranges may include code points of other categories.
const EXCLUDED: &str = "aa-ba 133 140 149 17f 1c6-1cc 1f3 2b0-2b8 2e0-2e4 340-341 343-345 34f 374 37a 3d0-3d6 3f0-3f2 3f5 587 640 \
    675-678 7fa 958-95f 9dc-9df a33 a36 a59-a5b a5e b5c-b5d e33 eb3 edc-edd f43 f4d f52 f57 f5c f69 f73 f75-f79 \
    f81 f93 f9d fa2 fa7 fac fb9 10fc 1100-11ff 13f8-13fd 17b4-17b5 180b-180f 1c80-1c88 1d2c-1d2e 1d30-1d3a \
    1d3c-1d4d 1d4f-1d6a 1d78 1d9b-1dbf 1e9a-1e9b 1f71 1f73 1f75 1f77 1f79 1f7b 1f7d-1fa7 1fb2-1fb4 1fb7-1fc4 \
    1fc7 1fd3 1fe3 1ff2-1ff4 1ff7-207f 2090-2149 2c7c-2c7d 2d6f 302e-303b 309f 30ff 3131-318e a69c-a69d a770 \
    a7f2-a7f4 a7f8-a7f9 a960-a97c ab5c-ab5f ab69-abbf d7b0-fa0d fa10 fa12 fa15-fa1e fa20 fa22 fa25-fa26 \
    fa2a-fb1d fb1f-fe0f fe70-fe72 fe74-ffdc 10781-107ba 1d165-1d244 1d41a-1d7ff 1ee00-1fbf9 2f800-2fa1d \
    e0100-e01ef";
/// Characters that join on both sides.
const JOINING: &str = "620 626 628 62a-62e 633-647 649-66f 679-687 69a-6bf 6c1-6c2 6cc 6ce 6d0-6d1 6fa-6fc 6ff 712-714 71a-71d \
    71f-727 729 72b 72d-72e 74e-758 75c-76a 76d-770 772 775-777 77a-77f 7ca-7ea 841-845 848 84a-853 855 860 \
    862-865 868 886 889-88d 88f 8a0-8a9 8af-8b0 8b3-8b8 8ba-8c8 1820-1878 1887-18aa a840-a871 10ac0-10ac4 \
    10ad3-10ad6 10ad8-10adc 10ade-10ae0 10b80 10b82 10b86-10b88 10b8a-10b8b 10b8d 10b90 10d01-10d21 10d23 \
    10ec3-10ec4 10ec6-10ec7 10f30-10f32 10f34-10f44 10f70-10f73 10f76-10fb0 10fb2-10fb3 10fb8 10fbb-10fbc \
    10fbe-10fbf 10fc1 10fc4 1e922-1e943";
/// Characters that join to the preceding one.
const JOINING_BACK: &str = "622-625 627 629 62f-632 648 671-673 688-699 6c0 6c3-6cb 6cd 6cf 6d2-6d5 6ee-6ef 710 715-719 71e 728 72a 72c \
    72f-74d 759-75b 76b-76c 771 773-774 778-779 840 846-847 849 854 856-858 867 869-882 88e 8aa-8ac 8ae 8b1-8b2 \
    8b9 10ac5 10ac7-10aca 10ace-10ad2 10add 10ae1 10ae4 10b81 10b83-10b85 10b89 10b8c 10b8e-10b8f 10b91 10d22 \
    10ec2 10f33 10f74-10f75 10fb4-10fb6 10fb9-10fba 10fbd 10fc2-10fc3";
/// Characters that join to the following one.
const JOINING_AHEAD: &str = "a872 10acd 10ad7 10d00 10ed9-10eee";
/// Viramas, which make the next consonant join.
const VIRAMA: &str = "94d 9cd a4d acd b4d bcd c4d ccd d3b-d3c d4d dca e3a eba f84 1039-103a 1714-1715 1734 17d2 1a60 1b44 \
    1baa-1bab 1bf2-1bf3 2d7f a806 a82c a8c4 a953 a9c0 aaf6 abed 10a3f 11046 11070 1107f 110b9 11133-11134 111c0 \
    11235 112ea 1134d 11442 114c2 115bf 1163f 116b6 1172b 11839 1193d-1193e 119e0 11a34 11a47 11a99 11c3f \
    11d44-11d45 11d97";

/// Blocks of scripts that are written from right to left.
const RIGHT_TO_LEFT: &str = "590-8ff fb1d-fdff fe70-feff 10800-10fff 1e800-1efff";
/// European and Persian digits, and Arabic digits, as members of a class.
pub(super) const DIGITS: &str = r"0-9\x{6f0}-\x{6f9}";
pub(super) const ARABIC_DIGITS: &str = r"\x{660}-\x{669}\x{10d30}-\x{10d39}";
/// Hebrew marks of quotation and of numerals, which stand after Hebrew letters.
pub(super) const GERESH: &str = r"\x{5f3}\x{5f4}";
pub(super) const KATAKANA_DOT: &str = r"\x{30fb}";

/// Ranges as members of a class.
fn members(ranges: &str) -> String {
    let point = |hex: &str| format!("\\x{{{hex}}}");
    let range = |range: &str| range.split_once('-').map_or(point(range), |(a, b)| format!("{}-{}", point(a), point(b)));
    ranges.split_whitespace().map(range).collect()
}

/// Characters of labels as members of a class, without those that need a context: left-to-right letters, right-to-left
/// letters, and marks of both.
pub(super) struct Letters {
    pub left: String,
    pub right: String,
    pub marks: String,
}

impl Letters {
    pub fn new() -> Letters {
        let (excluded, blocks) = (members(EXCLUDED), members(RIGHT_TO_LEFT));
        let allowed = r"\p{Ll}\p{Lo}\p{Lm}\p{Nd}\p{Mn}\p{Mc}A-Z\x{13a0}-\x{13f5}\x{6fd}\x{6fe}\x{f0b}\x{3007}";
        let allowed = format!("[[{allowed}]--[{excluded}{KATAKANA_DOT}]]");
        let digits = format!(r"[{DIGITS}{ARABIC_DIGITS}]");
        Letters {
            left: format!(r"[{allowed}--[[{blocks}]{digits}\p{{Mn}}]]"),
            right: format!(r"[[{allowed}&&[{blocks}]]--[{digits}\p{{Mn}}]]"),
            marks: format!(r"[{allowed}&&\p{{Mn}}]"),
        }
    }

    /// The characters that a left-to-right label may begin with.
    pub fn first(&self) -> String {
        format!(r"[{}--\p{{Mc}}]", self.left)
    }

    /// A label with a katakana dot contains one of these.
    pub fn kana(&self) -> String {
        format!(r"[[\p{{Hiragana}}\p{{Katakana}}\p{{Han}}]&&{}]", self.first())
    }

    /// All non-ASCII characters of labels, including those that need a context.
    pub fn beyond_ascii(&self) -> String {
        let Letters { left, right, marks } = self;
        let others = format!(r"{DIGITS}{ARABIC_DIGITS}{GERESH}{KATAKANA_DOT}\x{{b7}}\x{{375}}\x{{200c}}\x{{200d}}");
        format!(r"[[{left}{right}{marks}{others}]--[\x00-\x7f]]")
    }
}

/// The viramas among these characters.
pub(super) fn viramas(characters: &str) -> String {
    format!("[[{}]&&[{characters}]]", members(VIRAMA))
}

/// The letters among these that join to the following one, and those that join to the preceding one.
pub(super) fn joining(letters: &str) -> [String; 2] {
    [JOINING_AHEAD, JOINING_BACK].map(|others| format!("[[{}{}]&&{letters}]", members(JOINING), members(others)))
}
