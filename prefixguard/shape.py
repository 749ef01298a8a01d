"""The shape of a turn: what the request is to its parent, before anybody asks why."""

from __future__ import annotations

from prefixguard.divergence import Parting
from prefixguard.lineage import Match, Node
from prefixguard.rendering.prefixes import shared_characters, shared_suffix
from prefixguard.turn import Shape

LEAST_REBILLED = 32


def shape_of(match: Match | None, fresh: Node, parting: Parting | None, lost: int, rebilled: int) -> Shape:
    """The first shape that fits: first, retry, append, rewind or fork, side, changed."""
    if match is None:
        return "first"
    parent = match.node
    if parting is None and match.relation == "retry":
        return "retry"
    branch: Shape = "fork" if _overlapping(parent, fresh) else "rewind"
    shorter = len(fresh.prompt.segments) < len(parent.prompt.segments)
    if parting is None and not shorter:
        return branch if parent.echoed else "append"
    if parting is None:
        return branch
    if not match.echo and _shares_less_than_half(parent, fresh) and match.relation == "quoted":
        return "side"
    if lost == 0 and rebilled == 0:
        return "append"
    if not match.echo and (_in_tail(parent, parting) or rebilled < LEAST_REBILLED):
        return branch
    if not match.echo and _shares_less_than_half(parent, fresh):
        return "side"
    return "changed"


def _overlapping(parent: Node, fresh: Node) -> bool:
    return parent.end is not None and fresh.t < parent.end


def _in_tail(parent: Node, parting: Parting) -> bool:
    """Whether the divergence lies behind the parent's last assistant segment."""
    if parting.parameter is not None:
        return False
    history = parent.prompt.history
    last = next((i for i in range(len(history) - 1, -1, -1) if history[i][1].role == "assistant"), -1)
    return parting.boundary > parent.prompt.head_length + last


def _shares_less_than_half(parent: Node, fresh: Node) -> bool:
    """Whether less than half of the parent's head stands in the new one, character by character.

    A clock in a long system text leaves the rest of it shared; the prompt of a
    helper request shares next to nothing.
    """
    own = parent.prompt.segments[: parent.prompt.head_length]
    new = fresh.prompt.segments[: fresh.prompt.head_length]
    there = {s.exact for s in new}
    left = [s.text for s in new if s.exact not in {o.exact for o in own}]
    total = shared = 0
    for segment in own:
        total += len(segment.text)
        if segment.exact in there:
            shared += len(segment.text)
        else:
            shared += max((_alike_length(segment.text, text) for text in left), default=0)
    return total > 0 and shared * 2 < total


def _alike_length(a: str, b: str) -> int:
    """Characters that two texts share at their ends."""
    start = shared_characters(a, b)
    return start + shared_suffix(a[start:], b[start:])
