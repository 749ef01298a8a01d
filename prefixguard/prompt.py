"""The data model of a prompt: segments in the order in which a server reads them.

A segment is an atom of what the model reads (a tool definition, a system block,
a message block, a tool call, a tool result ...). Segments carry two identities:

- `exact` decides the cache: order-preserving, byte for byte;
- `alike` decides alignment and names: the same content however it is written.

Segments and elements are immutable and shared between the prompts of a session,
so that comparing two turns of a long session costs what is new in them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from operator import attrgetter, itemgetter
from typing import Literal

import msgspec

type Group = Literal["tools", "head", "history"]
type Role = Literal["system", "user", "assistant", "tool"]
type Shape = Literal["string", "blocks", "object"]
type Order = tuple[Group, Group, Group]

# Asked of every segment of a prompt that no earlier one begins: two thirds of a comprehension's time.
_segment: Callable[[tuple[str, Segment]], Segment] = itemgetter(1)
_exact: Callable[[Segment], bytes] = attrgetter("exact")

TOOLS_FIRST: Order = ("tools", "head", "history")
HEAD_FIRST: Order = ("head", "tools", "history")


class Kind(Enum):
    """What sort of thing a segment is."""

    TEXT = "text"
    TOOL = "tool"
    TOOL_CALL = "tool-call"
    TOOL_RESULT = "tool-result"
    REASONING = "reasoning"
    MEDIA = "media"
    OTHER = "other"
    """A block of a type this version does not know: compared, never interpreted."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A breakpoint that the client set on a segment.

    ttl: the lifetime asked for ("5m", "1h", ...), or None for the default.
    """

    ttl: str | None = None


class Segment(msgspec.Struct, frozen=True, eq=False, gc=False):
    """An atom of a prompt. Compare by `exact` or `alike`, never by `==`.

    pointer: JSON Pointer relative to the element that holds the segment.
    text: what the model reads, as text; for media a short label.
    exact, alike: 16-byte digests, see the module's docstring.
    loose: a 16-byte digest that also ignores minted ids, of the exact form;
        None when equal to `exact`. Two segments that differ only in it differ
        for some servers and not for others.
    call_id, name: of a tool call or result, or the name of a tool.
    json: the compact JSON of structured content (tool definitions, call input).
    media: digest or URL of the medium.
    """

    kind: Kind
    role: Role
    pointer: str
    text: str
    exact: bytes
    alike: bytes
    loose: bytes | None = None
    shape: Shape = "blocks"
    name: str | None = None
    call_id: str | None = None
    json: str | None = None
    media: str | None = None
    media_tokens: int | None = None
    mark: Mark | None = None


@dataclass(frozen=True, slots=True)
class Parameter:
    """A request parameter that may enter the cache key.

    value: compact JSON of its value.
    """

    name: str
    pointer: str
    value: str


@dataclass(frozen=True, slots=True)
class Link:
    """A reference to what holds the start of this prompt: an earlier exchange, or an explicit cache."""

    kind: Literal["response", "conversation", "diagnostics", "cache"]
    id: str
    pointer: str


@dataclass(frozen=True, eq=False)
class Prompt:
    """The ordered segments of one request.

    tools, head, history: (absolute pointer of the element, segment) in request
        order; `order` says how the server lays the groups out.
    link: a reference to earlier history that is not in the body.
    automatic_mark: the client asked for one automatic breakpoint at the tail.
    """

    api: str
    model: str | None
    tools: tuple[tuple[str, Segment], ...]
    head: tuple[tuple[str, Segment], ...]
    history: tuple[tuple[str, Segment], ...]
    order: Order = TOOLS_FIRST
    parameters: tuple[Parameter, ...] = ()
    link: Link | None = None
    automatic_mark: Mark | None = None
    stream: bool = False
    raw: bool = False

    def continues(self, earlier: Prompt, history: int) -> None:
        """Derives the identities from `earlier`, whose first `history` entries of history are this one's too.

        It changes nothing but the work: only the segments behind them are looked at.
        """
        derived, own = earlier.__dict__, self.__dict__
        if "segments" not in derived or "exacts" not in derived:
            return
        if self.tools is not earlier.tools or self.head is not earlier.head:
            return
        if self.history[history - 1] is not earlier.history[history - 1]:
            return  # what follows has put a breakpoint on it
        shared = self.head_length + history
        own["segments"] = (*derived["segments"][:shared], *map(_segment, self.history[history:]))
        own["exacts"] = (*derived["exacts"][:shared], *map(_exact, own["segments"][shared:]))

    def in_order(self, order: Order) -> Prompt:
        """The same prompt, laid out in another order."""
        if order == self.order:
            return self
        return Prompt(
            self.api, self.model, self.tools, self.head, self.history, order,
            self.parameters, self.link, self.automatic_mark, self.stream, self.raw,
        )  # fmt: skip

    @cached_property
    def entries(self) -> tuple[tuple[str, Segment], ...]:
        """(base pointer, segment) in rendered order."""
        a, b, c = (getattr(self, group) for group in self.order)
        return (*a, *b, *c)

    @cached_property
    def segments(self) -> tuple[Segment, ...]:
        """The segments in rendered order."""
        return tuple(map(_segment, self.entries))

    @cached_property
    def exacts(self) -> tuple[bytes, ...]:
        """The exact identities in rendered order."""
        return tuple(map(_exact, self.segments))

    @cached_property
    def head_length(self) -> int:
        """How many segments come before history."""
        return len(self.tools) + len(self.head)

    def pack(self) -> None:
        """Drops what was derived; it is derived again when asked for."""
        for name in ("entries", "segments", "exacts", "head_length"):
            self.__dict__.pop(name, None)

    def pointer(self, index: int) -> str:
        """JSON Pointer of the segment at `index` in rendered order."""
        base, segment = self.entries[index]
        return base + segment.pointer

    def group(self, index: int) -> Group:
        """The group of the segment at `index` in rendered order."""
        first, second, _ = self.order
        n = len(getattr(self, first))
        if index < n:
            return first
        return second if index < n + len(getattr(self, second)) else "history"
