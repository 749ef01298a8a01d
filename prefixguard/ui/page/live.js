// The entry of the live pages: the key, the source, what only these pages have.

import { el, put } from "/page/dom.js";
import { plural } from "/page/figures.js";
import { start } from "/page/page.js";
import { openComparison } from "./compare.js";
import { openSearch } from "./search.js";
import { liveSource } from "./source.js";

const NAME = "prefixguard-ui-key";
const QUIET = 5_000; // milliseconds between things said aloud

const key = await entered(location.hash) || kept();

addEventListener("hashchange", () => {
  // The printed address, opened once more in this very tab.
  if (/^#(key|ticket)=/.test(location.hash)) location.reload();
});

// The server was started again, and another tab has its new key.
addEventListener("storage", (event) => {
  if (event.key === NAME) location.reload();
});

/** The key that an address brings, or gets for its ticket; "" for other addresses. */
async function entered(hash) {
  const [, kind, word] = /^#(key|ticket)=([\w-]+)$/.exec(hash) ?? [];
  if (!word) return "";
  // The address is seen over shoulders and kept in histories.
  history.replaceState(null, "", "#/");
  let found = word;
  if (kind === "ticket") {
    const answer = await fetch("/api/key", { headers: { authorization: `Bearer ${word}` }, cache: "no-store" }).catch(() => null);
    found = answer?.ok ? await answer.text() : "";
  }
  if (found) keep(found);
  return found;
}

function kept() {
  try {
    return localStorage.getItem(NAME) ?? "";
  } catch {
    return "";
  }
}

function keep(value) {
  try {
    localStorage.setItem(NAME, value);
  } catch {
    // Then each page needs the printed address.
  }
}

const spoken = el("div", { class: "spoken", role: "status" });
let waitingToSay = "";
let quiet = null;

/** Says it to those who listen to the page; what comes too fast is said once, the newest of it. */
function announce(text) {
  waitingToSay = text;
  if (quiet) return;
  put(spoken, text);
  waitingToSay = "";
  quiet = setTimeout(() => {
    quiet = null;
    if (waitingToSay) announce(waitingToSay);
  }, QUIET);
}

const notice = el("div", { class: "notice" });

function noticed({ waiting, left_out: leftOut, trouble, record, remarks }) {
  const said = [];
  if (trouble) said.push(el("p", { class: "note bad" }, trouble));
  if (waiting) said.push(el("p", { class: "note" }, `${plural(waiting, "recorded session")} still to be read.`));
  if (leftOut) {
    said.push(el("p", { class: "dim" }, `${plural(leftOut, "older session")} of the record ${leftOut === 1 ? "is" : "are"} not shown: name it, or start with --all.`));
  }
  for (const remark of remarks) said.push(el("p", { class: "dim" }, remark));
  const now = said.map((one) => one.textContent).join();
  if (notice.dataset.said !== now) put(notice, said);
  notice.dataset.said = now;
  notice.dataset.record = record;
}

/** What a page without sessions says. */
function empty() {
  return el("div", { class: "empty" },
    el("h2", null, "Nothing is recorded yet"),
    el("p", null, "Sessions appear here as they are recorded. Start an agent behind the recording proxy:"),
    el("pre", null, "prefixguard run -- my-agent"),
    el("p", null, "or start the proxy and point the agent's base URL at it:"),
    el("pre", null, "prefixguard proxy"),
    el("p", { class: "dim" }, `Watching ${notice.dataset.record ?? "the record"}.`));
}

const root = document.getElementById("page");
const source = liveSource({ key: () => key, announce, noticed });
document.body.append(spoken);
start(root, source, {
  routes: [
    { pattern: /^compare(?:\/([\w.-]+)\/([\w.-]+))?$/, title: "Compare", open: openComparison },
    { pattern: /^search(?:\/(.+))?$/, title: "Search", open: openSearch },
  ],
  actions: [{ label: "Search", hash: "#/search" }, { label: "Compare", hash: "#/compare" }],
  sessionActions: (entry) => [{ label: "compare", hash: `#/compare/${entry.key}/-` }],
  empty,
  note: () => notice,
  footer: "Watching the record on this machine; nothing leaves it.",
});
