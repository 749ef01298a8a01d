"""Breakpoint entries: only marked positions are kept, and a read must land on one of them.

Anthropic, Bedrock (explicit breakpoints, a bounded look back); OpenAI from
GPT-5.6 on (an automatic breakpoint as well, and boundaries it may keep).
"""

from __future__ import annotations

from dataclasses import dataclass

from prefixguard.caches.model import Partial, Readable, Request
from prefixguard.caches.rule import CacheRule
from prefixguard.prompt import Kind
from prefixguard.tokens.layout import Layout, extend_chain


@dataclass(slots=True)
class Entry:
    """One kept prefix. used: when it was last written or read. ready: when it can first be read.

    tokens: its length as the request that wrote it was counted, whose total the
    server has told; what a later request holds besides must not change it.
    """

    index: int
    used: float
    ttl: int | None
    ready: float | None
    routing: str | None
    tokens: int

    def alive(self, t: float) -> bool:
        """Whether it can still be read at `t`; a lifetime runs from the start of the last use."""
        return self.ttl is None or t - self.used <= self.ttl


def breakpoints(rule: CacheRule, layout: Layout) -> list[tuple[int, int | None]]:
    """(boundary, lifetime) of the positions that a request writes, in rendered order."""
    explicit = [(boundary, rule.ttl_seconds(mark.ttl)) for boundary, mark in layout.marks]
    if not rule.automatic:
        return explicit
    automatic = (len(layout.counts), rule.ttl_seconds(None))
    return [*explicit[-(rule.marks - 1) :], automatic] if layout.counts else explicit


class BreakpointCache:
    """One domain."""

    def __init__(self, rule: CacheRule, minimum: int) -> None:
        self._rule = rule
        self._minimum = max(minimum, 1)
        self._entries: dict[bytes, Entry] = {}
        self._possible: dict[bytes, int] = {}
        self._blocks: dict[int, list[int]] = {}

    def read(self, request: Request, partial: Partial) -> Readable:
        layout, t = request.layout, request.t
        if not self._entries and not self._possible:
            return Readable()
        blocks = _block_numbers(layout)
        best = ageless = raced = unreachable = 0
        donor: int | None = None
        age: float | None = None
        sure = 0
        reach = [(b, blocks[b]) for b, _ in breakpoints(self._rule, layout)]
        first = max((b for b, _ in reach), default=0)
        for boundary in range(first, 0, -1):
            entry = self._entries.get(layout.chain[boundary])
            tokens = layout.ends[boundary]
            if entry is None or tokens < self._minimum:
                continue
            if not self._reached(blocks[boundary], boundary, reach):
                unreachable = max(unreachable, tokens)
                continue
            if not entry.alive(t):
                if tokens > ageless:
                    ageless, age, donor = tokens, t - entry.used, entry.index if donor is None else donor
                continue
            if not request.settled and entry.ready is not None and t < entry.ready:
                raced, donor = max(raced, tokens), entry.index if donor is None else donor
                continue
            best, donor, age = min(entry.tokens, layout.ends[-1]), entry.index, t - entry.used
            same_route = not self._rule.routing or (
                request.routing is not None and request.routing == entry.routing
            )
            sure = best if same_route else 0
            break
        high = best
        if self._rule.automatic:
            for boundary in range(len(layout.chain) - 1, 0, -1):
                if layout.chain[boundary] in self._possible:
                    if layout.ends[boundary] >= self._minimum and layout.ends[boundary] > high:
                        high = layout.ends[boundary]
                        donor = self._possible[layout.chain[boundary]]
                    break
        return Readable(sure, high, donor, high, max(ageless, high), raced, unreachable, age)

    def _reached(self, block: int, boundary: int, reach: list[tuple[int, int]]) -> bool:
        """Whether some breakpoint looks back as far as this block, itself counted as the first position."""
        return any(b >= boundary and 0 <= n - block < self._rule.lookback for b, n in reach)

    def keep(self, request: Request, t: float) -> int:
        layout = request.layout
        for boundary in sorted({b for b, _ in breakpoints(self._rule, layout)}, reverse=True):
            entry = self._entries.get(layout.chain[boundary])
            if entry is not None and entry.alive(t):
                return layout.ends[boundary]
        return 0

    def got(self, request: Request, boundary: int, tokens: int) -> int:
        layout = request.layout
        for i in range(boundary, 0, -1):
            entry = self._entries.get(layout.chain[i])
            if layout.ends[i] < self._minimum:
                break
            if entry is not None and entry.alive(request.t):
                return layout.ends[i]
            if self._rule.automatic and layout.chain[i] in self._possible:
                return layout.ends[i]
        return 0

    def observe(self, request: Request) -> None:
        layout, t = request.layout, request.t
        if self._rule.marks and not self._rule.automatic and len(layout.marks) > self._rule.marks:
            return  # the server refuses such a request
        for boundary, ttl in breakpoints(self._rule, layout):
            if layout.ends[boundary] < self._minimum:
                continue
            entry = self._entries.get(layout.chain[boundary])
            if entry is not None and entry.alive(t):
                entry.used = t
                entry.index = request.index
                entry.routing = request.routing
                if ttl is not None and entry.ttl is not None:
                    entry.ttl = max(entry.ttl, ttl)
            else:
                self._entries[layout.chain[boundary]] = Entry(
                    request.index, t, ttl, request.begun, request.routing, layout.ends[boundary]
                )
        self._refresh(request)
        if self._rule.automatic:
            start = layout.prompt.head_length
            self._possible.update(dict.fromkeys(layout.chain[start:], request.index))
            replied = extend_chain(layout.chain[-1], request.reply)
            self._possible.update(dict.fromkeys(replied[-1:], request.index))

    def _refresh(self, request: Request) -> None:
        """A read renews the entry it lands on, free of charge."""
        layout = request.layout
        written = {b for b, _ in breakpoints(self._rule, layout)}
        for boundary in range(max(written, default=0), 0, -1):
            entry = self._entries.get(layout.chain[boundary])
            if entry is not None and boundary not in written and entry.alive(request.t):
                entry.used = request.t
                break


def _block_numbers(layout: Layout) -> list[int]:
    """For each boundary, how many blocks stand before it as the server counts them.

    Pictures inside a tool result belong to its block.
    """
    numbers = [0]
    count = 0
    last: tuple[str, str] | None = None
    for base, segment in layout.prompt.entries:
        inner = segment.kind is Kind.MEDIA and segment.role == "tool"
        if not (inner and last is not None and last[0] == base):
            count += 1
        last = (base, segment.pointer)
        numbers.append(count)
    return numbers
