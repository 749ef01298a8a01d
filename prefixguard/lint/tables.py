"""The shape of `rules/sources` and `rules/sinks`: what changes, and where prompts are taken.

Under `knowledge`, which answers questions about them.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from prefixguard.rulebook import Dated

LIFETIMES = ("call", "turn", "session", "process", "day", "user", "host")
"""From the shortest to the longest."""


CALL, TURN, SESSION, PROCESS, DAY, USER, HOST = range(7)


CONFIDENCES = ("low", "medium", "high")


class Source(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Calls or attributes that give a value which changes.

    content: what an ordered listing still is. first: the call must be given one
    of these words as its first argument.
    """

    code: str
    what: str
    names: tuple[str, ...]
    lifetime: str = "call"
    grain: str = ""
    order: bool = False
    set: bool = False
    content: str = ""
    confidence: str = "high"
    first: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.lifetime not in LIFETIMES:
            raise ValueError(f"lifetime {self.lifetime!r} is none of {', '.join(LIFETIMES)}")


class Lookup(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Methods that look something up for each turn, by name of method and receiver."""

    code: str
    what: str
    methods: str
    receivers: str
    lifetime: str = "turn"
    confidence: str = "medium"


class State(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Values known by their name only. `owners` and `attributes`: `user.name`."""

    code: str
    what: str
    names: str
    lifetime: str = "turn"
    owners: str = ""
    attributes: str = ""


class Coarsen(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    day_methods: tuple[str, ...] = ()
    day_attributes: tuple[str, ...] = ()
    format_methods: tuple[str, ...] = ()
    fine_marks: tuple[str, ...] = ()


class Order(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    fixing: tuple[str, ...] = ()
    fixing_methods: tuple[str, ...] = ()
    sort_keys: tuple[str, ...] = ()


class Ends(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    stops: tuple[str, ...] = ()
    stop_methods: tuple[str, ...] = ()


class SourceTable(Dated, frozen=True, forbid_unknown_fields=True):
    """One file of `rules/sources`."""

    language: str
    values: tuple[Source, ...] = ()
    lookups: tuple[Lookup, ...] = ()
    states: tuple[State, ...] = ()
    coarsen: Coarsen = Coarsen()
    order: Order = Order()
    values_end: Ends = Ends()


type Where = str | int | None


class SinkCall(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A call that takes parts of a request: which argument is which part (keyword, or position).

    `match`: dotted end of the call. `given`: keywords that prove it without an
    import; `always`: the name alone proves it. `built`: makes an agent that
    lives on, and is no request by itself. `order`: names of positional arguments.
    """

    match: str
    api: str = ""
    system: Where = None
    system2: Where = None
    system3: Where = None
    messages: Where = None
    user: Where = None
    tools: Where = None
    model: Where = None
    thinking: Where = None
    tool_choice: Where = None
    format: Where = None
    key: Where = None
    config: Where = None
    options: Where = None
    body: Where = None
    template: Where = None
    chat: Where = None
    given: tuple[str, ...] = ()
    order: tuple[str, ...] = ()
    always: bool = False
    built: bool = False
    model_like: bool = False
    trims: bool = False
    filters: bool = False
    prunes: str = ""


class MessageClass(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    match: str
    position: str
    field: str = "content"


class Decorator(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    match: str
    position: str
    once: bool = False


class Hook(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A function under a known key.

    returns: key of its result to position. edits: parameter and field to position.
    """

    key: str
    returns: Mapping[str, str] = {}
    edits: Mapping[str, Mapping[str, str]] = {}


class Keyword(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    role: str


class Sdk(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    imports: tuple[str, ...]
    calls: tuple[SinkCall, ...] = ()
    classes: tuple[MessageClass, ...] = ()
    decorators: tuple[Decorator, ...] = ()
    hooks: tuple[Hook, ...] = ()
    keywords: tuple[Keyword, ...] = ()


class HttpPath(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    pattern: str
    methods: tuple[str, ...]
    bodies: tuple[str, ...]


class Named(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    pattern: str
    position: str = ""
    confidence: str = "medium"


class SinkTable(Dated, frozen=True, forbid_unknown_fields=True):
    """One file of `rules/sinks`."""

    language: str = ""
    sdks: tuple[Sdk, ...] = ()
    paths: tuple[HttpPath, ...] = ()
    names: tuple[Named, ...] = ()
    functions: tuple[Named, ...] = ()
    lists: tuple[Named, ...] = ()
    rewrites: tuple[Named, ...] = ()
    summaries: tuple[Named, ...] = ()
    tool_lists: tuple[Named, ...] = ()
