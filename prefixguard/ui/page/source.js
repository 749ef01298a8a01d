// Answers the page's questions from the server. What grows is asked for by what is new of it, and put together here.

import { listen } from "./events.js";

const KEPT_SESSIONS = 4;
const KEPT_TURNS = 8;
const PAUSE = 250; // milliseconds between news of one kind

/**
 * A live source. key(): the key that the server printed.
 *
 * announce(text): says something to those who cannot see it. noticed({waiting, left_out, trouble, record, remarks}): what the server is at.
 */
export function liveSource({ key, announce, noticed }) {
  const listeners = new Set();
  const sessions = new Map(); // by key: {run, revision, view}
  const answers = new Map(); // by path: [etag, value]
  const queues = new Map(); // by name: the last promise
  const pauses = new Map(); // by name of what changed: a timer, or "again"
  let known = { run: "", revision: 0, entries: new Map(), view: null };
  const headers = () => ({ authorization: `Bearer ${key()}` });
  const tell = (event) => listeners.forEach((listener) => listener(event));

  async function ask(path, tag = "") {
    let answer;
    try {
      const sent = tag ? { ...headers(), "if-none-match": tag } : headers();
      answer = await fetch(path, { headers: sent, cache: "no-store", credentials: "omit" });
    } catch {
      throw new Error("The server does not answer: is `prefixguard ui` still running?");
    }
    if (answer.status === 304) return [tag, null];
    if (answer.status === 401) throw new Error("This page does not know the key: open the address that `prefixguard ui` printed.");
    const value = (answer.headers.get("content-type") ?? "").startsWith("application/json") ? await answer.json() : null;
    if (!answer.ok) throw new Error(value?.error ?? `The server answered with status ${answer.status}.`);
    return [answer.headers.get("etag") ?? "", value];
  }

  /** One after the other, so that what is put together is put together in order. */
  function inTurn(name, work) {
    const mine = (queues.get(name) ?? Promise.resolve()).catch(() => {}).then(work);
    queues.set(name, mine);
    return mine;
  }

  async function asked(path) {
    const [tag, value] = answers.get(path) ?? ["", null];
    const [now, fresh] = await ask(path, tag);
    const found = fresh ?? value;
    answers.delete(path);
    answers.set(path, [now, found]);
    if (answers.size > KEPT_TURNS) answers.delete(answers.keys().next().value);
    return found;
  }

  async function overview() {
    let [, news] = await ask(`/api/overview?since=${known.revision}`);
    if (news.run !== known.run && known.revision) {
      known = { run: "", revision: 0, entries: new Map(), view: null };
      [, news] = await ask("/api/overview?since=0");
    }
    const first = known.view === null;
    const entries = new Map();
    const fresh = new Map(news.sessions.map((entry) => [entry.key, entry]));
    for (const name of news.keys) {
      const entry = fresh.get(name) ?? known.entries.get(name);
      if (entry) entries.set(name, entry);
    }
    if (!first) sayBreaks(known.entries, fresh);
    const view = { version: news.version, prices: news.prices, sessions: [...entries.values()], causes: news.causes };
    known = { run: news.run, revision: news.revision, entries, view };
    noticed(news);
    return view;
  }

  function sayBreaks(before, fresh) {
    const broken = [...fresh.values()].filter((entry) => entry.breaks > (before.get(entry.key)?.breaks ?? entry.breaks));
    if (broken.length === 1) announce(`A break in session ${broken[0].id}: ${broken[0].top}`);
    else if (broken.length) announce(`Breaks in ${broken.length} sessions`);
  }

  async function session(name) {
    let mine = sessions.get(name) ?? { run: "", revision: 0, turns: [] };
    let [, news] = await ask(`/api/sessions/${name}?since=${mine.revision}`);
    if (news.run !== mine.run && mine.revision) {
      mine = { run: "", revision: 0, turns: [] };
      [, news] = await ask(`/api/sessions/${name}?since=0`);
    }
    const turns = mine.turns.slice(0, news.count);
    for (const [place, entry] of news.turns) turns[place] = entry;
    sessions.delete(name);
    sessions.set(name, { run: news.run, revision: news.revision, turns });
    if (sessions.size > KEPT_SESSIONS) sessions.delete(sessions.keys().next().value);
    return { entry: news.entry, turns, causes: news.causes };
  }

  /** At once, and then at most every PAUSE: what changes often is asked for once for all changes. */
  function soon(name, work) {
    if (pauses.has(name)) {
      pauses.set(name, "again");
      return;
    }
    work();
    pauses.set(name, "once");
    setTimeout(() => {
      const again = pauses.get(name) === "again";
      pauses.delete(name);
      if (again) soon(name, work);
    }, PAUSE);
  }

  function changed(keys) {
    soon("", () => tell({ type: "overview" }));
    for (const name of keys) soon(name, () => tell({ type: "session", key: name }));
  }

  function heard(kind, value) {
    if (kind === "hello" && value) changed([...sessions.keys()]);
    else if (kind === "changed") changed(value.keys);
    else if (kind === "gone") {
      sessions.delete(value);
      changed([]);
    } else if (kind === "trouble") soon("", () => tell({ type: "overview" }));
  }

  function line(state) {
    if (state === "open") tell({ type: "state", text: "live", ok: true });
    else if (state === "lost") tell({ type: "state", text: "disconnected, trying again", ok: false });
    else tell({ type: "state", text: "the key is not known here: open the address that was printed", ok: false });
  }

  return {
    live: true,
    overview: () => inTurn("", overview),
    session: (name) => inTurn(name, () => session(name)),
    turn: (name, index) => asked(`/api/sessions/${name}/turns/${index}`),
    text: (name, index, position, start) => asked(`/api/sessions/${name}/turns/${index}/segments/${position}?start=${start}`),
    compare: (before, after) => asked(`/api/compare?before=${encodeURIComponent(before)}&after=${encodeURIComponent(after)}`),
    search: async (text) => (await ask(`/api/search?q=${encodeURIComponent(text)}`))[1],
    subscribe(listener) {
      if (!listeners.size) queueMicrotask(() => listen("/api/events", headers, heard, line));
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}
