"""One turn on one line: what the proxy prints while an agent runs, and part of the turns' table."""

from __future__ import annotations

from rich.text import Text

from prefixguard.finding import Finding
from prefixguard.reports import figures
from prefixguard.reports.visible import one_line
from prefixguard.turn import Turn

SEVERITY_STYLE = {"error": "red", "warning": "yellow", "info": "cyan"}


def turn_line(turn: Turn, *, session: str | None = None) -> Text:
    """One line about a turn, in columns that line up from line to line.

    session: a short name to put in front where several sessions are mixed.
    Print it with `soft_wrap=True`, so that it stays one line in a pipe.
    """
    size, estimated = figures.prompt_tokens(turn)
    line = Text(overflow="ellipsis", no_wrap=True)
    if session is not None:
        line.append(f"{one_line(session)[:8]:<8} ", "dim")
    line.append(f"{turn.index:>4} ", "bold")
    line.append(f"{figures.shape(turn):<7} ", _shape_style(turn))
    line.append(f"{figures.tokens(size, estimated=estimated):>7} tokens ")
    share = figures.cached_share(turn)
    line.append(f"{figures.percent(share):>6} cached ", cached_style(turn, share))
    line.append(f"{figures.seconds(turn.timing.first_token_ms):>7}", "dim")
    happened = what_happened(turn)
    if happened:
        line.append("  ")
        line.append_text(happened)
    return line


def what_happened(turn: Turn, *, brief: bool = False) -> Text:
    """What a reader should know of a turn, in one phrase; empty for a turn of which nothing is to be said.

    brief: only what it is, not where and how much.
    """
    parts: list[Text] = []
    if turn.note:
        parts.append(Text(f"not understood: {one_line(turn.note)}", "yellow"))
    if turn.status is None:
        parts.append(Text("no answer", "yellow"))
    elif turn.status >= 400:
        parts.append(Text(f"failed with status {turn.status}", "yellow"))
    if turn.aborted:
        parts.append(Text("aborted by the client", "yellow"))
    primary = [finding for finding in turn.findings if finding.primary]
    if turn.is_break:
        parts.append(_break(turn, primary, brief=brief))
    elif is_miss(turn):
        parts.append(_miss(turn, primary, brief=brief))
    told = turn.is_break or is_miss(turn)
    parts.extend(
        Text(f"{finding.code} {finding.name}", SEVERITY_STYLE[finding.severity])
        for finding in turn.findings
        if not (finding.primary and told) and finding.severity != "info"
    )
    return Text("; ").join(parts)


def is_miss(turn: Turn) -> bool:
    """Whether the server read less than it should have, although nothing parted."""
    return not turn.is_break and turn.cache is not None and turn.cache.verdict == "less"


def cached_style(turn: Turn, share: float | None) -> str:
    """Colour of the cached share: what is good or bad depends on what could have been read."""
    if share is None:
        return "dim"
    if turn.is_break or is_miss(turn):
        return "red" if turn.is_fault else "yellow"
    return "green" if share >= 0.5 else ""


def _shape_style(turn: Turn) -> str:
    if turn.is_break:
        return "bold red" if turn.is_fault else "yellow"
    return "dim"


def _break(turn: Turn, primary: list[Finding], *, brief: bool) -> Text:
    text = Text("break: " if turn.is_fault else "decided: ", "bold red" if turn.is_fault else "yellow")
    if primary:
        text.append(", ".join(f"{finding.code} {finding.name}" for finding in primary), "bold")
    else:
        text.append("cause unknown", "bold")
    if brief:
        return text
    place = turn.divergence.pointer if turn.divergence else (primary[0].pointer if primary else "")
    if place:
        text.append(f" at {one_line(place)}")
    again = figures.tokens(turn.tokens.rebilled, estimated=not turn.tokens.exact)
    text.append(f", {again} tokens re-billed")
    if turn.cost.avoidable is not None and turn.cost.avoidable > 0:
        text.append(f", {figures.money(turn.cost.avoidable, turn.cost)}")
    return text


def _miss(turn: Turn, primary: list[Finding], *, brief: bool) -> Text:
    cache = turn.cache
    assert cache is not None
    text = Text("miss: ", "yellow")
    if primary:
        text.append(", ".join(f"{finding.code} {finding.name}" for finding in primary), "bold")
        if brief:
            return text
        text.append(", ")
    expected = predicted(cache.read_low, cache.read_high)
    text.append(f"read {figures.tokens(cache.reported_read)} of {expected} predicted")
    return text


def predicted(low: int, high: int) -> str:
    """A predicted interval of cached tokens: `8.2k`, or `7.9k to 8.2k`."""
    one, other = figures.tokens(low), figures.tokens(high)
    return one if one == other else f"{one} to {other}"
