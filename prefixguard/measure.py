"""The numbers of one turn: what could be read, what was kept, lost and re-billed, and how that was counted.

Three ways to count, the best that is to be had: token ids rendered by the
server itself; the text that its chat template makes; segments counted one by
one. Names of causes always come from the segments.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from dataclasses import dataclass

from prefixguard.caches.blocks import Blocks
from prefixguard.caches.model import CacheModel, Readable, Request
from prefixguard.caches.radix import Radix
from prefixguard.caches.rule import CacheRule
from prefixguard.caches.slots import Slots
from prefixguard.divergence import Parting, rebilled, token_offset
from prefixguard.rendering.ids import common_prefix
from prefixguard.tokens.counter import Counter
from prefixguard.tokens.layout import Layout


@dataclass(frozen=True, slots=True)
class Numbers:
    """Tokens of one turn. parted: the server sees the prompts part, whatever the JSON says."""

    prompt: int
    shared: int
    keep: int
    got: int
    rebilled: int
    readable: Readable
    parted: bool
    method: str
    exact: bool

    @property
    def lost(self) -> int:
        """What a pure append would have read, and this prompt cannot."""
        return max(0, self.keep - self.got)


def partial_tokens(
    layouts: Callable[[int], Layout | None], counter: Counter, also: int | None
) -> Callable[..., int]:
    """How many tokens of a differing segment a request shares with a donor, or with the exchange `also`."""

    def shared(request: Request, boundary: int, donor: int) -> int:
        from prefixguard.rendering.prefixes import shared_characters

        best = 0
        mine = request.layout.prompt.segments[boundary]
        for index in {donor, also}:
            other = layouts(index) if index is not None else None
            if other is None or boundary >= len(other.counts):
                continue
            if other.chain[boundary] != request.layout.chain[boundary]:
                continue
            theirs = other.prompt.segments[boundary]
            if theirs.kind is not mine.kind or theirs.role != mine.role:
                continue
            best = max(best, shared_characters(theirs.text, mine.text))
        if not best:
            return 0
        return token_offset(request.layout, boundary, best, counter) - request.layout.ends[boundary]

    return shared


def by_segments(
    layout: Layout,
    earlier: Layout | None,
    parting: Parting | None,
    readable: Readable,
    cache: CacheModel,
    parent_cache: CacheModel | None,
    request: Request,
    parent: Request | None,
    counter: Counter,
    grain: int = 0,
) -> Numbers:
    """Counted segment by segment. grain: the block to which the cache rounds hits down, 0 for none."""
    exact = counter.exact and layout.prompt.raw
    if earlier is None or parent is None or parent_cache is None:
        return Numbers(layout.total, 0, 0, 0, 0, readable, False, counter.method, exact)
    if parting is None:
        shared = min(earlier.total, layout.total)
        keep = parent_cache.keep(parent, request.t)
        got = keep if len(layout.counts) >= len(earlier.counts) else min(keep, layout.total)
        return Numbers(layout.total, shared, keep, got, 0, readable, False, counter.method, exact)
    shared = token_offset(layout, parting.boundary, parting.char, counter)
    keep = parent_cache.keep(parent, request.t)
    if parting.parameter is not None:
        # The key differs from here on: what is left is what this key can read by itself.
        got = min(keep, readable.high) if parting.certainty == "certain" else 0
        shared = layout.ends[parting.boundary]
    else:
        at = token_offset(earlier, parting.boundary, parting.char, counter)
        got = min(keep, max(parent_cache.got(parent, parting.boundary, at), 0))
    # A parameter that only some servers key is not part of the chain by which `readable` was found.
    unkeyed = parting.parameter is not None and parting.certainty == "server"
    again, spared = rebilled(
        earlier, layout, parting, got, keep, counter, 0 if unkeyed else readable.high, grain
    )
    return Numbers(layout.total, shared, keep, got + spared, again, readable, True, counter.method, exact)


def by_ids(
    ids: array[int],
    parent_ids: array[int] | None,
    segments: Numbers,
    rule: CacheRule,
    slots: Slots | Blocks | Radix,
    earlier: Layout | None,
) -> Numbers:
    """Counted on the ids that the server evaluated; re-billed tokens are scaled to them."""
    cached, donor = slots.read(ids)
    cached = cached // rule.grain * rule.grain
    low = cached
    if rule.kind == "state":
        # A pure append goes on where the last prompt ended; from anywhere else, only if a state was kept.
        appended = parent_ids is not None and ids[: len(parent_ids)] == parent_ids
        end = len(parent_ids) if parent_ids is not None and appended else 0
        # In blocks the last token of a prompt is never part of what is kept of it.
        end = (end - 1) // rule.grain * rule.grain if rule.grain > 1 else min(end, len(ids) - 1)
        low = max(end, 0) if appended and cached >= end else 0
    high = max(cached, slots.possible(ids)) if isinstance(slots, Slots) else cached
    readable = Readable(low, high, donor, high, high)
    if parent_ids is None:
        return Numbers(len(ids), 0, 0, 0, 0, readable, False, "server", True)
    shared = common_prefix(parent_ids, ids)
    keep = len(parent_ids) // rule.grain * rule.grain
    got = shared // rule.grain * rule.grain
    # Templates end a prompt with the opening of the next message; a few ids there are no loss.
    parted = shared < len(parent_ids) and len(ids) > shared
    again = 0
    if parted:
        lost = keep - got
        if segments.lost:
            again = min(lost, round(segments.rebilled * lost / segments.lost))
        elif earlier is not None:
            again = lost
    return Numbers(len(ids), shared, keep, got, again, readable, parted, "server", True)
