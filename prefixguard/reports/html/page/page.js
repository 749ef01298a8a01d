// The entry of the pages: the header, the routes behind the hash, keys, and news from a live source.
//
// A source answers with the views of `prefixguard.reports.html`, as JSON:
//   overview(), session(key), turn(key, index), text(key, index, position, start, segment) -> promises;
//   live: whether news come; subscribe(listener) -> function that ends it; listener gets
//   {type: "overview"}, {type: "session", key} or {type: "state", text, ok}.

import { el, put } from "./dom.js";
import { openOverview } from "./overview.js";
import { openSession } from "./session.js";
import { remember, remembered, themeSwitch } from "./theme.js";

/**
 * Draws the pages into `root` and follows the hash.
 *
 * options: title; routes [{pattern, open(context, ...groups)}]; actions [{label, hash}];
 * sessionActions(entry) -> [{label, hash}]; footer: text; single: key of the only session.
 */
export function start(root, source, options = {}) {
  let current = null;
  let opening = 0;
  const listeners = new Set();
  const crumbs = el("nav", { class: "crumbs", "aria-label": "Where you are" });
  const state = el("span", { class: "state-text", role: "status" });
  const main = el("main", { id: "main", tabindex: "-1" });
  const told = el("p", { class: "spoken", role: "status" });
  const keys = el("button", { type: "button", class: "plain", onclick: () => {
    remember("keys", keysOn() ? "off" : "on");
    drawKeys();
  } });
  const context = {
    source, options, el,
    root: main,
    go: (hash) => { location.hash = hash; },
    subscribe: (listener) => { listeners.add(listener); return () => listeners.delete(listener); },
  };
  const name = options.title ?? "PrefixGuard";

  function keysOn() {
    return remembered("keys") !== "off";
  }

  function drawKeys() {
    put(keys, `Single keys: ${keysOn() ? "on" : "off"}`);
    keys.setAttribute("aria-pressed", String(keysOn()));
  }

  put(root,
    el("a", { class: "skip", href: "#main", onclick: (event) => {
      event.preventDefault();
      main.focus();
    } }, "Skip to the content"),
    el("header", { class: "top" }, el("a", { href: "#/", class: "brand" }, name), crumbs, el("span", { class: "grow" }), state,
      (options.actions ?? []).map((action) => el("a", { href: action.hash, class: "plain" }, action.label)), themeSwitch()),
    main,
    el("footer", { class: "bottom" },
      el("p", null, options.footer ?? "", " ~ marks an estimate, ? what is unknown."),
      el("details", null, el("summary", null, "Keys"),
        el("p", null, "On the bars: ← → move, ↑ ↓ go to the break or miss before and after, Enter opens. On a turn: j and k go to the next and previous turn, n and p to the next and previous break or miss, Esc back to the session. / goes to the filter."),
        keys)),
    told);
  drawKeys();

  function routes() {
    return [
      [/^$/, () => openOverview(context)],
      [/^s\/([\w.-]+)(?:\/t\/(\d+))?$/, (key, index) => openSession(context, key, index === undefined ? null : Number(index))],
      ...(options.routes ?? []).map((route) => [route.pattern, (...groups) => route.open(context, ...groups)]),
    ];
  }

  async function follow() {
    opening += 1;
    const mine = opening;
    const path = decodeURIComponent(location.hash.replace(/^#\/?/, ""));
    try {
      const turn = /^s\/([\w.-]+)(?:\/t\/(\d+))?$/.exec(path);
      if (turn && current?.turnTo && current.key === turn[1]) {
        const wasTurn = current.crumbs().length > 1;
        await current.turnTo(turn[2] === undefined ? null : Number(turn[2]));
        if (mine !== opening) return;
        arrived(!(wasTurn && turn[2] !== undefined));
        return;
      }
      for (const [pattern, open] of routes()) {
        const found = pattern.exec(path);
        if (!found) continue;
        main.setAttribute("aria-busy", "true");
        const page = await open(...found.slice(1));
        if (mine !== opening) return void page.close?.();
        current?.close?.();
        current = page;
        put(main, page.element);
        arrived(true);
        return;
      }
      throw new Error(`There is no page “${path}”.`);
    } catch (error) {
      if (mine !== opening) return;
      current?.close?.();
      current = null;
      put(main, el("div", { class: "page-head" }, el("h1", null, "This cannot be shown"), el("p", { class: "note", role: "alert" }, error.message),
        el("p", null, el("a", { href: "#/" }, "To the overview"))));
      arrived(true);
    } finally {
      if (mine === opening) main.removeAttribute("aria-busy");
    }
  }

  let first = true;
  function arrived(toTop) {
    const places = current?.crumbs?.() ?? (current?.title && current.title !== "Overview" ? [[current.title, location.hash]] : []);
    put(crumbs, places.map(([word, href], i) =>
      el("a", { href, "aria-current": i === places.length - 1 ? "page" : null }, word)));
    document.title = current?.title ? `${current.title} · ${name}` : name;
    if (toTop) scrollTo(0, 0);
    else put(told, `${current.title} is shown.`); // below the bars, where the focus stays
    // A reader by ear hears where the page went; on the first page nothing has moved yet.
    if (!first && toTop && !main.contains(document.activeElement)) main.focus({ preventScroll: true });
    first = false;
  }

  async function heard(event) {
    if (event.type === "state") {
      put(state, event.text);
      state.classList.toggle("bad", event.ok === false);
      return;
    }
    for (const listener of listeners) listener(event);
    try {
      await current?.update?.(event);
    } catch (error) {
      put(state, error.message);
      state.classList.add("bad");
    }
  }

  addEventListener("hashchange", follow);
  addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey || event.defaultPrevented) return;
    if (event.target.closest?.("input, textarea, select, [contenteditable]")) return;
    if (event.key === "Escape" && current?.crumbs?.().length > 1) {
      context.go(current.crumbs()[0][1]);
      return;
    }
    if (!keysOn()) return;
    if (event.key === "/" && document.getElementById("filter")) {
      event.preventDefault();
      document.getElementById("filter").focus();
    } else if (current?.pressed?.(event.key)) {
      event.preventDefault();
    }
  });
  source.subscribe?.(heard);
  if (options.single && !location.hash.replace(/^#\/?/, "")) history.replaceState(null, "", `#/s/${options.single}`);
  return follow();
}
