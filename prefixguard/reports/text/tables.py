"""Tables: a line per turn, a line per session."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.table import Table
from rich.text import Text

from prefixguard.reports import figures
from prefixguard.reports.ranking import ranked
from prefixguard.reports.text.line import cached_style, is_miss, predicted, what_happened
from prefixguard.reports.visible import one_line
from prefixguard.turn import Session, Turn

_QUIET_RUN = 3  # turns in a row of which nothing is to be said: shorter runs are shown
_SHORT_SESSION = 30  # turns: up to here every turn has its line


def turns_table(session: Session, *, every_turn: bool = False) -> Table:
    """A line per turn; in long sessions runs of quiet turns are drawn together."""
    table = _table()
    table.add_column("turn", justify="right", no_wrap=True)
    threads = len({turn.thread for turn in session.turns}) > 1
    if threads:
        table.add_column("thread", justify="right", no_wrap=True)
    table.add_column("time", justify="right", no_wrap=True)
    table.add_column("shape", no_wrap=True)
    table.add_column("prompt", justify="right", no_wrap=True)
    table.add_column("predicted", justify="right", no_wrap=True)
    table.add_column("cached", justify="right", no_wrap=True)
    table.add_column("re-billed", justify="right", no_wrap=True)
    priced = any(turn.cost.actual is not None for turn in session.turns)
    if priced:
        table.add_column("cost", justify="right", no_wrap=True)
    timed = any(turn.timing.first_token_ms is not None for turn in session.turns)
    if timed:
        table.add_column("first\ntoken", justify="right", no_wrap=True)
    table.add_column("what happened", overflow="fold", ratio=1)
    start = session.turns[0].t if session.turns else 0.0
    for run in _runs(session.turns, together=not every_turn and len(session.turns) > _SHORT_SESSION):
        if len(run) > _QUIET_RUN:
            empty = [""] * (len(table.columns) - 2)
            table.add_row("...", *empty, Text(f"{len(run)} quiet turns", "dim"))
            continue
        for turn in run:
            table.add_row(*_cells(turn, start, threads=threads, priced=priced, timed=timed))
    return table


def _table() -> Table:
    return Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)


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


def sessions_table(sessions: Sequence[Session]) -> Table:
    """A line per session."""
    table = _table()
    table.add_column("session", overflow="fold")
    table.add_column("turns", justify="right")
    table.add_column("breaks", justify="right")
    table.add_column("decided", justify="right")
    table.add_column("cached", justify="right")
    table.add_column("re-billed", justify="right")
    priced = any(session.totals.cost.actual is not None for session in sessions)
    if priced:
        table.add_column("cost", justify="right")
        table.add_column("avoidable", justify="right")
    table.add_column("mostly", overflow="fold")
    for session in sessions:
        totals = session.totals
        faults = totals.breaks - totals.breaks_deliberate
        order = ranked([session])
        table.add_row(
            one_line(session.id),
            f"{totals.turns:,}",
            Text(f"{faults:,}", "bold red" if faults else "green"),
            f"{totals.breaks_deliberate:,}" if totals.breaks_deliberate else figures.NONE,
            figures.percent(totals.hit_rate),
            figures.tokens(totals.rebilled_tokens, estimated=figures.is_estimated(session))
            if totals.rebilled_tokens
            else figures.NONE,
            *([figures.bill(totals.cost)] if priced else []),
            *([figures.money(totals.cost.avoidable, totals.cost)] if priced else []),
            f"{order[0].code} {order[0].name}" if order and order[0].severity != "info" else "",
        )
    return table
