// From one turn to another: the links beside a turn's title, and the keys j, k, n and p.

import { el, put } from "./dom.js";
import { BREAKS } from "./marks.js";

const MOVES = [
  { name: "previous turn", word: "‹ turn", key: "k", way: -1, breaks: false },
  { name: "next turn", word: "turn ›", key: "j", way: 1, breaks: false },
  { name: "break or miss before", word: "‹ break", key: "p", way: -1, breaks: true },
  { name: "break or miss after", word: "break ›", key: "n", way: 1, breaks: true },
];

/** turnsOf() -> the turns of the session. Returns {element, draw(index), targetOf(key, index)}; index: of a turn in the log. */
export function turnMoves(turnsOf, hrefOf) {
  const element = el("nav", { class: "moves", "aria-label": "Other turns" });

  function target({ way, breaks }, index) {
    const turns = turnsOf();
    let i = turns.findIndex((turn) => turn.index === index) + way;
    while (breaks && turns[i] && !BREAKS.has(turns[i].mark)) i += way;
    return turns[i];
  }

  function draw(index) {
    put(element, MOVES.map((move) => {
      const to = target(move, index);
      if (!to) return el("span", { class: "button off", "aria-hidden": "true" }, move.word);
      const told = { "aria-label": `${move.name}: turn ${to.index}`, title: `${move.name} (${move.key})` };
      return el("a", { href: hrefOf(to), class: "button", ...told }, move.word);
    }));
  }

  return {
    element,
    draw,
    targetOf(key, index) {
      const move = MOVES.find((one) => one.key === key);
      return move ? target(move, index) : undefined;
    },
  };
}
