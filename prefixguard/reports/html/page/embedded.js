// The source of a report that stands alone: views and texts out of the page itself, unpacked when they are asked for.

import { start } from "./page.js";
import { exactTokens } from "./figures.js";
import { charactersOf, part } from "./safe.js";

const WINDOW = 16384; // characters of a text that are given at once

/** Reads the block of that name: JSON, compressed, in base64. Each is read once. */
function blocks() {
  const known = new Map();
  return (name) => {
    if (!known.has(name)) {
      const holder = document.getElementById(`data-${name}`);
      if (!holder) return Promise.reject(new Error("This report holds no such session or turn."));
      known.set(name, unpacked(holder.textContent));
    }
    return known.get(name);
  };
}

async function unpacked(text) {
  if (typeof DecompressionStream === "undefined") {
    throw new Error("This browser is too old for the report: it needs DecompressionStream (2023).");
  }
  const packed = Uint8Array.from(atob(text.trim()), (character) => character.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

/** The source; see page.js. */
export function embeddedSource() {
  const read = blocks();
  return {
    live: false,
    overview: () => read("overview"),
    session: (key) => read(`session-${key}`),
    async turn(key, index) {
      const places = await read(`places-${key}`);
      const part = places.turns[index];
      if (part === undefined) throw new Error(`This report holds no turn ${index} of this session.`);
      const [turns, rows] = await Promise.all([read(`turns-${key}-${part}`), read(`segments-${key}`)]);
      const turn = turns[index];
      if (!turn.prompt) return turn;
      const segments = turn.prompt.segments.flatMap(([first, count]) => rows.slice(first, first + count));
      return { ...turn, prompt: { ...turn.prompt, segments } };
    },
    async text(key, index, position, start, segment) {
      const places = await read(`places-${key}`);
      const texts = await read(`texts-${key}-${places.texts[segment.ref]}`);
      return windowOf(texts[segment.ref], segment.chars, start);
    },
  };
}

/** A window of a text of which only some pieces are here: [start, piece] each, in order. */
function windowOf(pieces, chars, start) {
  const holding = pieces.find(([from, text]) => start < from + charactersOf(text).length) ?? pieces.at(-1);
  const at = Math.max(start, holding[0]);
  const text = part(holding[1], at - holding[0], at - holding[0] + WINDOW);
  const kept = pieces.reduce((sum, [, piece]) => sum + charactersOf(piece).length, 0);
  const omitted = kept < chars
    ? `This report holds ${exactTokens(kept)} of the ${exactTokens(chars)} characters: the rest was left out to keep the file small.`
    : "";
  return { start: at, chars, text, omitted };
}

const setup = document.getElementById("setup");
if (setup) start(document.getElementById("page"), embeddedSource(), JSON.parse(setup.textContent));
