"""A recipe says which slices make up a body, as a difference to an earlier one.

A session's bodies mostly grow at their end, so a recipe keeps the first numbers
of its base, adds the new ones and keeps the last ones: it costs what is new.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum

import xxhash
import zstandard

MAX_DEPTH = 64
"""Most bases in a row: bounds what reading one exchange costs."""
TOKENS_BYTES = 4 * 256
"""Bytes of a slice of token ids."""
_PACK_FROM = 96

type Numbers = Sequence[int]


class Part(IntEnum):
    """What of an exchange a recipe rebuilds."""

    REQUEST = 0
    PROMPT = 1
    REPLY = 2


@dataclass(frozen=True, slots=True)
class Recipe:
    """How to rebuild one part of an exchange.

    base: number of the exchange whose same part is the base, or None.
    head, tail: how many slices are kept from its start and end. new: the
    numbers between them. digest: of the rebuilt bytes.
    """

    base: int | None
    head: int
    tail: int
    new: Numbers
    digest: bytes

    def apply(self, base: Numbers) -> tuple[int, ...]:
        """All numbers, given those of the base (empty when there is none)."""
        return (*base[: self.head], *self.new, *base[len(base) - self.tail :])


def difference(numbers: Numbers, base: Numbers) -> tuple[int, int]:
    """(head, tail): how many numbers are the same at the start and the end; they never overlap."""
    limit = min(len(numbers), len(base))
    head = 0
    while head < limit and numbers[head] == base[head]:
        head += 1
    tail = 0
    limit -= head
    while tail < limit and numbers[-1 - tail] == base[-1 - tail]:
        tail += 1
    return head, tail


def body_digest(body: bytes) -> bytes:
    """Sixteen bytes that tell whether a body was rebuilt as it was: against damage, not against forgery."""
    return xxhash.xxh3_128_digest(body)


def pack_numbers(numbers: Numbers) -> bytes:
    """Slice numbers as bytes: little-endian, four each (eight from 2**32 on), packed when that helps."""
    wide = any(number >> 32 for number in numbers)
    values = array("Q" if wide else "I", numbers)
    if sys.byteorder == "big":
        values.byteswap()
    raw = values.tobytes()
    flag = 2 if wide else 0
    if len(raw) >= _PACK_FROM:
        packed = zstandard.ZstdCompressor(level=3).compress(raw)
        if len(packed) < len(raw):
            return bytes([flag | 1]) + packed
    return bytes([flag]) + raw


def unpack_numbers(packed: bytes) -> Sequence[int]:
    """The numbers that `pack_numbers` packed."""
    flag, raw = packed[0], packed[1:]
    if flag & 1:
        raw = zstandard.ZstdDecompressor().decompress(raw)
    values = array("Q" if flag & 2 else "I")
    values.frombytes(raw)
    if sys.byteorder == "big":
        values.byteswap()
    return values


def token_cuts(tokens: array[int]) -> Iterator[bytes]:
    """Token ids (int32) as slices: little-endian, equally many ids in each, so that starts are shared."""
    if sys.byteorder == "big":
        tokens = tokens[:]
        tokens.byteswap()
    raw = tokens.tobytes()
    for start in range(0, len(raw), TOKENS_BYTES):
        yield raw[start : start + TOKENS_BYTES]


def tokens_of(raw: bytes) -> array[int]:
    """The int32 array that `token_cuts` cut."""
    tokens = array("i")
    tokens.frombytes(raw)
    if sys.byteorder == "big":
        tokens.byteswap()
    return tokens
