"""One session as data: its turns, light enough to draw a timeline of some thousands, and what to mend."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from prefixguard.reports import figures
from prefixguard.reports.html.marks import TurnMark, mark_of
from prefixguard.reports.html.overview import Cause, Listed, SessionEntry, causes, session_entry
from prefixguard.reports.text.line import what_happened
from prefixguard.rulebook import FindingRule
from prefixguard.turn import Turn, Verdict


class TurnEntry(msgspec.Struct, frozen=True):
    """One turn in the timeline and in the list.

    t: seconds since the session began. prompt: tokens of the whole prompt, by
    the server's count where there is one; estimated: it is ours. roughly: our own
    counts (re-billed tokens) are estimates. read, written,
    uncached: as the server reported; read is None where it does not say, and
    all are None where it reported nothing. rebilled: of what was written or
    uncached, what had been cached before (0 unless the turn is a break).
    predicted: tokens that should have been read, least and most; verdict: the
    report against it. cost,
    avoidable: money in the session's currency. what: the terminal report's
    phrase; brief: without place and figures.
    """

    index: int
    t: float
    thread: int
    parent: int | None
    shape: str
    prompt: int
    estimated: bool
    roughly: bool
    read: int | None
    written: int | None
    uncached: int | None
    output: int | None
    rebilled: int
    predicted: tuple[int, int] | None
    verdict: Verdict | None
    cost: float | None
    avoidable: float | None
    first_token_ms: float | None
    total_ms: float | None
    mark: TurnMark
    what: str
    brief: str
    codes: list[str]


class SessionView(msgspec.Struct, frozen=True):
    """One session: its line in the list, its turns in the order of the log, its causes."""

    entry: SessionEntry
    turns: list[TurnEntry]
    causes: list[Cause]


def session_view(listed: Listed, findings: Mapping[str, FindingRule]) -> SessionView:
    """The page of one session. findings: the catalogue."""
    turns = listed.session.turns
    start = turns[0].t if turns else 0.0
    return SessionView(
        entry=session_entry(listed),
        turns=[turn_entry(turn, start) for turn in turns],
        causes=causes([listed], findings),
    )


def turn_entry(turn: Turn, start: float) -> TurnEntry:
    """One turn of the timeline. start: when its session began, in the turn's own time."""
    size, estimated = figures.prompt_tokens(turn)
    usage, cache = turn.usage, turn.cache
    ordered = sorted(turn.findings, key=lambda finding: not finding.primary)
    return TurnEntry(
        index=turn.index,
        t=turn.t - start,
        thread=turn.thread,
        parent=turn.parent,
        shape=turn.shape,
        prompt=size,
        estimated=estimated,
        roughly=not turn.tokens.exact,
        read=usage.read if usage else None,
        written=sum(usage.write.values()) if usage else None,
        uncached=usage.uncached if usage else None,
        output=usage.output if usage else None,
        rebilled=turn.tokens.rebilled if turn.is_break else 0,
        predicted=(cache.read_low, cache.read_high) if cache else None,
        verdict=cache.verdict if cache else None,
        cost=turn.cost.actual,
        avoidable=turn.cost.avoidable,
        first_token_ms=turn.timing.first_token_ms,
        total_ms=turn.timing.total_ms,
        mark=mark_of(turn),
        what=what_happened(turn).plain,
        brief=what_happened(turn, brief=True).plain,
        codes=list(dict.fromkeys(finding.code for finding in ordered)),
    )
