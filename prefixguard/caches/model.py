"""What every cache model can do: say what a prompt can read, and remember what it left behind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from prefixguard.tokens.layout import Layout


@dataclass(frozen=True, slots=True)
class Request:
    """One request as a cache sees it.

    index: its exchange. t: seconds, when it was sent. begun: when its reply
    began, or None when nobody measured. routing: the value of the routing key.
    reply: exact identities of the reply's segments. settled: the request answers
    an earlier reply, so that whatever was sent before has been written by now.
    """

    index: int
    t: float
    begun: float | None
    layout: Layout
    routing: str | None = None
    reply: tuple[bytes, ...] = ()
    settled: bool = False


class Partial(Protocol):
    """Tokens that segment `boundary` of a request shares with that of exchange `donor`."""

    def __call__(self, request: Request, boundary: int, donor: int) -> int: ...


@dataclass(frozen=True, slots=True)
class Readable:
    """What can be read, in tokens, and why not more.

    low, high: the interval. donor: whose entry it is. common: tokens of the
    longest common prefix with anything kept. ageless: what `high` would be had
    nothing expired. raced: what it would be had earlier parallel requests been
    written already. unreachable: what it would be without a lookback limit.
    """

    low: int = 0
    high: int = 0
    donor: int | None = None
    common: int = 0
    ageless: int = 0
    raced: int = 0
    unreachable: int = 0
    age: float | None = None


class CacheModel(Protocol):
    """One cache domain of one server."""

    def read(self, request: Request, partial: Partial) -> Readable:
        """What the request can read, before it is observed itself."""
        ...

    def keep(self, request: Request, t: float) -> int:
        """What a pure append at `t` to this observed request would read of it, in tokens."""
        ...

    def got(self, request: Request, boundary: int, tokens: int) -> int:
        """What `request` can read when it parts from its parent at `boundary`, `tokens` into the prompt."""
        ...

    def observe(self, request: Request) -> None:
        """Remembers what the request left in the cache."""
        ...
