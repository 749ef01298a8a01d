// Makes characters visible that act on a reader's eyes or change nothing that can be seen (see reports/visible.py).

const UNSAFE =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b\u200e\u200f\u2028-\u202e\u2060\u2066-\u2069\ufeff]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;
const SHORT = { "\r": "\\r", "\u001b": "\\e" };
const BLANK = { " ": "·", "\n": "\\n", "\t": "\\t", "\u00a0": "\\u00a0" };

function spelled(character) {
  const code = character.charCodeAt(0);
  return SHORT[character] ?? (code < 256 ? `\\x${hex(code, 2)}` : `\\u${hex(code, 4)}`);
}

function hex(code, width) {
  return code.toString(16).padStart(width, "0");
}

/** The text without a character that turns its direction, hides, or acts; line feeds and tabs stay. */
export function safe(text) {
  return text.replace(UNSAFE, spelled);
}

/** The same on one line. */
export function oneLine(text) {
  return safe(text).replaceAll("\n", "\\n").replaceAll("\t", "\\t");
}

/** A differing part, with white space spelled where there is nothing else to see. */
export function shown(text) {
  return text.trim() ? safe(text) : safe(text).replace(/[ \n\t\u00a0]/g, (character) => BLANK[character]);
}

/** A token: its white space is always spelled, since that is what tokens differ in. */
export function shownToken(text) {
  return safe(text).replaceAll("\n", "\\n").replaceAll("\t", "\\t").replaceAll(" ", "·");
}

const ASTRAL = /[\ud800-\udfff]/;

/** The characters of a text as its offsets count them: code points, not halves of surrogate pairs. */
export function charactersOf(text) {
  return ASTRAL.test(text) ? Array.from(text) : text;
}

/** A part of a text, from and to counted in characters. */
export function part(text, from, to = undefined) {
  const characters = charactersOf(text);
  return typeof characters === "string" ? text.slice(from, to) : characters.slice(from, to).join("");
}

/** The end of a path: what tells it from its neighbours. */
export function shortPath(path) {
  const parts = path.split("/").filter(Boolean);
  return parts.length > 2 ? `…/${parts.slice(-2).join("/")}` : path;
}
