"""What formatting leaves of a clock: a time of day, a date, or a span of time.

Part of the third step of the linter. `PG101` becomes `PG102` when only the day
is left, and `PG103` when it is subtracted from.
"""

from __future__ import annotations

from prefixguard.lint.facts import At
from prefixguard.lint.knowledge import Knowledge
from prefixguard.lint.tables import DAY
from prefixguard.lint.values import Change

_CLOCKS = {"PG101", "PG103"}


def coarse(change: Change) -> Change:
    """Only the day, or less, is left of a clock."""
    if change.code in _CLOCKS and change.grain:
        return change._replace(
            code="PG102", grain="day", lifetime=max(change.lifetime, DAY), what=f"the date from {change.what}"
        )
    return change


def formatted(change: Change, spec: str, knowledge: Knowledge) -> Change:
    """A clock printed with a format: `%Y-%m-%d` leaves the day, `%H:%M` the minute."""
    if change.code not in _CLOCKS or not change.grain or not spec:
        return change
    marks = knowledge.fine_marks
    plain = spec
    if knowledge.language == "typescript":
        import re

        plain = re.sub(r"\[[^\]]*\]|'[^']*'|MMMM?|Mo|do?|dddd?", "", spec)
    elif "%" not in spec:
        # `{value:>20}` or a format without directives leaves the clock as it is.
        return change if not any(mark in spec for mark in ("YYYY", "yyyy")) else _by_words(change, spec)
    if any(mark in plain for mark in marks):
        return change
    return coarse(change)


def _by_words(change: Change, spec: str) -> Change:
    return change if any(mark in spec for mark in ("H", "h", "mm", "ss")) else coarse(change)


def elapsed(change: Change, at: At) -> Change:
    """A difference of clocks."""
    if change.code == "PG101" and change.grain:
        return change._replace(code="PG103", what="a span of time until now")
    return change
