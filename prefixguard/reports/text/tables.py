"""Tables: a line per turn, a line per session."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from prefixguard.reports import figures
from prefixguard.reports.ranking import ranked
from prefixguard.reports.text.fitting import Column, FittingTable
from prefixguard.reports.text.line import cached_style, is_miss, predicted, what_happened
from prefixguard.reports.visible import one_line
from prefixguard.turn import Session, Turn

_QUIET_RUN = 3  # turns in a row of which nothing is to be said: shorter runs are shown
_SHORT_SESSION = 30  # turns: up to here every turn has its line
_HAPPENED = 27  # cells for a code and a name, before columns are left out for them
_NAME = 12  # cells of a session's name


def turns_table(session: Session, *, every_turn: bool = False) -> FittingTable:
    """A line per turn; in long sessions runs of quiet turns are drawn together."""
    threads = len({turn.thread for turn in session.turns}) > 1
    priced = any(turn.cost.actual is not None for turn in session.turns)
    timed = any(turn.timing.first_token_ms is not None for turn in session.turns)
    columns = [
        Column("turn"),
        *([Column("thread", drop=3)] if threads else []),
        Column("time", drop=1),
        Column("shape", "left", drop=5),
        Column("prompt"),
        Column("predicted", drop=2),
        Column("cached"),
        Column("re-billed"),
        *([Column("cost", drop=6)] if priced else []),
        *([Column("first\ntoken", drop=4)] if timed else []),
        Column("what happened", "left", least=_HAPPENED),
    ]
    table = FittingTable(columns)
    start = session.turns[0].t if session.turns else 0.0
    for run in _runs(session.turns, together=not every_turn and len(session.turns) > _SHORT_SESSION):
        if len(run) > _QUIET_RUN:
            empty = [Text()] * (len(columns) - 2)
            table.add_row([Text("..."), *empty, Text(f"{len(run)} quiet turns", "dim")])
            continue
        for turn in run:
            table.add_row(_cells(turn, start, threads=threads, priced=priced, timed=timed))
    return table


def _runs(turns: Sequence[Turn], *, together: bool) -> list[list[Turn]]:
    """Turns one by one, but quiet neighbours together."""
    runs: list[list[Turn]] = []
    quiet = False
    for turn in turns:
        now_quiet = together and not what_happened(turn)
        if now_quiet and quiet:
            runs[-1].append(turn)
        else:
            runs.append([turn])
        quiet = now_quiet
    return runs


def _cells(turn: Turn, start: float, *, threads: bool, priced: bool, timed: bool) -> list[Text]:
    size, estimated = figures.prompt_tokens(turn)
    style = "red" if turn.is_fault else "yellow" if turn.is_break or is_miss(turn) else ""
    read = turn.usage.read if turn.usage is not None else None
    cache = turn.cache
    again = turn.tokens.rebilled if turn.is_break else 0
    cells = [
        Text(str(turn.index), style),
        *([Text(str(turn.thread))] if threads else []),
        Text(figures.clock(turn.t - start), "dim"),
        Text(figures.shape(turn), style or "dim"),
        Text(figures.tokens(size, estimated=estimated)),
        Text(
            figures.UNKNOWN
            if cache is None
            else predicted(cache.read_low, cache.read_high).replace(" to ", "-"),
            "dim",
        ),
        Text(figures.tokens(read), cached_style(turn, figures.cached_share(turn))),
        Text(
            figures.tokens(again, estimated=not turn.tokens.exact) if again else figures.NONE,
            style if again else "dim",
        ),
    ]
    if priced:
        cells.append(Text(figures.bill(turn.cost)))
    if timed:
        cells.append(Text(figures.seconds(turn.timing.first_token_ms), "dim"))
    cells.append(what_happened(turn, brief=True))
    return cells


def sessions_table(sessions: Sequence[Session]) -> FittingTable:
    """A line per session."""
    priced = any(session.totals.cost.actual is not None for session in sessions)
    table = FittingTable([
        Column("session", "left", least=_NAME),
        Column("turns", drop=3),
        Column("breaks"),
        Column("decided", drop=1),
        Column("cached", drop=4),
        Column("re-billed"),
        *([Column("cost", drop=2), Column("avoidable", drop=5)] if priced else []),
        Column("mostly", "left", least=_HAPPENED),
    ])  # fmt: skip
    for session in sessions:
        totals = session.totals
        faults = totals.breaks - totals.breaks_deliberate
        order = ranked([session])
        told = bool(order) and order[0].severity != "info"
        again, estimated = totals.rebilled_tokens, figures.is_estimated(session)
        table.add_row([
            Text(one_line(session.id)),
            Text(f"{totals.turns:,}"),
            Text(figures.UNKNOWN, "dim")
            if figures.is_unseen(session)
            else Text(f"{faults:,}", "bold red" if faults else "green"),
            Text(f"{totals.breaks_deliberate:,}" if totals.breaks_deliberate else figures.NONE),
            Text(figures.percent(totals.hit_rate)),
            Text(figures.tokens(again, estimated=estimated) if again else figures.NONE),
            *([Text(figures.bill(totals.cost))] if priced else []),
            *([Text(figures.money(totals.cost.avoidable, totals.cost))] if priced else []),
            Text(f"{order[0].code} {order[0].name}" if told else ""),
        ])  # fmt: skip
    return table
