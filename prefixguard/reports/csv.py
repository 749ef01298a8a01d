"""A row per turn, for spreadsheets and data frames."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable

from prefixguard.reports import figures
from prefixguard.turn import Analysis, Session, Turn

type _Cell = str | int | float | None


def _seen(turn: Turn) -> bool:
    """Whether the record holds a turn's prompt; without it nobody knows whether it broke."""
    return "prompt" not in turn.unseen


_COLUMNS: dict[str, Callable[[Session, Turn], _Cell]] = {
    "session": lambda session, turn: session.id,
    "index": lambda session, turn: turn.index,
    "t": lambda session, turn: turn.t,
    "thread": lambda session, turn: turn.thread,
    "parent": lambda session, turn: turn.parent,
    "shape": lambda session, turn: None if figures.shape(turn) == figures.UNKNOWN else turn.shape,
    "api": lambda session, turn: turn.api,
    "model": lambda session, turn: turn.model,
    "upstream": lambda session, turn: turn.upstream,
    "status": lambda session, turn: turn.status,
    "break": lambda session, turn: int(turn.is_break) if _seen(turn) else None,
    "deliberate": lambda session, turn: int(turn.is_break and not turn.is_fault) if _seen(turn) else None,
    "code": lambda session, turn: " ".join(f.code for f in turn.findings if f.primary),
    "other_codes": lambda session, turn: " ".join(f.code for f in turn.findings if not f.primary),
    "pointer": lambda session, turn: turn.divergence.pointer if turn.divergence else None,
    "prompt_tokens": lambda session, turn: turn.tokens.prompt,
    "shared_tokens": lambda session, turn: turn.tokens.shared if _seen(turn) else None,
    "lost_tokens": lambda session, turn: turn.tokens.lost if _seen(turn) else None,
    "rebilled_tokens": lambda session, turn: turn.tokens.rebilled if _seen(turn) else None,
    "tokens_exact": lambda session, turn: int(turn.tokens.exact),
    "uncached": lambda session, turn: turn.usage.uncached if turn.usage else None,
    "read": lambda session, turn: turn.usage.read if turn.usage else None,
    "written": lambda session, turn: sum(turn.usage.write.values()) if turn.usage else None,
    "output": lambda session, turn: turn.usage.output if turn.usage else None,
    "cache_model": lambda session, turn: turn.cache.model if turn.cache else None,
    "read_low": lambda session, turn: turn.cache.read_low if turn.cache else None,
    "read_high": lambda session, turn: turn.cache.read_high if turn.cache else None,
    "verdict": lambda session, turn: turn.cache.verdict if turn.cache else None,
    "first_token_ms": lambda session, turn: turn.timing.first_token_ms,
    "total_ms": lambda session, turn: turn.timing.total_ms,
    "currency": lambda session, turn: turn.cost.currency,
    "cost": lambda session, turn: turn.cost.actual,
    "cost_uncached": lambda session, turn: turn.cost.uncached,
    "cost_ideal": lambda session, turn: turn.cost.ideal,
    "cost_avoidable": lambda session, turn: turn.cost.avoidable,
    "cost_estimated": lambda session, turn: int(turn.cost.estimated),
}


def to_csv(analysis: Analysis) -> str:
    """All turns of all sessions, RFC 4180 with a header. Unknown is an empty cell, never 0."""
    stream = io.StringIO()
    writer = csv.writer(stream)
    writer.writerow(_COLUMNS)
    for session in analysis.sessions:
        for turn in session.turns:
            writer.writerow([_cell(column(session, turn)) for column in _COLUMNS.values()])
    return stream.getvalue()


def _cell(value: _Cell) -> _Cell:
    """Spreadsheets run a cell that begins like a formula; names out of requests must not become one."""
    if isinstance(value, str):
        # Halves of surrogate pairs cannot be written in UTF-8.
        value = value.encode("utf-8", "replace").decode("utf-8")
        if value.startswith(("=", "+", "-", "@", "\t", "\r")):
            return "'" + value
    return value
