"""What marks a turn on the page: one word, that has a sign, a colour and a name there."""

from __future__ import annotations

from typing import Literal

from prefixguard.reports.text.line import is_miss
from prefixguard.turn import Turn

type TurnMark = Literal["", "break", "decided", "miss", "remark", "failed", "unread"]
"""A break that nobody decided on; one that was a decision; a miss without a change; no answer, or a
refused request; a request that could not be understood; a remark on a turn that is none of these."""


def mark_of(turn: Turn) -> TurnMark:
    """The mark of a turn; "" for one of which nothing is to be said."""
    if turn.is_break:
        return "break" if turn.is_fault else "decided"
    if turn.note:
        return "unread"
    if turn.status is None or turn.status >= 400:
        return "failed"
    if is_miss(turn):
        return "miss"
    return "remark" if any(finding.severity != "info" for finding in turn.findings) else ""
