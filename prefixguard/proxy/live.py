"""What the terminal shows while an agent runs: a line per turn, an explanation per break.

Events come from the link's reading thread. They are printed by a thread of
their own, from a bounded queue: a terminal that has stopped reading must not
stop the recording.
"""

from __future__ import annotations

import contextlib
import os
import queue
import threading
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, TextIO

import click
import msgspec

from prefixguard.proxy.frames import Event, Lost, Trouble, TurnSeen

_LINES: Final = 2000
_BREATH: Final = 0.2


class Tally:
    """Sums over the turns that were seen."""

    def __init__(self) -> None:
        self.turns = self.breaks = self.faults = self.rebilled = 0
        self.estimated = False
        self.sessions: dict[str, int] = {}
        self.troubles: dict[str, str] = {}
        self._lock = threading.Lock()

    def add(self, event: Event) -> None:
        """Count an event."""
        with self._lock:
            if isinstance(event, TurnSeen):
                self.turns += 1
                self.sessions[event.session] = self.sessions.get(event.session, 0) + 1
                if event.is_break:
                    self.breaks += 1
                    self.faults += not all(c.deliberate for c in event.causes if c.primary)
                    self.rebilled += event.rebilled_tokens
                    self.estimated |= not event.tokens_exact
            elif isinstance(event, Trouble):
                self.troubles[event.what] = event.message


class Printer:
    """Prints events to a stream from its own thread. json: one JSON object per line instead of text."""

    def __init__(self, stream: TextIO, *, color: bool, json: bool = False) -> None:
        self._stream = stream
        self._color = color
        self._json = json
        self._queue: queue.Queue[str | None] = queue.Queue(_LINES)
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._print_all, name="prefixguard-print", daemon=True)
        self._thread.start()
        self.dropped = 0

    def __call__(self, event: Event) -> None:
        """Show an event; never blocks."""
        if self._json:
            self.line(msgspec.json.encode(event).decode())
            return
        for text in lines_of(event):
            self.line(text if self._color else click.unstyle(text))

    def line(self, text: str) -> None:
        """Print one line; never blocks."""
        try:
            self._queue.put_nowait(text)
        except queue.Full:
            self.dropped += 1

    def close(self, last: Iterable[str] = (), timeout: float = 5.0) -> None:
        """Print what waits, and the `last` lines, for at most about `timeout` seconds."""
        self._closing.set()
        with contextlib.suppress(queue.Full):
            for text in (*last, None):
                self._queue.put(text, timeout=timeout)
        self._thread.join(timeout)

    def _print_all(self) -> None:
        ended = False
        while not ended:
            lines = [self._queue.get()]
            with contextlib.suppress(queue.Empty):
                while True:
                    lines.append(self._queue.get_nowait())
            ended = None in lines
            text = "".join(f"{line}\n" for line in lines if line is not None)
            # A reader that went away (`| head`) ends the printing, not the proxy.
            with contextlib.suppress(OSError, ValueError):
                self._stream.write(text)
                self._stream.flush()
            # Lines that come fast after one another share a wake-up.
            self._closing.wait(_BREATH)


def wants_color(stream: TextIO, environ: Mapping[str, str] = os.environ) -> bool:
    """Whether to colour: on a terminal that can, unless NO_COLOR is set."""
    return stream.isatty() and not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"


def lines_of(event: Event) -> Iterator[str]:
    """The lines for an event, styled; none for those that say nothing to a reader."""
    match event:
        case TurnSeen():
            yield _turn_line(event)
            yield from _cause_lines(event)
        case Lost():
            yield click.style(f"not recorded: {event.reason}", fg="red")
        case Trouble():
            yield click.style(f"trouble with {event.what}: {event.message}", fg="red")
        case _:
            pass


def _turn_line(turn: TurnSeen) -> str:
    parts = [_verdict(turn), _session(turn)]
    if turn.model:
        parts.append(turn.model)
    if turn.prompt_tokens is not None:
        mark = "" if turn.tokens_exact else "~"
        parts.append(f"{mark}{turn.prompt_tokens:,} tokens")
    parts += _cache(turn)
    if turn.first_token_ms is not None:
        parts.append(f"first token {_seconds(turn.first_token_ms)}")
    elif turn.total_ms is not None:
        parts.append(_seconds(turn.total_ms))
    if turn.status is None:
        parts.append("no answer")
    elif turn.status >= 400:
        parts.append(f"HTTP {turn.status}")
    if turn.aborted:
        parts.append("aborted")
    if turn.note:
        parts.append(turn.note)
    return "  ".join(parts)


def _verdict(turn: TurnSeen) -> str:
    if turn.is_break:
        deliberate = all(cause.deliberate for cause in turn.causes if cause.primary)
        return click.style("break ", fg="yellow" if deliberate else "red", bold=not deliberate)
    if turn.index < 0:
        return click.style("-     ", dim=True)
    if turn.status is None or turn.status >= 400 or turn.aborted:
        return click.style("failed", fg="yellow")
    if turn.verdict == "less":
        return click.style("miss  ", fg="yellow")
    return click.style(f"{turn.shape or 'ok':<6}", fg="green")


def _session(turn: TurnSeen) -> str:
    name = turn.session[:12] or "session"
    return click.style(f"{name} #{turn.index}" if turn.index >= 0 else name, dim=True)


def _cache(turn: TurnSeen) -> Iterator[str]:
    if turn.reported_read is not None:
        yield f"cached {turn.reported_read:,}"
    if turn.read_high is not None and turn.read_low is not None:
        low, high = turn.read_low, turn.read_high
        same = low == high
        if turn.reported_read is None or turn.verdict not in ("as-predicted", ""):
            yield f"expected {high:,}" if same else f"expected {low:,} to {high:,}"


def _cause_lines(turn: TurnSeen) -> Iterator[str]:
    for cause in turn.causes:
        if cause.severity == "info" and not turn.is_break:
            continue
        where = f"  at {cause.pointer}" if cause.pointer else ""
        code = click.style(cause.code, fg="red" if cause.severity == "error" else "yellow")
        intended = " (deliberate)" if cause.deliberate else ""
        yield f"       {code} {cause.name}{intended}: {cause.message}{where}"
    if turn.is_break and turn.rebilled_tokens:
        mark = "" if turn.tokens_exact else "~"
        yield f"       {mark}{turn.rebilled_tokens:,} tokens that were cached are billed again"


def _seconds(ms: float) -> str:
    return f"{ms:.0f} ms" if ms < 1000 else f"{ms / 1000:.1f} s"


def ending(tally: Tally, health: Mapping[str, object]) -> Iterator[str]:
    """The last lines: what was recorded, what was found, what was lost and why."""
    recorded, lost = health["recorded"], health["lost"]
    text = f"recorded {recorded} exchange{'' if recorded == 1 else 's'}"
    if tally.turns:
        text += f", {tally.breaks} break{'' if tally.breaks == 1 else 's'}"
        if tally.breaks:
            mark = "~" if tally.estimated else ""
            text += f" ({mark}{tally.rebilled:,} tokens billed again)"
    yield text
    if not health.get("exchanges", recorded):
        yield "no request with a prompt came this way: the agent's settings may name another address, or a"
        yield "process of its own that was running already may have asked (see `prefixguard rules agents`)"
    if isinstance(lost, Mapping) and lost:
        yield "NOT recorded (the agent's requests went through all the same):"
        for reason, count in sorted(lost.items()):
            yield f"  {count} x {reason}"
    for what, message in tally.troubles.items():
        yield f"trouble with {what}: {message}"
    if health["unknown_api"]:
        yield f"{health['unknown_api']} requests to paths of no known API were recorded as they came"
