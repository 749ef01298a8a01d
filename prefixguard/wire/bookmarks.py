"""Reads a body on from where an earlier one left off, when it begins with the very same bytes.

An agent's body of turn n + 1 is, byte for byte, that of turn n up to the end of
its history. Bookmarks stand behind the last elements of the history; a body
that has a bookmarked prefix (told by its digest) is scanned from there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import msgspec
from xxhash import xxh3_128, xxh3_128_digest

from prefixguard.prompt import Prompt, Segment
from prefixguard.surrogates import lenient
from prefixguard.wire.blocks import Body

type _Entry = tuple[str, Segment]

_SPACE = b" \t\r\n"
_REST = "\0"
_WRITTEN = b'"\\u0000"'
"""A name that no field has, for the history that is read on."""
_TAIL = 32
# The last element may carry a breakpoint that moves on with the next turn, and so may the last but two.
_BEHIND = (0, 1, 3)
_fields = lenient(msgspec.json.Decoder(dict[str, msgspec.Raw]).decode)


@dataclass(frozen=True, slots=True)
class Place:
    """Right behind an element. elements, entries: how many came before. state: hash of all before it."""

    offset: int
    tail: bytes
    digest: bytes
    state: xxh3_128
    elements: int
    entries: int


@dataclass(slots=True)
class Told:
    """What is remembered of one body: the fields before its history, its history's entries, its prompt."""

    fields: dict[str, msgspec.Raw]
    name: str
    format: str
    entries: Sequence[_Entry]
    places: tuple[Place, ...]
    prompt: Prompt | None = None


@dataclass(frozen=True, slots=True)
class Resumed:
    """A body of which only what follows `place` was scanned: its history holds the new elements alone."""

    body: Body
    told: Told
    place: Place


class Bookmarks:
    """The bodies read last, at most `most` of them, each session's latest."""

    def __init__(self, most: int = 128) -> None:
        self._most = most
        self._told: dict[int, Told] = {}
        self._copies: dict[bytes, msgspec.Raw] = {}

    def _copy(self, value: msgspec.Raw) -> msgspec.Raw:
        """The value apart from its body, which would be kept alive; one copy for all sessions of an agent."""
        key = xxh3_128_digest(memoryview(value))
        if len(self._copies) > 8 * self._most:
            self._copies.clear()
        if key not in self._copies:
            self._copies[key] = msgspec.Raw(bytes(value))
        return self._copies[key]

    def resume(self, raw: bytes) -> Resumed | None:
        """The body read on from a bookmark; None when there is none that fits, or the rest is no JSON."""
        for key, told in reversed(self._told.items()):
            for place in told.places:
                offset = place.offset
                if raw[offset - _TAIL : offset] == place.tail and (
                    xxh3_128_digest(memoryview(raw)[:offset]) == place.digest
                ):
                    found = _read_on(raw, told, place)
                    if found is not None:
                        del self._told[key]
                    return found
        return None

    def keep(
        self, raw: bytes, body: Body, format_: str, name: str, entries: Sequence[_Entry],
        elements: Sequence[msgspec.Raw], sizes: Sequence[int], resumed: Resumed | None,
    ) -> Told | None:  # fmt: skip
        """Sets bookmarks in a body that was read. None where none can be set.

        elements: those scanned, all of the history or what followed `resumed`.
        sizes: how many entries each of them became.
        """
        if resumed is not None:
            fields, start = resumed.told.fields, resumed.place
        else:
            at = _locate(raw, body, name)
            if at is None:
                return None
            fields = {n: self._copy(value) for n, value in _before(body, name)}
            start = Place(at, b"", b"", xxh3_128(memoryview(raw)[:at]), 0, 0)
        places = _places(raw, start, elements, sizes)
        old = resumed.told.places if resumed is not None else ()
        known = {place.offset for place in places}
        places += tuple([p for p in old if p.offset <= start.offset and p.offset not in known])
        if not places:
            return None
        told = Told(fields, name, format_, entries, places[: len(_BEHIND)])
        self._told[id(told)] = told
        if len(self._told) > self._most:
            del self._told[next(iter(self._told))]
        return told


def _read_on(raw: bytes, told: Told, place: Place) -> Resumed | None:
    rest = raw[place.offset :].lstrip(_SPACE)
    if rest[:1] == b",":
        rest = rest[1:].lstrip(_SPACE)
        if rest[:1] == b"]":
            return None
    elif rest[:1] != b"]":
        return None
    if _WRITTEN in rest:
        return None
    try:
        fields = _fields(b"{" + _WRITTEN + b":[" + rest)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    history = fields.pop(_REST)
    if told.name in fields:
        return None  # written twice: the second counts
    return Resumed(Body.of({**told.fields, told.name: history, **fields}), told, place)


def _before(body: Body, name: str) -> Iterator[tuple[str, msgspec.Raw]]:
    for other, value in body.fields.items():
        if other == name:
            return
        yield other, value


def _locate(raw: bytes, body: Body, name: str) -> int | None:
    """Where the array of a top-level field begins, behind its bracket; None when that is not sure.

    Walks over the fields, which are known in order and length.
    """
    at = _skip(raw, 0, _SPACE) + 1
    found = None
    for other, value in body.fields.items():
        key = b'"%b"' % other.encode("utf-8", "surrogatepass")
        at = _skip(raw, at, _SPACE + b",")
        if raw[at : at + len(key)] != key:
            return None  # written with escapes, or twice
        at = _skip(raw, at + len(key), _SPACE + b":")
        if other == name:
            found = at + 1
        at += memoryview(value).nbytes
    return found if raw[_skip(raw, at, _SPACE) :].rstrip(_SPACE) == b"}" else None


def _skip(raw: bytes, at: int, what: bytes) -> int:
    while raw[at : at + 1] in what and at < len(raw):
        at += 1
    return at


def _places(
    raw: bytes, start: Place, elements: Sequence[msgspec.Raw], sizes: Sequence[int]
) -> tuple[Place, ...]:
    """Bookmarks behind the last elements, the last first."""
    wanted = {len(elements) - behind for behind in _BEHIND}
    at, entries = start.offset, start.entries
    state, hashed = start.state.copy(), start.offset
    found: list[Place] = []
    view = memoryview(raw)
    for i, (element, size) in enumerate(zip(elements, sizes, strict=True), start=1):
        at = _skip(raw, at, _SPACE + b",") + memoryview(element).nbytes
        entries += size
        if i in wanted:
            state.update(view[hashed:at])
            hashed = at
            tail = raw[max(0, at - _TAIL) : at]
            found.append(Place(at, tail, state.digest(), state.copy(), start.elements + i, entries))
    return tuple(found[::-1])
