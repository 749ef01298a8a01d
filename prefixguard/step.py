"""One step of the fold, as data: the exchange at hand, the one it continues, and what is kept of both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from prefixguard.caches.choose import Choice
from prefixguard.caches.model import Request
from prefixguard.caches.rule import CacheRule
from prefixguard.divergence import Parting
from prefixguard.exchange import Exchange, Rendered
from prefixguard.lineage import Match, Node
from prefixguard.prompt import Prompt, Segment
from prefixguard.tokens.counter import Counter
from prefixguard.tokens.layout import Layout
from prefixguard.turn import Usage
from prefixguard.wire.decoder import Reading
from prefixguard.wire.usage import DecodedUsage

_ASSUMED_LATENCY = 1.0
"""Seconds until a reply begins, where a log has no timing."""


@dataclass(slots=True)
class Seen:
    """What is kept of an exchange for those that follow.

    parts: the parts of its cache domain. template: its prompt as the chat
    template renders it. ids: its prompt in the server's token ids.
    """

    node: Node
    layout: Layout
    request: Request
    domain: str
    parts: Mapping[str, str | None]
    rule: CacheRule
    template: Layout | None = None
    template_request: Request | None = None
    ids: Rendered | None = None


@dataclass(slots=True)
class Thread:
    """What a thread remembers: replies, changes of tools, codes that are said once only."""

    tool_changes: int = 0
    replies: list[Segment] = field(default_factory=list)
    said: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Step:
    """The exchange at hand beside the one it continues.

    opening: for a request without a parent, the latest first request of another
    session that has the same tools. before: the parent, if there is one, and
    `earlier` its layout in the order of this prompt. grand: the parent's
    parent. parting: where they part.
    """

    exchange: Exchange
    reading: Reading
    decoded: DecodedUsage | None
    choice: Choice
    counter: Counter
    seen: Seen
    match: Match | None = None
    before: Seen | None = None
    grand: Seen | None = None
    earlier: Layout | None = None
    parting: Parting | None = None
    opening: Seen | None = None

    @property
    def rule(self) -> CacheRule:
        """The cache rule in force."""
        return self.seen.rule

    @property
    def layout(self) -> Layout:
        """The prompt in tokens."""
        return self.seen.layout

    @property
    def prompt(self) -> Prompt:
        """The prompt, in rendered order."""
        return self.seen.layout.prompt

    @property
    def usage(self) -> Usage | None:
        """What the server reported."""
        return self.decoded.usage if self.decoded else None

    @property
    def answered(self) -> bool:
        """Whether the server took the request."""
        return self.exchange.status is None or self.exchange.status < 400


def begun(exchange: Exchange) -> float:
    """When the reply began: from then on what the request wrote can be read."""
    timing = exchange.timing
    ms = timing.first_token_ms if timing.first_token_ms is not None else timing.total_ms
    return exchange.t + (ms / 1000 if ms is not None else _ASSUMED_LATENCY)
