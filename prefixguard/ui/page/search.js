// Looks for a text in all prompts: where it came into each session.

import { put } from "/page/dom.js";
import { plural } from "/page/figures.js";
import { oneLine } from "/page/safe.js";

const PAUSE = 300; // milliseconds from the last letter to the search

/** Opens the search. text: what the address says to look for. */
export async function openSearch(context, text = "") {
  const { el, source } = context;
  const { sessions } = await source.overview();
  const names = new Map(sessions.map((entry) => [entry.key, oneLine(entry.id)]));
  const count = el("p", { class: "dim", role: "status" });
  const list = el("div");
  const input = el("input", {
    type: "search", id: "filter", value: text, "aria-label": "Text to look for in prompts", placeholder: "Text in prompts",
    maxlength: 500, oninput: () => later(),
  });
  const form = el("form", { class: "search", role: "search", onsubmit: (event) => {
    event.preventDefault();
    search();
  } }, input, el("button", { type: "submit", class: "plain" }, "Search"));
  const element = el("div", null,
    el("div", { class: "page-head" }, el("h1", null, "Search in prompts"),
      el("p", { class: "dim" }, "Each place is the turn in which the text came into a session.")),
    form, count, list);

  let timer = null;
  function later() {
    clearTimeout(timer);
    timer = setTimeout(search, PAUSE);
  }

  let searching = 0;
  async function search() {
    clearTimeout(timer);
    searching += 1;
    const mine = searching;
    const wanted = input.value.trim();
    history.replaceState(null, "", wanted ? `#/search/${encodeURIComponent(wanted)}` : "#/search");
    if (wanted.length < 2) {
      put(count, wanted ? "Two characters are the least." : "");
      put(list);
      return;
    }
    let answer;
    try {
      answer = await source.search(wanted);
    } catch (error) {
      if (mine === searching) put(count, error.message);
      return;
    }
    if (mine !== searching) return;
    const { found, most } = answer;
    put(count, found.length === 0 ? "It stands in no prompt."
      : found.length < most ? plural(found.length, "place") : `The newest ${most} places`);
    put(list, grouped(found).map(([key, places]) => el("section", { class: "block" },
      el("h2", null, el("a", { href: `#/s/${key}` }, names.get(key) ?? key)),
      el("ul", { class: "found" }, places.map((place) => el("li", null,
        el("a", { href: `#/s/${key}/t/${place.turn}` }, `turn ${place.turn}`), " ",
        el("span", { class: "mono" }, marked(oneLine(place.excerpt), wanted))))))));
  }

  function grouped(found) {
    const groups = new Map();
    for (const place of found) groups.set(place.key, [...(groups.get(place.key) ?? []), place]);
    return [...groups];
  }

  function marked(excerpt, wanted) {
    const at = excerpt.toLowerCase().indexOf(oneLine(wanted).toLowerCase());
    if (at < 0) return excerpt;
    const end = at + oneLine(wanted).length;
    return [excerpt.slice(0, at), el("mark", null, excerpt.slice(at, end)), excerpt.slice(end)];
  }

  if (text) await search();
  return { element, title: "Search" };
}
