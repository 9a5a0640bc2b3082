// The playground's page. One idea: `state` is all there is to know; `ask` sends it, `show*` draw the
// answer, and a link holds it. Whatever a person or a model wrote becomes text nodes, never markup.

const DEFAULTS = {
  notation: "json-schema", grammar: "", tokenizer: "tiny", text: "", token_ids: null, position: null,
  compact: false, strict: false, relax: false, names: "", behind: "",
  prompt: "", temperature: 0.7, seed: 1, max_tokens: 128,
};
const state = { ...DEFAULTS };
const element = (id) => document.getElementById(id);
const QUIET_MS = 150;
const BUSY_MS = 300;
const PAGE = 120;

let start = null;
let answer = null;
let marks = { grammar: [], text: [] };

// --- making elements -----------------------------------------------------------------------------

function make(tag, text = "", className = "") {
  const made = document.createElement(tag);
  made.textContent = text;
  if (className) made.className = className;
  return made;
}

function plural(count, one, many = `${one}s`) {
  return `${count.toLocaleString("en")} ${count === 1 ? one : many}`;
}

function duration(seconds) {
  if (seconds < 1e-3) return `${(seconds * 1e6).toFixed(seconds < 1e-5 ? 1 : 0)} µs`;
  return seconds < 1 ? `${(seconds * 1e3).toFixed(1)} ms` : `${seconds.toFixed(2)} s`;
}

// Spaces are seen where a token is shown by itself.
const withSigns = (text) => text.replaceAll(" ", "␣") || "(nothing)";

// --- asking --------------------------------------------------------------------------------------

const running = {};

// The answer to a question; null where a later question of the same name took its place.
async function ask(name, question) {
  running[name]?.abort();
  const controller = (running[name] = new AbortController());
  try {
    const response = await fetch(`/api/${name}`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(question),
      signal: controller.signal,
    });
    const found = await response.json();
    if (running[name] !== controller) return null;
    if (response.status === 503) {
      // Questions that this page gave up are still worked on: wait for one of them to end.
      await new Promise((resolve) => setTimeout(resolve, BUSY_MS));
      return running[name] === controller ? ask(name, question) : null;
    }
    trouble(found.refused ?? null);
    return found.refused ? null : found;
  } catch (error) {
    if (error.name === "AbortError" || running[name] !== controller) return null;
    trouble("The playground's server does not answer: start it again with stencilm playground.");
    return null;
  }
}

function trouble(sentence) {
  element("trouble").hidden = sentence === null;
  element("trouble").textContent = sentence ?? "";
}

function notice(sentence) {
  element("notice").hidden = sentence === null;
  element("notice").textContent = sentence ?? "";
}

function question() {
  const { prompt, temperature, seed, max_tokens, ...read } = state;
  if (read.token_ids !== null) delete read.text;
  return read;
}

// --- the link ------------------------------------------------------------------------------------

function link() {
  const kept = {};
  for (const [name, value] of Object.entries(state)) {
    if (JSON.stringify(value) !== JSON.stringify(DEFAULTS[name])) kept[name] = value;
  }
  const bytes = new TextEncoder().encode(JSON.stringify(kept));
  let binary = "";
  for (const byte of bytes) binary += String.fromCharCode(byte);
  return btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

function fits(name, value) {
  if (name === "token_ids") {
    return value === null || (Array.isArray(value) && value.every(Number.isInteger));
  }
  if (name === "position") return value === null || Number.isInteger(value);
  return typeof value === typeof DEFAULTS[name];
}

// Takes the state from the address; false where it holds none.
function restore() {
  const held = location.hash.slice(1);
  if (!held) return false;
  try {
    const binary = atob(held.replaceAll("-", "+").replaceAll("_", "/"));
    const bytes = Uint8Array.from(binary, (character) => character.charCodeAt(0));
    const found = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
    if (found === null || typeof found !== "object") throw new TypeError("no object");
    Object.assign(state, DEFAULTS);
    for (const name of Object.keys(DEFAULTS)) {
      if (Object.hasOwn(found, name) && fits(name, found[name])) state[name] = found[name];
    }
    if (!start.tokenizers.includes(state.tokenizer)) {
      notice(`The link names a tokenizer that this playground does not have: ${state.tokenizer}`);
      state.tokenizer = start.tokenizers[0];
      state.token_ids = null;
      state.position = null;
    }
    return true;
  } catch {
    notice("The address holds no state of a playground: it was cut, or is another's.");
    return false;
  }
}

let written = "";

function remember() {
  written = `#${link()}`;
  history.replaceState(null, "", written);
}

// --- editors -------------------------------------------------------------------------------------

function backdropOf(area) {
  return area.parentElement.querySelector(".backdrop");
}

// Draws the marks of an editor: stretches of its text, in order, each with a class.
function showMarks(name) {
  const area = element(name);
  const backdrop = backdropOf(area);
  const text = area.value;
  backdrop.replaceChildren();
  let at = 0;
  for (const [from, to, className] of marks[name]) {
    backdrop.append(text.slice(at, from), make("mark", text.slice(from, to), className));
    at = Math.max(at, to);
  }
  backdrop.append(`${text.slice(at)}\n`);
  backdrop.scrollTop = area.scrollTop;
}

function setUpEditor(name, changed) {
  const area = element(name);
  area.addEventListener("scroll", () => {
    backdropOf(area).scrollTop = area.scrollTop;
  });
  area.addEventListener("input", () => {
    marks[name] = [];
    showMarks(name);
    changed(area.value);
  });
}

// --- drawing the answer --------------------------------------------------------------------------

let timer = 0;

function changed({ now = false } = {}) {
  remember();
  clearTimeout(timer);
  element("status").className = "badge waiting";
  element("status").textContent = "reading …";
  timer = setTimeout(read, now ? 0 : QUIET_MS);
}

async function read() {
  const found = await ask("read", question());
  if (found === null) {
    if (!element("trouble").hidden) element("status").textContent = "no answer";
    return;
  }
  answer = found;
  document.body.dataset.answers = Number(document.body.dataset.answers ?? 0) + 1;
  showGrammar(found);
  for (const id of ["text-panel", "next-panel"]) element(id).inert = !found.ok;
  if (found.ok) {
    if (state.token_ids !== null && element("text").value !== found.text) {
      element("text").value = found.text;
      state.text = found.text;
    }
    showText(found);
    showNext(found);
    list();
  } else {
    clearText();
  }
}

function showGrammar(found) {
  const error = found.ok ? null : found.error;
  const problem = element("grammar-problem");
  problem.hidden = error === null;
  const [from, to] = error?.stretch ?? [0, 0];
  marks.grammar = to > from ? [[from, to, "error"]] : [];
  showMarks("grammar");
  element("grammar").setAttribute("aria-invalid", String(error !== null));
  for (const id of ["report-box", "ebnf-box", "grammar-facts"]) element(id).hidden = error !== null;
  if (error !== null) {
    const button = element("to-problem");
    button.hidden = error.position === null;
    button.textContent = error.position ? `line ${error.position[0]}, column ${error.position[1]}` : "";
    element("problem-kind").textContent = `${error.kind}:`;
    const isPointer = error.place?.includes("#");
    element("problem-text").textContent = isPointer ? `${error.place}: ${error.message}` : error.message;
    return;
  }
  element("grammar-facts").textContent =
    `read and compiled in ${duration(found.compile_seconds)}, ${plural(found.memory_bytes, "byte")}`;
  element("ebnf").textContent = found.ebnf.value ?? found.ebnf.error;
  showReport(found.report);
}

function showReport(report) {
  const rows = Object.entries(report).flatMap(([group, findings]) =>
    findings.map((finding) => {
      const row = make("tr", "", group);
      const word = group === "annotations" ? "annotation" : group;
      row.append(make("td", word), make("td", finding.place), make("td", finding.keyword), make("td", finding.note));
      return row;
    }));
  element("report").tBodies[0].replaceChildren(...rows);
  element("report-none").hidden = rows.length > 0;
  const counts = Object.entries(report).filter(([, findings]) => findings.length);
  element("report-count").textContent = counts
    .map(([group, findings]) => `${findings.length} ${group === "annotations" && findings.length === 1 ? "annotation" : group}`)
    .join(", ");
}

const STATUS = {
  complete: "fits, and may end here",
  viable: "fits so far",
  dead: "does not fit",
  cut: "too slow: read in part",
};

function clearText() {
  element("status").className = "badge waiting";
  element("status").textContent = "the grammar has a fault";
  marks.text = [];
  showMarks("text");
  for (const id of ["steps", "times", "next-facts", "listing"]) element(id).replaceChildren();
  for (const id of ["token-count", "mask-summary", "place", "listing-count"]) element(id).textContent = "";
  for (const id of ["refusal", "explanation", "more"]) element(id).hidden = true;
}

function showText(found) {
  element("status").className = `badge ${found.status === "cut" ? "viable" : found.status}`;
  element("status").textContent = STATUS[found.status];
  const text = element("text").value;
  const valid = Math.min(found.valid_units, text.length);
  marks.text = [];
  if (valid > 0) marks.text.push([0, valid, "fits"]);
  if (found.status === "dead" && valid < text.length) marks.text.push([valid, text.length, "dead"]);
  showMarks("text");

  const steps = found.steps;
  const here = found.at.position;
  element("token-count").textContent = `${here} of ${steps.length} read`;
  element("steps").replaceChildren(...steps.map((step, index) => {
    const chip = make("button", withSigns(step.text), step.kind);
    chip.type = "button";
    if (index >= here && step.kind !== "refused") chip.classList.add("ahead");
    if (index === here - 1) chip.classList.add("here");
    const facts = [`token ${step.id}`, step.kind === "forced" ? "forced" : null,
      step.allowed === undefined ? null : `one of ${plural(step.allowed, "allowed token")}`.replace("one of 1 allowed token", "the only allowed token"),
      step.mask_seconds === undefined ? null : `mask in ${duration(step.mask_seconds)}`];
    if (step.kind === "refused") facts.splice(1, 2, "refused", step.why);
    chip.title = facts.filter((fact) => fact !== null).join("\n");
    chip.addEventListener("click", () => moveTo(step.kind === "refused" ? index : index + 1));
    return chip;
  }));
  const refused = steps.findLast((step) => step.kind === "refused");
  element("refusal").hidden = refused === undefined;
  element("refusal").textContent = refused?.why ?? "";
  element("first").disabled = element("back").disabled = here === 0;
  const readable = steps.filter((step) => step.kind !== "refused").length;
  element("last").disabled = element("forward").disabled = here >= readable;
  showTimes(steps);
}

function showTimes(steps) {
  const timed = steps.filter((step) => step.mask_seconds !== undefined);
  const times = timed.map((step) => step.mask_seconds).sort((a, b) => a - b);
  const most = times.at(-1) ?? 0;
  element("mask-summary").textContent = times.length
    ? `median ${duration(times[times.length >> 1])}, slowest ${duration(most)}; masks seen before are kept`
    : "no mask yet";
  element("times").replaceChildren(...timed.map((step) => {
    const column = make("i", "", step.kind);
    column.style.height = `${Math.max(4, (step.mask_seconds / most) * 100)}%`;
    column.title = `${withSigns(step.text)}: ${duration(step.mask_seconds)}`;
    return column;
  }));
}

function fact(name, ...values) {
  const value = document.createElement("dd");
  value.append(...values);
  element("next-facts").append(make("dt", name), value);
}

const shownText = (text) => make("code", withSigns(text));

function showNext(found) {
  const at = found.at;
  element("next-facts").replaceChildren();
  element("place").textContent = `after ${plural(at.position, "token")}`;
  fact("May end here", at.may_end ? "yes" : "no");
  if (at.terminated) {
    fact("Over", "the text has ended, and nothing may follow");
    return;
  }
  fact("Allowed tokens", `${at.allowed.toLocaleString("en")} of ${at.vocab_size.toLocaleString("en")}, computed in ${duration(at.mask_seconds)}`);
  if (at.forced.error) fact("Forced text", at.forced.error);
  else fact("Forced text", at.forced.value ? shownText(at.forced.value) : "none");
  if (at.completion.error) fact("Shortest end", at.completion.error);
  else fact("Shortest end", at.completion.value ? shownText(at.completion.value) : "nothing more is needed");
  if (at.candidates.error) fact("May go on with", at.candidates.error);
  else if (at.candidates.value.length) {
    fact("May go on with", ...at.candidates.value.flatMap((candidate) => {
      const made = candidate.text === undefined
        ? make("code", `/${candidate.regex}/`, "pattern")
        : shownText(candidate.text);
      return [made, " "];
    }));
  } else fact("May go on with", "nothing");
}

// --- the list of tokens --------------------------------------------------------------------------

let listed = 0;

async function list({ more = false } = {}) {
  const offset = more ? listed : 0;
  const found = await ask("tokens", {
    ...question(), which: element("which").value, search: element("search").value, offset, count: PAGE,
  });
  if (found === null || !found.ok) return;
  const items = found.tokens.map((token) => {
    const item = document.createElement("li");
    const button = make("button", withSigns(token.text), token.allowed ? "" : "no");
    button.type = "button";
    button.append(make("small", String(token.id)));
    button.title = token.allowed ? "Explain; click twice to go on with it" : "Why not?";
    button.addEventListener("click", () => explain(token, button));
    if (token.allowed) button.addEventListener("dblclick", () => goOnWith(token.id));
    item.append(button);
    return item;
  });
  listed = offset + items.length;
  if (more) element("listing").append(...items);
  else {
    element("listing").replaceChildren(...items);
    element("explanation").hidden = true;
  }
  element("listing-count").textContent = `${plural(found.found, "token")}${element("search").value ? " found" : ""}`;
  element("more").hidden = listed >= found.found;
}

async function explain(token, button) {
  for (const other of element("listing").querySelectorAll(".asked")) other.classList.remove("asked");
  button.classList.add("asked");
  const found = await ask("explain", { ...question(), token_id: token.id });
  if (found === null) return;
  const box = element("explanation");
  box.hidden = false;
  if (!found.ok) {
    box.replaceChildren(found.error.message);
    return;
  }
  box.replaceChildren(shownText(found.text), ` is token ${found.id}.`, make("p", found.why));
  if (found.allowed) {
    const go = make("button", "Go on with it");
    go.type = "button";
    go.id = "go-on";
    go.addEventListener("click", () => goOnWith(found.id));
    box.append(go);
  }
}

function goOnWith(tokenId) {
  if (!answer?.ok) return;
  const kept = answer.steps.slice(0, answer.at.position).map((step) => step.id);
  state.token_ids = [...kept, tokenId];
  state.position = null;
  changed({ now: true });
}

function moveTo(position) {
  state.position = position;
  changed({ now: true });
}

// --- generating ----------------------------------------------------------------------------------

async function generate() {
  const run = element("run");
  run.disabled = true;
  run.textContent = "Writing …";
  const { prompt, temperature, seed, max_tokens } = state;
  const found = await ask("generate", {
    ...question(), tokenizer: "tiny", token_ids: null, text: "", position: null, prompt, temperature, seed, max_tokens,
  });
  run.disabled = false;
  run.textContent = "Generate";
  if (found === null) return;
  const trace = element("trace");
  trace.hidden = !found.ok;
  element("trace-note").hidden = true;
  element("take").hidden = true;
  if (!found.ok) {
    element("legend").replaceChildren();
    element("outcome").textContent = `${found.error.kind}: ${found.error.message}`;
    return;
  }
  trace.replaceChildren(...found.segments.map((segment) => {
    const span = make("span", segment.text, segment.part);
    if (segment.part !== "prompt") {
      span.tabIndex = 0;
      const tell = () => {
        element("trace-note").hidden = false;
        element("trace-note").textContent = segment.note;
      };
      for (const event of ["mouseenter", "focus"]) span.addEventListener(event, tell);
    }
    return span;
  }));
  element("legend").replaceChildren(...Object.entries(found.legend).map(([part, words]) => {
    const item = make("li");
    item.append(make("span", "", part), words);
    return item;
  }));
  const stats = found.stats;
  const facts = [found.outcome, stats && `${plural(stats.tokens, "token")}, ${stats.forced_tokens} of them forced`,
    stats && `${duration(stats.seconds)}, of which masks ${duration(stats.mask_seconds)}`, found.problem];
  element("outcome").textContent = facts.filter(Boolean).join("; ");
  element("take").hidden = !found.text;
  element("take").onclick = () => setText(found.text);
}

function setText(text) {
  state.text = text;
  state.token_ids = null;
  state.position = null;
  element("text").value = text;
  changed({ now: true });
}

// --- setting up ----------------------------------------------------------------------------------

// The options that the notation takes.
function showOptions() {
  element("schema-options").hidden = state.notation !== "json-schema";
  element("names-box").hidden = !["json-schema", "ebnf", "lark"].includes(state.notation);
}

function showState() {
  for (const name of ["notation", "tokenizer", "grammar", "text", "names", "behind", "prompt", "temperature", "seed"]) {
    element(name).value = state[name];
  }
  element("max-tokens").value = state.max_tokens;
  for (const name of ["compact", "strict", "relax"]) element(name).checked = state[name];
  showOptions();
  if (state.names) element("names-box").open = true;
  if (state.behind) element("behind-box").open = true;
  marks = { grammar: [], text: [] };
  showMarks("grammar");
  showMarks("text");
}

function useExample(example) {
  Object.assign(state, {
    notation: example.notation, grammar: example.grammar, text: example.text, token_ids: null, position: null,
    compact: false, strict: false, relax: false, names: example.names, behind: example.behind,
  });
  showState();
  changed({ now: true });
}

function setUp() {
  element("notation").append(...Object.entries(start.notations).map(([name, words]) => new Option(words, name)));
  element("tokenizer").append(...start.tokenizers.map((name) => new Option(name, name)));
  element("example").append(new Option("choose one …", ""), ...start.examples.map((each, index) => new Option(each.name, String(index))));
  element("example").addEventListener("change", (event) => {
    if (event.target.value !== "") useExample(start.examples[Number(event.target.value)]);
    event.target.value = "";
  });
  element("notation").addEventListener("change", (event) => {
    state.notation = event.target.value;
    showOptions();
    changed({ now: true });
  });
  element("tokenizer").addEventListener("change", (event) => {
    state.tokenizer = event.target.value;
    state.token_ids = null;
    state.position = null;
    changed({ now: true });
  });
  for (const name of ["compact", "strict", "relax"]) {
    element(name).addEventListener("change", (event) => {
      state[name] = event.target.checked;
      changed({ now: true });
    });
  }
  for (const name of ["names", "behind"]) {
    element(name).addEventListener("input", (event) => {
      state[name] = event.target.value;
      changed();
    });
  }
  setUpEditor("grammar", (value) => {
    state.grammar = value;
    changed();
  });
  setUpEditor("text", (value) => {
    state.text = value;
    state.token_ids = null;
    state.position = null;
    changed();
  });
  element("to-problem").addEventListener("click", () => {
    const [from, to] = answer.error.stretch;
    element("grammar").focus();
    element("grammar").setSelectionRange(from, to);
  });
  element("first").addEventListener("click", () => moveTo(0));
  element("back").addEventListener("click", () => moveTo(answer.at.position - 1));
  element("forward").addEventListener("click", () => moveTo(answer.at.position + 1));
  element("last").addEventListener("click", () => moveTo(null));
  element("which").addEventListener("change", () => list());
  let searching = 0;
  element("search").addEventListener("input", () => {
    clearTimeout(searching);
    searching = setTimeout(list, QUIET_MS);
  });
  element("more").addEventListener("click", () => list({ more: true }));
  const numbers = { temperature: "temperature", seed: "seed", "max-tokens": "max_tokens" };
  for (const [id, name] of Object.entries(numbers)) {
    element(id).addEventListener("input", (event) => {
      if (event.target.validity.valid && event.target.value !== "") {
        state[name] = event.target.valueAsNumber;
        remember();
      }
    });
  }
  element("prompt").addEventListener("input", (event) => {
    state.prompt = event.target.value;
    remember();
  });
  element("generate").addEventListener("submit", (event) => {
    event.preventDefault();
    generate();
  });
  element("share").addEventListener("click", share);
  window.addEventListener("hashchange", () => {
    notice(null);
    if (location.hash !== written && restore()) {
      showState();
      changed({ now: true });
    }
  });
}

async function share() {
  remember();
  try {
    await navigator.clipboard.writeText(location.href);
    element("shared").textContent = "copied";
  } catch {
    element("shared").textContent = "the address of this page is the link";
  }
}

async function begin() {
  const response = await fetch("/api/start");
  start = await response.json();
  setUp();
  if (restore()) {
    showState();
    changed({ now: true });
  } else {
    useExample(start.examples[0]);
  }
}

begin().catch(() => trouble("The playground's server does not answer: start it again with stencilm playground."));
