"""A prompt as its segments in rendered order, each with what the cache does for it: cached, lost or new.

The state is that of most of a segment's tokens. What is cached is what the
server says it read; where it says nothing, what it should have read.
"""

from __future__ import annotations

from collections import Counter as Multiset
from collections.abc import Iterable
from itertools import groupby
from typing import Literal

import msgspec

from prefixguard.prompt import Group, Segment
from prefixguard.rendering.prefixes import shared_characters, shared_suffix
from prefixguard.tokens.layout import Layout, common_segments
from prefixguard.turn import Turn

type State = Literal["cached", "lost", "new"]
type Basis = Literal["reported", "predicted", "shared"]

EXCERPT = 160
"""Characters of a segment's text that stand in the list."""

_SLACK_TOKENS = 1024
_SLACK_SHARE = 0.03


class SegmentEntry(msgspec.Struct, frozen=True):
    """One segment of a prompt.

    ref: identity of its text; the same text has the same one in every turn.
    pointer: JSON Pointer into the request body. count: its tokens by our
    counting, times the prompt's `scale` those of the server. chars: length of
    its text. excerpt: the start of it. breakpoint: the lifetime asked for where
    the client set a breakpoint on it ("" for the default), else None.
    """

    ref: str
    pointer: str
    group: Group
    kind: str
    role: str
    name: str | None
    count: int
    chars: int
    excerpt: str
    breakpoint: str | None


class PromptView(msgspec.Struct, frozen=True):
    """A prompt laid out. states: runs of (state, segments), in rendered order, together all segments.

    total: tokens of the whole prompt. estimated: whether segments' tokens are.
    read_to: up to which token the cache was read, and basis: who says so: the
    server's report, the prediction, or only what is shared with the parent.
    parted: (position of the segment, characters into it) where the prompt parts
    from the one it continues. parameters: (name, JSON value) of those in the
    cache key.
    """

    total: int
    scale: float
    estimated: bool
    method: str
    segments: list[SegmentEntry]
    states: list[tuple[State, int]]
    read_to: int
    basis: Basis
    parted: tuple[int, int] | None
    parameters: list[tuple[str, str]]


def prompt_view(turn: Turn, layout: Layout, earlier: Layout | None) -> PromptView:
    """The prompt of a turn. earlier: the prompt that it continues, in the same rendered order."""
    prompt = layout.prompt
    read_to, basis = _read_to(turn)
    marks = {boundary - 1: mark for boundary, mark in layout.marks}
    counts = layout.counts
    entries = [
        SegmentEntry(
            ref=segment.exact.hex(),
            pointer=base + segment.pointer,
            group=prompt.group(i),
            kind=segment.kind.value,
            role=segment.role,
            name=segment.name,
            count=counts[i],
            chars=len(segment.text),
            excerpt=segment.text[:EXCERPT],
            breakpoint=(marks[i].ttl or "") if i in marks else None,
        )
        for i, (base, segment) in enumerate(prompt.entries)
    ]
    return PromptView(
        total=layout.total,
        scale=layout.scale,
        estimated=not turn.tokens.exact,
        method=turn.tokens.method,
        segments=entries,
        states=_runs(states(turn, layout, earlier, read_to)),
        read_to=read_to,
        basis=basis,
        parted=_parted(turn, layout, earlier),
        parameters=[(p.name, p.value) for p in prompt.parameters],
    )


def states(turn: Turn, layout: Layout, earlier: Layout | None, read_to: int) -> list[State]:
    """The state of each segment. read_to: up to which token the cache was read."""
    ends, segments = layout.ends, layout.prompt.segments
    if turn.is_break and turn.divergence is not None and turn.donor in (None, turn.parent):
        # Nothing behind it can be read of the parent, whatever rounding and estimates make of the figures.
        certain = turn.divergence.certainty == "certain"
        read_to = min(read_to, turn.divergence.token_offset) if certain else read_to
    boundary = common_segments(earlier.prompt, layout.prompt) if earlier is not None else 0
    slack = max(_SLACK_TOKENS, round(_SLACK_SHARE * layout.total))
    # What rounding down to a block takes from a prompt that only grew is nobody's loss.
    forgiven = not turn.is_break and ends[boundary] - read_to <= slack
    left = list(earlier.prompt.segments[boundary:]) if earlier is not None else []
    before = Multiset(segment.alike for segment in left)
    found: list[State] = []
    for i, segment in enumerate(segments):
        if ends[i] + ends[i + 1] <= 2 * read_to:
            found.append("cached")
        elif i < boundary:
            found.append("new" if forgiven else "lost")
        elif not turn.is_break:
            found.append("new")
        elif before[segment.alike] > 0:
            before[segment.alike] -= 1
            found.append("lost")
        else:
            found.append("lost" if i == boundary and left and _mostly(left[0], segment) else "new")
    return found


def _mostly(old: Segment, new: Segment) -> bool:
    """Whether more than half of a changed text stood there before."""
    if old.kind is not new.kind or old.role != new.role:
        return False
    start = shared_characters(old.text, new.text)
    end = min(shared_suffix(old.text, new.text), len(new.text) - start)
    return 2 * (start + end) > len(new.text)


def _read_to(turn: Turn) -> tuple[int, Basis]:
    if turn.usage is not None and turn.usage.read is not None:
        return turn.usage.read, "reported"
    if turn.cache is not None:
        return turn.cache.read_high, "predicted"
    return turn.tokens.shared, "shared"


def _parted(turn: Turn, layout: Layout, earlier: Layout | None) -> tuple[int, int] | None:
    divergence = turn.divergence
    if divergence is None or earlier is None:
        return None
    if divergence.kind == "parameter":
        return None
    boundary = common_segments(earlier.prompt, layout.prompt)
    return (boundary, divergence.char_offset) if boundary < len(layout.counts) else None


def _runs(found: Iterable[State]) -> list[tuple[State, int]]:
    return [(state, sum(1 for _ in group)) for state, group in groupby(found)]
