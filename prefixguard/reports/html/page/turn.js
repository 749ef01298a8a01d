// One turn: what it is, where it parts, why and what to do, what it cost, and its prompt as segments.

import { el, svg } from "./dom.js";
import { exactTokens, tokens } from "./figures.js";
import { prose } from "./causes.js";
import { differenceBlock } from "./difference.js";
import { markBadge } from "./marks.js";
import { promptBlock } from "./prompt.js";
import { oneLine, safe } from "./safe.js";

/** The page of one turn. context: with the session's key, the turn's index, hrefOf(index), and moves: links to other turns. */
export async function openTurn(context) {
  const { key, index, hrefOf, moves } = context;
  const turn = await context.source.turn(key, index);
  const prompt = turn.prompt ? promptBlock(context, turn) : missing(turn);
  const findings = turn.findings.map((one) => findingCard(one));
  return el("article", { class: "turn-page" },
    el("div", { class: "turn-head" },
      el("div", null,
        el("h1", null, `Turn ${turn.index} `, headline(turn)),
        el("p", { class: "dim" }, turn.about.map(safe).join(" · "))),
      moves),
    turn.limits ? el("p", { class: "note" }, turn.limits) : null,
    turn.difference ? differenceBlock(turn.difference, hrefOf) : null,
    el("div", { class: "turn-columns" },
      el("section", { class: "block" },
        el("div", { class: "block-head" }, el("h2", null, findings.length ? "Why, and what to do" : "Findings")),
        findings.length ? findings : el("p", { class: "dim" }, turn.mark === "break"
          ? "No cause of the catalogue fits this change; what changed stands above." : "None on this turn.")),
      factsBlock(turn)),
    prompt);
}

/** What the turn is, in its colour; a turn that nobody could look into has none. */
function headline(turn) {
  if (turn.mark || !turn.turn.unseen?.includes("prompt")) return markBadge(turn.mark, turn.headline);
  return el("span", { class: "badge dim" }, turn.headline);
}

function findingCard({ finding, title, remarks, why, mend, mend_here: here }) {
  return el("div", { class: `finding severity-${finding.severity}` },
    el("h3", null, el("span", { class: "code" }, finding.code), " ", finding.name,
      title ? el("span", { class: "cause-title" }, title) : null),
    el("p", { class: "dim small" }, [finding.primary ? "explains the divergence" : "remark", ...remarks].join(", ")),
    finding.message ? el("p", null, safe(finding.message)) : null,
    finding.evidence ? el("p", null, el("span", { class: "dim" }, "evidence "), el("code", null, oneLine(finding.evidence))) : null,
    finding.source ? el("p", null, el("span", { class: "dim" }, "source "),
      el("code", null, `${oneLine(finding.source.filename)}:${finding.source.row}`)) : null,
    mend ? el("p", null, el("b", null, "To do: "), prose(mend)) : null,
    here ? el("p", null, prose(here)) : null,
    why ? el("details", null, el("summary", null, "Why this costs"), el("p", null, prose(why))) : null);
}

function factsBlock(turn) {
  return el("section", { class: "block facts" },
    el("div", { class: "block-head" }, el("h2", null, "Predicted and reported")),
    gauge(turn.turn),
    el("dl", null, turn.facts.map(([label, text]) => [el("dt", null, label), el("dd", null, safe(text))])));
}

/** The prompt as one line: what should have been read, and what was. */
function gauge({ cache, usage, tokens: own }) {
  if (!cache) return null;
  const total = Math.max(1, usage ? usage.uncached + (usage.read ?? 0) + sum(usage.write) : own.prompt);
  const width = 400;
  const x = (count) => (Math.min(count, total) / total) * width;
  const found = [svg("rect", { x: 0, y: 14, width, height: 12, class: "gauge-all" })];
  if (cache.reported_read !== null) {
    found.push(svg("rect", { x: 0, y: 14, width: x(cache.reported_read), height: 12, class: "part-read" }));
  }
  const [low, high] = [x(cache.read_low), x(cache.read_high)];
  found.push(svg("rect", { x: Math.min(low, width - 3), y: 10, width: Math.max(3, high - low), height: 20, class: "gauge-predicted" }));
  const said = `Of ${exactTokens(total)} tokens ${tokens(cache.read_low)} to ${tokens(cache.read_high)} should have been read, `
    + (cache.reported_read === null ? "the server does not say how many were" : `${exactTokens(cache.reported_read)} were`);
  return el("figure", { class: "gauge" },
    svg("svg", { viewBox: `0 0 ${width} 40`, role: "img", "aria-label": said, preserveAspectRatio: "none" }, found),
    el("figcaption", { class: "small dim", "aria-hidden": "true" },
      el("span", { class: "legend-entry" }, el("i", { class: "swatch swatch-gauge" }), "predicted"),
      el("span", { class: "legend-entry" }, el("i", { class: "swatch swatch-read" }), "reported"),
      el("span", { class: "grow" }), `${exactTokens(total)} tokens`));
}

function sum(counts) {
  return Object.values(counts).reduce((total, count) => total + count, 0);
}

function missing(turn) {
  return el("section", { class: "block" }, el("div", { class: "block-head" }, el("h2", null, "Prompt")),
    el("p", { class: "dim" }, safe(turn.prompt_note)));
}
