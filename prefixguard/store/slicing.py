"""Cuts a body into slices, so that what two bodies share is stored once.

First step of writing to the store. A cut falls around each element of a
top-level array (messages, tools, system blocks ...) and around each long
string; very long strings are cut again where their text has line ends. The
slices of a body, joined, are the body, whatever it holds: a body that is no
JSON, or odd JSON, only shares less. Nothing here knows an API.

A body that resembles an earlier one is only looked at where the two differ.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from zlib import crc32

LONG = 1024
"""Bytes from which a string is a slice of its own: when a cache marker moves, the text is still shared."""
SMALL = 64
"""Elements below this many bytes stay with what stands around them."""
CHUNK = 4096
"""Least bytes between two cuts inside a very long string."""
MAX_CHUNK = 65536
"""Bytes after which a long string without line ends (base64) is cut anyway."""
MAX_EDITS = 16
"""Most places at which two bodies are followed where they part and come together again."""

# Strings and brackets; everything else is passed over. Possessive, with an
# optional closing quote, so that broken input costs one pass and no more.
_TOKEN = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[\[\]{}]', re.DOTALL)
_REST_OF_STRING = re.compile(rb'[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)
# An escaped line end, or a real one in a body that is no JSON.
_LINE_END = re.compile(rb"\\n|\n")
_BLOCK = 65536
_WINDOW = 24
_NEEDLE = 48
_ANCHORS = 12
_SEARCHED = 131_072
_WORTH = 512
_WORTH_MARKING = 256
_RUN = 64


@dataclass(frozen=True, slots=True)
class Cuts:
    """Where a body is cut.

    ends: the end offset of each slice, ascending; the last is the body's
    length. nesting: for each end, the brackets that are open there.
    inside: for each end, whether it lies inside a string.
    """

    ends: list[int]
    nesting: list[bytes]
    inside: list[bool]

    def add(self, end: int, nesting: bytes, inside: bool = False) -> None:
        """Marks a cut; nothing happens where one is already, or at the very start."""
        if end > (self.ends[-1] if self.ends else 0):
            self.ends.append(end)
            self.nesting.append(nesting)
            self.inside.append(inside)


@dataclass(frozen=True, slots=True)
class Copy:
    """`count` slices from `index` on are those of the other body from `base` on."""

    index: int
    base: int
    count: int


def cut(body: bytes) -> Cuts:
    """Where to cut `body`."""
    cuts = Cuts([], [], [])
    _cut_to(body, len(body), cuts)
    return cuts


def cut_like(body: bytes, other: bytes, known: Cuts) -> tuple[Cuts, list[Copy]]:
    """Where to cut `body`, and which slices it has in common with `other`, whose cuts are known."""
    cuts = Cuts([], [], [])
    copies: list[Copy] = []
    parted = 0
    for start, base, length, back in _matches(body, other, known.ends):
        # A difference inside a long string is cut out of it, so that next time only it is new.
        marks = []
        if parted - (cuts.ends[-1] if cuts.ends else 0) >= _WORTH_MARKING:
            marks.append(parted)
        if back >= _WORTH_MARKING:
            marks.append(start - back)
        parted = start + length
        _cut_to(body, start, cuts, marks)
        position = cuts.ends[-1] if cuts.ends else 0
        shift = start - base
        first = bisect_right(known.ends, base)
        if position != start:
            # A string that began earlier reaches into what looked the same: go on behind it.
            first = bisect_right(known.ends, position - shift)
            if first == 0 or known.ends[first - 1] != position - shift:
                continue
        last = bisect_right(known.ends, base + length)
        if last == len(known.ends) and start + length < len(body):
            # Where the other body ends says nothing about a longer one.
            last -= 1
        if last > first:
            copies.append(Copy(len(cuts.ends), first, last - first))
            cuts.ends.extend([end + shift for end in known.ends[first:last]])
            cuts.nesting.extend(known.nesting[first:last])
            cuts.inside.extend(known.inside[first:last])
    _cut_to(body, len(body), cuts)
    return cuts, copies


def shared_bytes(body: bytes, other: bytes, known: Cuts) -> int:
    """How many bytes `body` has in common with `other`, as far as `cut_like` would see it."""
    return sum(length for _, _, length, _ in _matches(body, other, known.ends))


def _cut_to(body: bytes, stop: int, cuts: Cuts, marks: Sequence[int] = ()) -> None:
    """Goes on from the last cut to one at `stop`, or behind it where a short string reaches over it.

    marks: where a long string is to be cut besides.
    """
    position = cuts.ends[-1] if cuts.ends else 0
    if position >= stop:
        return
    frozen = cuts.nesting[-1] if cuts.nesting else b""
    if not frozen and body.lstrip()[:1] not in (b"{", b"["):
        _chunk(body, position, stop, frozen, cuts)
        return
    if cuts.inside and cuts.inside[-1]:
        match = _REST_OF_STRING.match(body, position)
        end = match.end() if match else position
        if _cut_string(body, end, stop, cuts, frozen, *marks):
            return
        position = end
    stack = bytearray(frozen)
    elements = _holds_elements(stack)
    last = element = position

    for token in _TOKEN.finditer(body, position):
        start, end = token.span()
        if start >= stop:
            break
        first = body[start]
        if first == 0x22:
            if end - start >= LONG:
                frozen = bytes(stack)
                cuts.add(start, frozen)
                if _cut_string(body, end, stop, cuts, frozen, *marks):
                    return
                last = end
            elif end - start >= SMALL and elements:
                cuts.add(start, bytes(stack))
                cuts.add(end, bytes(stack))
                last = end
            elif end > stop:
                stop = end
            continue
        if first in b"[{":
            if elements:
                element = start
                if start > last:
                    cuts.add(start, bytes(stack))
                    last = start
            stack.append(first)
        elif stack:
            stack.pop()
        elements = _holds_elements(stack)
        if first in b"]}" and elements:
            if end - element >= SMALL:
                cuts.add(end, bytes(stack))
                last = end
            elif cuts.ends and cuts.ends[-1] == element > position:
                # Not worth a slice: it stays with what stands around it.
                cuts.ends.pop()
                cuts.nesting.pop()
                cuts.inside.pop()
                last = max(position, cuts.ends[-1] if cuts.ends else 0)
    cuts.add(stop, bytes(stack))


def _holds_elements(stack: bytearray) -> bool:
    """Whether the brackets open here are those of a top-level array."""
    return len(stack) <= 2 and bytes(stack) in (b"{[", b"[")


def _cut_string(body: bytes, end: int, stop: int, cuts: Cuts, nesting: bytes, *marks: int) -> bool:
    """Cuts a long string from the last cut to its end, or to `stop` if that lies inside; whether it does."""
    start = cuts.ends[-1] if cuts.ends else 0
    stops_inside = start < stop < end and body[stop - 1] != 0x5C
    if stops_inside:
        end = stop
    for mark in marks:
        if start < mark < end and body[mark - 1] != 0x5C:
            _chunk(body, start, mark, nesting, cuts)
            cuts.inside[-1] = True
            start = mark
    _chunk(body, start, end, nesting, cuts)
    if stops_inside:
        cuts.inside[-1] = True
    return stops_inside


def _chunk(body: bytes, start: int, end: int, nesting: bytes, cuts: Cuts) -> None:
    """Marks cuts in a long string, and its end; they depend on the text near them, and outlive insertions."""
    position = start
    while end - position > 2 * CHUNK:
        limit = min(position + MAX_CHUNK, end)
        found = next(
            (
                line_end.end()
                for line_end in _LINE_END.finditer(body, position + CHUNK, limit)
                # One line end in eight, picked by the text before it: two texts that
                # part come together again at the next place that both would pick.
                if crc32(body[line_end.end() - _WINDOW : line_end.end()]) & 7 == 0
            ),
            limit,
        )
        # Not between a backslash and what it escapes, as far as a sane body goes.
        run = next((n for n in range(_RUN) if body[found - 1 - n] != 0x5C), 0)
        position = found - run
        if position >= end:
            break
        cuts.add(position, nesting, inside=True)
    cuts.add(end, nesting)


def _matches(body: bytes, other: bytes, other_ends: list[int]) -> Iterator[tuple[int, int, int, int]]:
    """(offset in body, offset in other, bytes, bytes before it) of what both have in common, in order."""
    position = base = back = 0
    length = shared_prefix(body, other)
    for _ in range(MAX_EDITS):
        yield position, base, length, back
        position += length
        base += length
        if position >= len(body) or base >= len(other):
            return
        anchor = _anchor(body, position, other, base, other_ends)
        if anchor is None:
            return
        limit = min(anchor[0] - position, anchor[1] - base, _SEARCHED)
        position, base, length = anchor
        back = _shared_suffix(body[position - limit : position], other[base - limit : base])


def _anchor(
    body: bytes, position: int, other: bytes, base: int, other_ends: list[int]
) -> tuple[int, int, int] | None:
    """Where the two come together again behind a difference."""
    first = bisect_right(other_ends, base)
    for cut_at in other_ends[first : first + _ANCHORS]:
        needle = other[cut_at : cut_at + _NEEDLE]
        if not needle:
            return None
        found = body.find(needle, position, position + _SEARCHED)
        if found >= 0:
            length = shared_prefix(body, other, found, cut_at)
            if length >= _WORTH or found + length == len(body):
                return found, cut_at, length
    return None


def _shared_suffix(a: bytes, b: bytes) -> int:
    """How many bytes two strings of equal length have in common at their end."""
    low, high = 0, len(a)
    while low < high:
        middle = (low + high + 1) // 2
        if a[len(a) - middle :] == b[len(b) - middle :]:
            low = middle
        else:
            high = middle - 1
    return low


def shared_prefix(a: bytes, b: bytes, a_from: int = 0, b_from: int = 0) -> int:
    """How many bytes `a` from `a_from` on and `b` from `b_from` on have in common at their start."""
    length = min(len(a) - a_from, len(b) - b_from)
    done = 0
    while done < length:
        block = min(_BLOCK, length - done)
        one = a[a_from + done : a_from + done + block]
        two = b[b_from + done : b_from + done + block]
        if one != two:
            low, high = 0, block - 1
            while low < high:
                middle = (low + high + 1) // 2
                if one[:middle] == two[:middle]:
                    low = middle
                else:
                    high = middle - 1
            return done + low
        done += block
    return length
