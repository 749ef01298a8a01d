"""The list of recorded sessions, before anything is analysed anew."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich import box
from rich.table import Table
from rich.text import Text

from prefixguard.errors import InputError
from prefixguard.reports import figures
from prefixguard.reports.json import turn_from_json
from prefixguard.reports.visible import one_line

if TYPE_CHECKING:
    from prefixguard.store import SessionRow


@dataclass(frozen=True, slots=True)
class StoredSession:
    """A recorded session, and what the recording found out while it ran.

    breaks: faults among its turns; None where turns were not kept.
    """

    row: SessionRow
    breaks: int | None
    rebilled_tokens: int | None
    exact: bool


def stored_session(row: SessionRow, kept_turns: Iterable[bytes]) -> StoredSession:
    """A session's row with the sums of its kept turns. Turns kept by another version count as not
    kept; of those whose prompt nobody saw the breaks are unknown."""
    breaks = tokens = count = 0
    exact = True
    for data in kept_turns:
        try:
            turn = turn_from_json(data)
        except InputError:
            return StoredSession(row, None, None, False)
        if "prompt" in turn.unseen:
            return StoredSession(row, None, None, False)
        count += 1
        exact = exact and turn.tokens.exact
        breaks += turn.is_fault
        tokens += turn.tokens.rebilled if turn.is_break else 0
    # Turns are kept after their exchange: with fewer of them the sums would be too low.
    if count < row.exchanges:
        return StoredSession(row, None, None, False)
    return StoredSession(row, breaks, tokens, exact)


def stored_table(sessions: Sequence[StoredSession]) -> Table:
    """A line per session, the newest last; times in local time."""
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 2, 0, 0), pad_edge=False, show_edge=False)
    table.add_column("session", overflow="fold", style="bold")
    table.add_column("agent", overflow="fold")
    table.add_column("started", no_wrap=True)
    table.add_column("length", no_wrap=True, justify="right")
    table.add_column("requests", no_wrap=True, justify="right")
    table.add_column("breaks", no_wrap=True, justify="right")
    table.add_column("re-billed", no_wrap=True, justify="right")
    partial = any(session.row.recording != {"full"} for session in sessions)
    if partial:
        table.add_column("recording", no_wrap=True)
    for session in sessions:
        row = session.row
        started = datetime.datetime.fromtimestamp(row.first_t).astimezone()
        breaks = session.breaks
        cells = [
            Text(one_line(row.id)),
            Text(one_line(row.agent) if row.agent else figures.NONE),
            Text(f"{started:%Y-%m-%d %H:%M}"),
            Text(figures.duration(row.last_t - row.first_t)),
            Text(f"{row.exchanges:,}"),
            Text(figures.UNKNOWN if breaks is None else f"{breaks:,}", "bold red" if breaks else ""),
            Text(figures.tokens(session.rebilled_tokens, estimated=not session.exact)),
        ]
        if partial:
            cells.append(Text(", ".join(sorted(row.recording))))
        table.add_row(*cells)
    return table


def stored_to_list(sessions: Iterable[StoredSession]) -> list[dict[str, Any]]:
    """The sessions for other programs; unknown is null."""
    return [
        {
            "id": session.row.id,
            "key": {"kind": session.row.key_kind, "name": session.row.key_name},
            "agent": session.row.agent,
            "first_t": session.row.first_t,
            "last_t": session.row.last_t,
            "exchanges": session.row.exchanges,
            "recording": sorted(session.row.recording),
            "breaks": session.breaks,
            "rebilled_tokens": session.rebilled_tokens,
        }
        for session in sessions
    ]
