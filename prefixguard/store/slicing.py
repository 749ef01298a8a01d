"""Cuts a body into slices, so that what two bodies share is stored once.

First step of writing to the store. A cut falls around each element of a
top-level array (messages, tools, system blocks ...) and around each long
string; very long strings are cut again where their text has line ends. The
slices of a body, joined, are the body, whatever it holds: a body that is no
JSON, or odd JSON, only shares less. Nothing here knows an API.
"""

from __future__ import annotations

import re
from bisect import bisect_right
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

# Strings and brackets; everything else is passed over. Possessive, with an
# optional closing quote, so that broken input costs one pass and no more.
_TOKEN = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[\[\]{}]', re.DOTALL)
# An escaped line end, or a real one in a body that is no JSON.
_LINE_END = re.compile(rb"\\n|\n")
_BLOCK = 65536
_WINDOW = 24


@dataclass(frozen=True, slots=True)
class Cuts:
    """Where a body is cut.

    ends: the end offset of each slice, ascending; the last is the body's
        length. nesting: for each end, the brackets that are open there; None
        inside a string.
    """

    ends: list[int]
    nesting: list[bytes | None]


def cut(body: bytes, known: Cuts | None = None, shared: int = 0) -> Cuts:
    """Where to cut `body`.

    known, shared: the cuts of an earlier body whose first `shared` bytes are
    the same; only what comes behind them is then looked at.
    """
    ends: list[int] = []
    nesting: list[bytes | None] = []
    if known is not None:
        # The last end is left out: where that body ends says nothing about a longer one.
        count = min(bisect_right(known.ends, shared), len(known.ends) - 1)
        while count > 0 and known.nesting[count - 1] is None:
            count -= 1
        ends = known.ends[:count]
        nesting = known.nesting[:count]
    if not ends and body.lstrip()[:1] not in (b"{", b"["):
        _chunk(body, 0, len(body), ends, nesting)
        return Cuts(ends, nesting)
    stack = bytearray((nesting and nesting[-1]) or b"")
    frozen = bytes(stack)
    last = element = ends[-1] if ends else 0

    for token in _TOKEN.finditer(body, last):
        start, end = token.span()
        first = body[start]
        if first == 0x22:
            if end - start >= LONG:
                if start > last:
                    ends.append(start)
                    nesting.append(frozen)
                _chunk(body, start, end, ends, nesting)
                nesting[-1] = frozen
                last = end
            elif end - start >= SMALL and _holds_elements(frozen):
                if start > last:
                    ends.append(start)
                    nesting.append(frozen)
                ends.append(end)
                nesting.append(frozen)
                last = end
            continue
        if first in b"[{":
            if _holds_elements(frozen):
                element = start
                if start > last:
                    ends.append(start)
                    nesting.append(frozen)
                    last = start
            stack.append(first)
        elif stack:
            stack.pop()
        frozen = bytes(stack)
        if first in b"]}" and _holds_elements(frozen):
            if end - element >= SMALL:
                ends.append(end)
                nesting.append(frozen)
                last = end
            elif ends and ends[-1] == element:
                # Not worth a slice: it stays with what stands around it.
                ends.pop()
                nesting.pop()
                last = ends[-1] if ends else 0
    if len(body) > last:
        ends.append(len(body))
        nesting.append(None)
    return Cuts(ends, nesting)


def _holds_elements(stack: bytes) -> bool:
    """Whether the brackets open here are those of a top-level array."""
    return stack in (b"{[", b"[")


def _chunk(body: bytes, start: int, end: int, ends: list[int], nesting: list[bytes | None]) -> None:
    """Marks cuts in a long string, and its end; they depend on the text near them, and outlive insertions."""
    position = start
    while end - position > 2 * CHUNK:
        limit = min(position + MAX_CHUNK, end)
        position = next(
            (
                found.end()
                for found in _LINE_END.finditer(body, position + CHUNK, limit)
                # One line end in eight, picked by the text before it: two texts that
                # part come together again at the next place that both would pick.
                if crc32(body[found.end() - _WINDOW : found.end()]) & 7 == 0
            ),
            limit,
        )
        if position >= end:
            break
        ends.append(position)
        nesting.append(None)
    if end > start:
        ends.append(end)
        nesting.append(None)


def shared_prefix(a: bytes, b: bytes) -> int:
    """How many bytes `a` and `b` have in common at their start."""
    length = min(len(a), len(b))
    position = 0
    while position < length and a[position : position + _BLOCK] == b[position : position + _BLOCK]:
        position += _BLOCK
    if position >= length:
        return length
    low, high = position, min(position + _BLOCK, length)
    while low < high:
        middle = (low + high + 1) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
