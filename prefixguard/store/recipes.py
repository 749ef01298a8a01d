"""A recipe says which slices make up a body, as a difference to an earlier one.

A session's bodies mostly grow at their end, so a recipe copies most of its base
and names only the new slices: it costs what is new.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum

import xxhash
import zstandard

from prefixguard.store.slicing import Copy

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

    base: number of the exchange whose same part is the base, or None. steps:
    what to take one after the other, as numbers: 2n is slice n; 2i + 1 followed
    by c are the c slices of the base from its i-th on. digest: of the bytes.
    """

    base: int | None
    steps: Numbers
    digest: bytes

    def apply(self, base: Numbers) -> tuple[int, ...]:
        """All slice numbers, given those of the base (empty when there is none)."""
        numbers: list[int] = []
        steps = iter(self.steps)
        for step in steps:
            if step & 1:
                start = step >> 1
                numbers.extend(base[start : start + next(steps)])
            else:
                numbers.append(step >> 1)
        return tuple(numbers)


def steps(numbers: Numbers, copies: Sequence[Copy] = ()) -> list[int]:
    """The steps of a recipe for these slice numbers, of which some are copied from the base."""
    made: list[int] = []
    position = 0
    for copy in copies:
        made.extend([number << 1 for number in numbers[position : copy.index]])
        made.extend((copy.base << 1 | 1, copy.count))
        position = copy.index + copy.count
    made.extend([number << 1 for number in numbers[position:]])
    return made


def slices_named(steps: Numbers) -> set[int]:
    """The slices that the steps name themselves, not through their base."""
    named: set[int] = set()
    rest = iter(steps)
    for step in rest:
        if step & 1:
            next(rest)
        else:
            named.add(step >> 1)
    return named


def body_digest(body: bytes) -> bytes:
    """Sixteen bytes that tell whether a body was rebuilt as it was: against damage, not against forgery."""
    return xxhash.xxh3_128_digest(body)


def pack_numbers(numbers: Numbers) -> bytes:
    """Numbers as bytes: little-endian, four each (eight from 2**32 on), packed when that helps."""
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
