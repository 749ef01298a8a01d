// The first page: what to mend first over all sessions, and the sessions.

import { el, put, renew, spoken, svg } from "./dom.js";
import { bill, duration, money, moment, percent, plural, tokens } from "./figures.js";
import { causesBlock } from "./causes.js";
import { MARK_WORDS, markPath } from "./marks.js";
import { oneLine, shortPath } from "./safe.js";
import { virtualList } from "./virtual.js";

/** Opens the overview. Returns {element, title, update()}. */
export async function openOverview(context) {
  let data = await context.source.overview();
  let filtered = data.sessions;
  const summary = el("p", { class: "lead" });
  const causes = el("div");
  const count = el("span", { class: "dim", role: "status" });
  const filter = el("input", {
    type: "search", placeholder: "Filter: id, agent, model, code", "aria-label": "Filter the sessions", id: "filter",
    oninput: () => drawList(),
  });
  const cause = el("select", { "aria-label": "Only sessions with this cause", onchange: () => drawList() });
  const broken = el("input", { type: "checkbox", id: "breaks-only", onchange: () => drawList() });
  const head = el("div", { role: "row", class: "row row-head" }, columns().map(([name, word, right]) =>
    el("div", { role: "columnheader", class: `cell cell-${name} ${right ? "number" : ""}` }, word)));
  const list = virtualList({ label: "Sessions", head, row: line, rowHeight: "--session-row", className: "sessions" });
  const priced = () => data.sessions.some((session) => session.cost.actual !== null);
  list.element.classList.toggle("unpriced", !priced());
  const sessions = el("section", { class: "block" },
    el("div", { class: "block-head" }, el("h2", null, "Sessions"), count, el("span", { class: "grow" }), cause,
      el("label", { class: "check", for: "breaks-only" }, broken, " breaks only"), filter),
    list.element);
  const nothing = context.options.empty ? el("section", { class: "block", hidden: true }) : null;
  const element = el("div", { class: "overview" },
    el("div", { class: "page-head" }, el("h1", null, "Prompt cache report"), summary),
    context.options.note?.(), causes, nothing, sessions);
  draw();

  function columns() {
    return [
      ["session", "session", false], ["strip", "turns", false], ["breaks", "breaks", true], ["misses", "misses", true],
      ["cached", "cached", true], ["rebilled", "re-billed", true], ["cost", "cost", true],
      ["avoidable", "avoidable", true], ["top", "mostly", false],
    ];
  }

  function draw() {
    put(summary, sums(data));
    drawChoices();
    if (nothing) {
      nothing.hidden = data.sessions.length > 0;
      sessions.hidden = !nothing.hidden;
      put(nothing, nothing.hidden ? null : context.options.empty());
    }
    renew(causes, causesBlock(data.causes, (cause) => `#/s/${cause.key}/t/${cause.turn}`, data.sessions.length > 1));
    drawList();
  }

  /** The causes to choose from. A list that somebody has open does not change under the hand. */
  function drawChoices() {
    if (cause === document.activeElement) return;
    const chosen = cause.value;
    const codes = data.causes.map((one) => [one.code, `${one.code} ${one.name}`]).sort();
    put(cause, [["", "any cause"], ...codes].map(([value, word]) =>
      el("option", { value, selected: value === chosen }, word)));
  }

  function drawList() {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    filtered = data.sessions.filter((session) => {
      if (broken.checked && !session.breaks) return false;
      if (cause.value && !session.codes.includes(cause.value)) return false;
      const text = [session.id, session.agent, session.source, session.top, ...session.codes, ...session.facts]
        .join(" ").toLowerCase();
      return words.every((word) => text.includes(word));
    });
    put(count, filtered.length === data.sessions.length ? plural(filtered.length, "session")
      : `${filtered.length} of ${plural(data.sessions.length, "session")}`);
    list.draw(filtered.length);
  }

  function line(i) {
    const session = filtered[i];
    const href = `#/s/${session.key}`;
    const about = [...session.facts];
    if (session.agent) about.unshift(session.agent);
    if (session.started !== null) about.unshift(moment(session.started));
    if (session.source && session.source !== session.id) about.unshift(shortPath(session.source));
    const cells = {
      session: [el("a", { href, class: "session-id" }, oneLine(session.id)), session.recording === "full" ? null
        : el("span", { class: "badge" }, session.recording === "hashes" ? "digests only" : "redacted"),
      el("span", { class: "dim about", title: oneLine(session.source || session.id) }, actions(session), oneLine(about.join(" · ")))],
      strip: strip(session),
      breaks: session.breaks === null ? el("span", { title: "no prompts in the record" }, "?")
        : session.breaks ? el("b", { class: "bad" }, session.breaks) : el("span", { class: "good" }, "0"),
      misses: session.misses || "-",
      cached: percent(session.hit_rate),
      rebilled: session.rebilled_tokens ? tokens(session.rebilled_tokens, session.estimated) : "-",
      cost: bill(session.cost),
      avoidable: money(session.cost.avoidable, session.cost),
      top: session.top,
    };
    const row = el("div", { role: "row", class: "row" }, columns().map(([name, word, right]) =>
      el("div", { role: "cell", class: `cell cell-${name} ${right ? "number" : ""}`, "data-name": word }, cells[name])));
    row.addEventListener("click", (event) => {
      if (!event.target.closest("a") && !String(getSelection())) location.hash = href;
    });
    return row;
  }

  function actions(session) {
    const found = context.options.sessionActions?.(session) ?? [];
    return found.map((action) => [el("a", { href: action.hash }, action.label), " · "]);
  }

  return {
    element,
    title: "Overview",
    async update(event) {
      if (event && event.type !== "overview") return;
      data = await context.source.overview();
      draw();
    },
  };
}

function sums(data) {
  const total = (name) => data.sessions.reduce((sum, session) => sum + session[name], 0);
  const breaks = total("breaks");
  const estimated = data.sessions.some((session) => session.estimated);
  if (!data.sessions.length) return "No requests to a model were found.";
  const where = plural(data.sessions.length, "session");
  const found = [breaks ? [el("b", { class: "bad" }, plural(breaks, "break")), ` in ${where}`]
    : [el("b", { class: "good" }, "No break"), ` in ${where}`]];
  const again = total("rebilled_tokens");
  if (again) found.push(`: ${tokens(again, estimated)} tokens were re-billed`);
  const costs = data.sessions.map((session) => session.cost).filter((cost) => cost.avoidable !== null);
  const currencies = new Set(costs.map((cost) => cost.currency));
  if (costs.length && currencies.size === 1) {
    const cost = { currency: costs[0].currency, estimated: costs.some((one) => one.estimated) };
    const some = costs.length < data.sessions.length ? "at least " : "";
    found.push(`, ${some}${money(costs.reduce((sum, one) => sum + one.avoidable, 0), cost)} avoidable`);
  }
  const misses = total("misses");
  found.push(misses ? `. ${plural(misses, "miss", "misses")} without a change.` : ".");
  return found;
}

/** A session as a small picture: the cached share of its turns, and where it broke. */
function strip(session) {
  const n = session.strip.length;
  const [width, height] = [144, 26];
  const step = Math.min(8, width / Math.max(1, n));
  const found = [svg("line", { x1: 0, x2: width, y1: height - 0.5, y2: height - 0.5, class: "guide" })];
  const marks = {};
  session.strip.forEach(([share, mark], i) => {
    const x = i * step;
    const tall = share === null ? 0 : Math.max(1, share * (height - 9));
    found.push(svg("rect", { x, y: height - tall, width: Math.max(1, step - 1), height: tall, class: "part-read" }));
    if (share !== null) {
      const rest = height - 9 - tall;
      found.push(svg("rect", { x, y: 9, width: Math.max(1, step - 1), height: rest, class: "strip-rest" }));
    }
    if (!mark) return;
    marks[mark] = (marks[mark] ?? 0) + 1;
    const sign = markPath(mark, x + step / 2, 4);
    sign.setAttribute("transform", `translate(${x + step / 2} 4) scale(0.6)`);
    found.push(sign);
  });
  const told = Object.entries(marks).map(([mark, count]) => `${MARK_WORDS[mark]} ${count} times`);
  return [svg("svg", { viewBox: `0 0 ${width} ${height}`, class: "strip", "aria-hidden": "true" }, found),
    spoken(`${plural(session.turns, "turn")} in ${duration(session.span)}${told.length ? `: ${told.join(", ")}` : ""}`)];
}
