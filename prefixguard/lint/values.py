"""Abstract values: what the flow knows of a value while it follows it.

Stands between facts and findings. A value carries the *changes* that reach it
(where they are read, how long they live, whether they are an order, an edit of
history), *references* to parameters that are not known yet, and as much shape
as sinks need: lists with their parts, dicts with their keys, text with the
order of its parts. Values are immutable; joining and copying is cheap, because
most values carry nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from prefixguard.lint.facts import At, Import
from prefixguard.lint.tables import SESSION

MAX_CHANGES = 10
MAX_PARTS = 48
MAX_TRACE = 14
MAX_DEPTH = 7

type FunctionId = tuple[int, int]
"""Index of the file, index of the function in it; -1 is the body of the module."""

type Ref = tuple[FunctionId, int, tuple[str, ...]]
"""A parameter of a function (by position; 0 is self in a method) and the attributes taken from it."""


class Step(NamedTuple):
    """One step on the way from source to sink."""

    file: int
    at: At
    note: str


class Change(NamedTuple):
    """Something that makes bytes of the prompt differ from request to request.

    lifetime: index into `LIFETIMES`. grain: "" or the smallest unit of a clock.
    order: only the order differs. edit: an edit of a list of messages; then
    `guard` says what keeps it rare ("", "threshold", "quantised", "error").
    loops: the loops that were running when it was read. confidence: 0 to 2.
    """

    code: str
    what: str
    file: int
    at: At
    lifetime: int
    grain: str = ""
    order: bool = False
    edit: bool = False
    guard: str = ""
    loops: tuple[int, ...] = ()
    confidence: int = 2
    trace: tuple[Step, ...] = ()
    content: str = ""
    loop_bound: int = 0
    scope: str = "call"
    """What lengthened the lifetime: call, constructor, module, cached, loop."""

    @property
    def key(self) -> tuple[int, At, str]:
        return (self.file, self.at, self.code)

    def step(self, step: Step) -> Change:
        """The same change, one step further; long ways keep their ends."""
        trace = self.trace
        if (
            trace
            and trace[-1].file == step.file
            and trace[-1].at[0] == step.at[0]
            and (trace[-1].at == step.at or trace[-1].note == step.note)
        ):
            return self
        if len(trace) >= MAX_TRACE:
            trace = trace[: MAX_TRACE - 1]
        return self._replace(trace=(*trace, step))

    def live(self, lifetime: int, scope: str) -> Change:
        """The same change, read less often."""
        if self.lifetime >= lifetime or self.edit:
            return self
        return self._replace(lifetime=lifetime, scope=scope)


class Items(NamedTuple):
    """A list, tuple or set. Each part: (is it spread, value)."""

    kind: str
    parts: tuple[tuple[bool, Value], ...]


class Fields(NamedTuple):
    """A dict, an object literal, or an instance of a class that is not in the project (`name`)."""

    entries: dict[str, Value]
    spread: tuple[Value, ...] = ()
    name: str = ""
    at: At | None = None
    file: int = -1
    keys: tuple[Value, ...] = ()


class Words(NamedTuple):
    """Text built from parts in this order."""

    parts: tuple[Value, ...]


class Instance(NamedTuple):
    """An object of a class of the project: (file, class index), and the constructor's own fields."""

    owner: tuple[int, int]
    fields: dict[str, Value]
    args: tuple[Value, ...] = ()


class Func(NamedTuple):
    function: FunctionId
    bound: Value | None = None
    scope: Any = None


class Klass(NamedTuple):
    owner: tuple[int, int]


class ModuleRef(NamedTuple):
    file: int


class External(NamedTuple):
    """A name that is not of the project, dotted: `datetime.datetime`, `openai.OpenAI()`."""

    name: str


class Either(NamedTuple):
    """One of several values, chosen at run time."""

    options: tuple[Value, ...]
    varies: bool = False
    at: At | None = None
    file: int = -1


class Deferred(NamedTuple):
    """An import that nobody has used yet: the file that imports, and the fact."""

    file: int
    entry: Import


type Shape = (
    Items | Fields | Words | Instance | Func | Klass | ModuleRef | External | Either | Deferred | None
)

type Place = tuple[str, ...]
"""Where a value lives: a root ("local:x", "param:1", "self", "global:x") and attributes; "[]": an element."""


class Value:
    """One abstract value. See the module's text."""

    __slots__ = ("_flat", "_refs", "changes", "const", "elements", "origin", "place", "refs", "shape", "size")

    def __init__(
        self,
        changes: tuple[Change, ...] = (),
        refs: tuple[Ref, ...] = (),
        shape: Shape = None,
        const: Any = None,
        place: Place | None = None,
        elements: Place | None = None,
        size: int = 0,
        origin: str = "",
    ) -> None:
        self.changes = changes
        self.refs = refs
        self.shape = shape
        self.const = const
        self.place = place
        self.elements = elements
        self.size = size
        self.origin = origin
        self._flat: tuple[Change, ...] | None = None
        self._refs: tuple[Ref, ...] | None = None

    def but(self, **fields: Any) -> Value:
        """The same value with some fields changed."""
        made = Value(
            self.changes, self.refs, self.shape, self.const, self.place, self.elements, self.size, self.origin
        )
        for name, value in fields.items():
            setattr(made, name, value)
        return made

    def children(self) -> Iterable[Value]:
        """The values inside this one."""
        shape = self.shape
        if isinstance(shape, Items):
            return [value for _, value in shape.parts]
        if isinstance(shape, Fields):
            return [*shape.entries.values(), *shape.spread, *shape.keys]
        if isinstance(shape, Words):
            return shape.parts
        if isinstance(shape, Either):
            return shape.options
        return ()

    def flat(self) -> tuple[Change, ...]:
        """All changes in it, at any depth, each once."""
        if self._flat is None:
            if self.shape is None:
                self._flat = self.changes
            else:
                self._flat = unique(self._gather(0))
        return self._flat

    def _gather(self, depth: int) -> list[Change]:
        found = list(self.changes)
        if depth < MAX_DEPTH:
            for child in self.children():
                if child.shape is None:
                    found.extend(child.changes)
                elif child._flat is not None:
                    found.extend(child._flat)
                else:
                    found.extend(child._gather(depth + 1))
        return found

    def all_refs(self) -> tuple[Ref, ...]:
        """All references in it, at any depth, each once."""
        if self._refs is None:
            if self.shape is None:
                self._refs = self.refs
            else:
                found = dict.fromkeys(self.refs)
                for child in self.children():
                    found.update(dict.fromkeys(child.all_refs()))
                self._refs = tuple(found)[:24]
        return self._refs

    @property
    def plain(self) -> bool:
        """Whether nothing in it changes and nothing is unknown by reference."""
        return not self.flat() and not self.all_refs()


NOTHING = Value()


def unique(changes: Iterable[Change]) -> tuple[Change, ...]:
    """Each change once; of two readings of one place the one that lives shortest."""
    found: dict[tuple[int, At, str], Change] = {}
    for change in changes:
        key = change.key
        known = found.get(key)
        if known is None or (change.lifetime, -change.confidence) < (known.lifetime, -known.confidence):
            found[key] = change
    if len(found) > MAX_CHANGES:
        return tuple(sorted(found.values(), key=lambda c: (c.lifetime, -c.confidence))[:MAX_CHANGES])
    return tuple(found.values())


def merge_refs(*groups: tuple[Ref, ...]) -> tuple[Ref, ...]:
    """References of several values, each once."""
    found: dict[Ref, None] = {}
    for group in groups:
        found.update(dict.fromkeys(group))
    return tuple(found)[:24]


def mixed(values: Iterable[Value], extra: tuple[Change, ...] = ()) -> Value:
    """A value without shape that depends on all the given ones."""
    changes: list[Change] = list(extra)
    refs: dict[Ref, None] = {}
    for value in values:
        changes.extend(value.flat())
        refs.update(dict.fromkeys(value.all_refs()))
    if not changes and not refs:
        return NOTHING
    return Value(unique(changes), tuple(refs)[:24])


def join(first: Value, second: Value) -> Value:
    """The value after two branches: either of them."""
    if first is second:
        return first
    if second is NOTHING or first is NOTHING:
        known = first if second is NOTHING else second
        return known if known.const is None else known.but(const=None)
    a, b = first.shape, second.shape
    if isinstance(a, Fields) and isinstance(b, Fields) and a.at == b.at and a.name == b.name:
        entries = dict(a.entries)
        for key, value in b.entries.items():
            entries[key] = join(entries[key], value) if key in entries else value
        keys = a.keys if a.keys is b.keys else (*a.keys, *b.keys)[:MAX_PARTS]
        spread = a.spread if a.spread == b.spread else (*a.spread, *b.spread)[:MAX_PARTS]
        return first.but(
            shape=a._replace(entries=entries, keys=keys, spread=spread),
            changes=unique((*first.changes, *second.changes)),
            _flat=None,
            _refs=None,
        )
    if isinstance(a, Items) and isinstance(b, Items) and a.kind == b.kind:
        longer, shorter = (first, second) if len(a.parts) >= len(b.parts) else (second, first)
        long_parts, short_parts = longer.shape.parts, shorter.shape.parts  # type: ignore[union-attr]
        if long_parts[: len(short_parts)] == short_parts:
            return longer.but(changes=unique((*first.changes, *second.changes)), place=first.place)
    if isinstance(a, Words) and isinstance(b, Words):
        longer, shorter = (first, second) if len(a.parts) >= len(b.parts) else (second, first)
        long_words, short_words = longer.shape.parts, shorter.shape.parts  # type: ignore[union-attr]
        if long_words[: len(short_words)] == short_words:
            return longer.but(
                changes=unique((*first.changes, *second.changes)), size=min(first.size, second.size)
            )
    options: list[Value] = []
    for value in (first, second):
        shape = value.shape
        parts = shape.options if isinstance(shape, Either) else (value,)
        for part in parts:
            if not any(part is known or _same(part, known) for known in options):
                options.append(part)
    if len(options) == 1:
        return options[0]
    place = first.place if first.place == second.place else None
    varies = any(isinstance(v.shape, Either) and v.shape.varies for v in (first, second))
    if len(options) > 6:
        return mixed(options).but(place=place)
    return Value(shape=Either(tuple(options), varies), place=place, size=min(first.size, second.size))


def _same(a: Value, b: Value) -> bool:
    return (
        a.shape is b.shape
        and a.const == b.const
        and type(a.const) is type(b.const)
        and a.changes == b.changes
        and a.refs == b.refs
        and a.place == b.place
    )


def transform(value: Value, change: Callable[[Change], Change | None], depth: int = 0) -> Value:
    """The same value with each of its changes replaced (or dropped, for None), at any depth."""
    if not value.flat() or depth > MAX_DEPTH:
        return value
    changes = tuple(made for made in (change(c) for c in value.changes) if made is not None)
    shape = value.shape
    if isinstance(shape, Items):
        shape = Items(shape.kind, tuple((s, transform(v, change, depth + 1)) for s, v in shape.parts))
    elif isinstance(shape, Fields):
        shape = shape._replace(
            entries={k: transform(v, change, depth + 1) for k, v in shape.entries.items()},
            spread=tuple(transform(v, change, depth + 1) for v in shape.spread),
            keys=tuple(transform(v, change, depth + 1) for v in shape.keys),
        )
    elif isinstance(shape, Words):
        shape = Words(tuple(transform(v, change, depth + 1) for v in shape.parts))
    elif isinstance(shape, Either):
        shape = shape._replace(options=tuple(transform(v, change, depth + 1) for v in shape.options))
    return value.but(changes=changes, shape=shape)


def outlive(value: Value, lifetime: int, scope: str) -> Value:
    """The value, kept: what it is made of is read only once per `lifetime`."""
    return transform(value, lambda change: change.live(lifetime, scope)) if value.flat() else value


def session(value: Value, scope: str) -> Value:
    """The value, read once per session."""
    return outlive(value, SESSION, scope)


def substitute(value: Value, lookup: Callable[[Ref], Value | None], depth: int = 0) -> Value:
    """The value with its references replaced by what `lookup` knows of them."""
    if depth > MAX_DEPTH or not value.all_refs():
        return value
    shape = value.shape
    bare = shape is None or (isinstance(shape, Instance) and not shape.fields)
    if bare and len(value.refs) == 1 and value.place is not None:
        known = lookup(value.refs[0])
        if known is None:
            return value
        if not value.changes:
            return known
        return known.but(changes=unique((*known.changes, *value.changes)), _flat=None, _refs=None)
    refs: list[Ref] = []
    changes: list[Change] = list(value.changes)
    for ref in value.refs:
        known = lookup(ref)
        if known is None:
            refs.append(ref)
        else:
            changes.extend(known.flat())
            refs.extend(known.all_refs())
    if isinstance(shape, Items):
        shape = Items(shape.kind, tuple((s, substitute(v, lookup, depth + 1)) for s, v in shape.parts))
    elif isinstance(shape, Fields):
        shape = shape._replace(
            entries={k: substitute(v, lookup, depth + 1) for k, v in shape.entries.items()},
            spread=tuple(substitute(v, lookup, depth + 1) for v in shape.spread),
            keys=tuple(substitute(v, lookup, depth + 1) for v in shape.keys),
        )
    elif isinstance(shape, Words):
        shape = Words(tuple(substitute(v, lookup, depth + 1) for v in shape.parts))
    elif isinstance(shape, Either):
        shape = shape._replace(options=tuple(substitute(v, lookup, depth + 1) for v in shape.options))
    return Value(
        unique(changes),
        tuple(dict.fromkeys(refs))[:24],
        shape,
        value.const,
        value.place,
        value.elements,
        value.size,
        value.origin,
    )
