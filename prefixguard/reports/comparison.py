"""Two sessions side by side: the same agent before and after a fix, say."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from prefixguard.reports import figures
from prefixguard.reports.ranking import misses
from prefixguard.turn import Cost, Session, Totals

type _Value = float | int | None


@dataclass(frozen=True, slots=True)
class Measure:
    """One figure of both sessions.

    before, after: None where it is unknown. less_is_better: None where it is neither.
    """

    name: str
    label: str
    before: _Value
    after: _Value
    less_is_better: bool | None
    written: Callable[[_Value, Session], str]

    @property
    def better(self) -> bool | None:
        """Whether the second session is the better one in this; None when equal, unknown or neither."""
        if self.before is None or self.after is None or self.less_is_better is None:
            return None
        if self.before == self.after:
            return None
        return (self.after < self.before) is self.less_is_better


def compare_sessions(before: Session, after: Session) -> list[Measure]:
    """The figures that a fix should move."""

    def measure(
        name: str,
        label: str,
        less_is_better: bool | None,
        value: Callable[[Session], _Value],
        written: Callable[[_Value, Session], str],
    ) -> Measure:
        return Measure(name, label, value(before), value(after), less_is_better, written)

    return [
        measure("turns", "turns", None, lambda s: s.totals.turns, _count),
        measure("breaks", "breaks", True, _breaks, _count),
        measure("breaks_deliberate", "decisions", None, lambda s: s.totals.breaks_deliberate, _count),
        measure("misses", "misses without a change", True, misses, _count),
        measure("hit_rate", "read from the cache", False, lambda s: s.totals.hit_rate, _share),
        measure("prompt_tokens", "prompt tokens sent", None, _sent, _sent_tokens),
        measure("rebilled_tokens", "tokens re-billed", True, lambda s: s.totals.rebilled_tokens, _tokens),
        measure(
            "rewrite_factor", "times the largest prompt was computed", True, figures.rewrite_factor, _times
        ),
        measure("first_token_ms", "median time to the first token", True, _first_token_ms, _seconds),
        measure("cost", "cost", True, lambda s: s.totals.cost.actual, _money),
        measure("cost_avoidable", "avoidable cost", True, lambda s: s.totals.cost.avoidable, _money),
    ]


def _breaks(session: Session) -> int | None:
    """Breaks that nobody decided on; unknown where no prompt was seen."""
    if figures.is_unseen(session):
        return None
    return session.totals.breaks - session.totals.breaks_deliberate


def merged(name: str, sessions: Sequence[Session]) -> Session:
    """Several sessions as one, for comparing whole logs; sums that are unknown in one are unknown.

    Raises ValueError when there are none.
    """
    if len(sessions) == 1:
        return sessions[0]
    if not sessions:
        raise ValueError("no sessions to merge")
    turns = tuple(turn for session in sessions for turn in session.turns)
    told = [turn.usage for turn in turns if turn.usage is not None and turn.usage.read is not None]
    total = sum(usage.total for usage in told)
    costs = [session.totals.cost for session in sessions]

    def summed(amounts: list[float | None]) -> float | None:
        known = [amount for amount in amounts if amount is not None]
        return sum(known) if len(known) == len(amounts) else None

    return Session(
        id=name,
        key_kind=sessions[0].key_kind,
        key_name=sessions[0].key_name,
        turns=turns,
        totals=Totals(
            turns=len(turns),
            breaks=sum(session.totals.breaks for session in sessions),
            breaks_deliberate=sum(session.totals.breaks_deliberate for session in sessions),
            rebilled_tokens=sum(session.totals.rebilled_tokens for session in sessions),
            hit_rate=sum(usage.read or 0 for usage in told) / total if total else None,
            cost=Cost(
                costs[0].currency,
                summed([cost.actual for cost in costs]),
                summed([cost.uncached for cost in costs]),
                summed([cost.ideal for cost in costs]),
                summed([cost.avoidable for cost in costs]),
                any(cost.estimated for cost in costs),
            ),
            by_code={},
        ),
    )


def codes(before: Session, after: Session) -> list[tuple[str, str, int, int]]:
    """(code, name, turns before, turns after) of every finding, the most frequent first."""
    names: dict[str, str] = {}
    counts: dict[str, list[int]] = {}
    for side, session in enumerate((before, after)):
        for turn in session.turns:
            for code, name in {finding.code: finding.name for finding in turn.findings}.items():
                names[code] = name
                counts.setdefault(code, [0, 0])[side] += 1
    rows = [(code, names[code], one, other) for code, (one, other) in counts.items()]
    return sorted(rows, key=lambda row: (-max(row[2], row[3]), row[0]))


def comparison_to_dict(before: Session, after: Session) -> dict[str, Any]:
    """The comparison for other programs, `prefixguard-diff/1`."""
    return {
        "schema": "prefixguard-diff/1",
        "kind": "sessions",
        "before": before.id,
        "after": after.id,
        "measures": {
            m.name: {"before": m.before, "after": m.after, "better": m.better}
            for m in compare_sessions(before, after)
        },
        "codes": {
            code: {"name": name, "before": one, "after": other}
            for code, name, one, other in codes(before, after)
        },
    }


def _sent(session: Session) -> int:
    return sum(figures.prompt_tokens(turn)[0] for turn in session.turns)


def _first_token_ms(session: Session) -> float | None:
    times = [
        turn.timing.first_token_ms
        for turn in session.turns
        if turn.parent is not None and turn.timing.first_token_ms is not None
    ]
    return median(times) if times else None


def _count(value: _Value, session: Session) -> str:
    return figures.UNKNOWN if value is None else f"{value:,}"


def _share(value: _Value, session: Session) -> str:
    return figures.percent(value)


def _tokens(value: _Value, session: Session) -> str:
    return figures.exact_tokens(
        None if value is None else int(value), estimated=bool(value) and figures.is_estimated(session)
    )


def _sent_tokens(value: _Value, session: Session) -> str:
    estimated = any(figures.prompt_tokens(turn)[1] for turn in session.turns)
    return figures.exact_tokens(None if value is None else int(value), estimated=estimated)


def _times(value: _Value, session: Session) -> str:
    return figures.UNKNOWN if value is None else f"{value:.1f}"


def _seconds(value: _Value, session: Session) -> str:
    return figures.seconds(value)


def _money(value: _Value, session: Session) -> str:
    return figures.money(value, session.totals.cost)
