// Listens to the server's events over one long answer, and comes back by itself where the line was lost.
//
// The browser's own EventSource cannot send the key, which must not stand in an address.

const SILENCE = 25_000; // milliseconds: the server says something every ten seconds
const WAITS = [300, 1000, 2000, 5000];
const HIDDEN = 60_000; // a page that nobody sees lets go of its line; browsers have six for a server

/**
 * Listens until the page is closed.
 *
 * heard(kind, value) is called for each event; changed("open" | "lost" | "refused") for the line itself.
 */
export function listen(path, headers, heard, changed) {
  let last = "";
  let failures = 0;
  let line = null;
  let pause = null; // a promise while the page is hidden
  let wake = () => {};

  document.addEventListener("visibilitychange", () => {
    if (document.hidden) {
      pause ??= setTimeout(() => line?.abort(), HIDDEN);
    } else {
      clearTimeout(pause);
      pause = null;
      wake();
    }
  });
  addEventListener("online", () => wake());

  const asleep = (milliseconds) => new Promise((done) => {
    wake = done;
    if (milliseconds) setTimeout(done, milliseconds);
  });

  async function once() {
    line = new AbortController();
    let watchdog = setTimeout(() => line.abort(), SILENCE);
    try {
      const sent = { ...headers(), accept: "text/event-stream", ...(last ? { "last-event-id": last } : {}) };
      const answer = await fetch(path, { headers: sent, signal: line.signal, cache: "no-store", credentials: "omit" });
      if (answer.status === 401) return "refused";
      if (!answer.ok) return "lost";
      failures = 0;
      changed("open");
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      let rest = "";
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return "lost";
        clearTimeout(watchdog);
        watchdog = setTimeout(() => line.abort(), SILENCE);
        const blocks = (rest + value).split("\n\n");
        rest = blocks.pop();
        for (const block of blocks) hear(block);
      }
    } catch {
      return "lost";
    } finally {
      clearTimeout(watchdog);
    }
  }

  function hear(block) {
    const fields = {};
    for (const row of block.split("\n")) {
      const at = row.indexOf(":");
      if (at > 0) fields[row.slice(0, at)] = row.slice(at + 1).trimStart();
    }
    if (fields.id) last = fields.id;
    if (fields.event) heard(fields.event, JSON.parse(fields.data));
  }

  async function forever() {
    for (;;) {
      const ended = await once();
      if (ended === "refused") {
        changed("refused");
        return;
      }
      if (document.hidden) {
        await asleep(0);
        continue;
      }
      if (failures > 0) changed("lost"); // a line that is back at once is no news
      await asleep(WAITS[Math.min(failures, WAITS.length - 1)]);
      failures += 1;
    }
  }

  forever();
}
