"""In which numbers keys and values are kept: from values per head to bytes, exactly.

A format is data (`rules/kv-formats.toml`): so many values packed into so many
bytes, and what each head or entry carries beside them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import msgspec

from prefixguard.errors import InputError
from prefixguard.kv.shape import Cache
from prefixguard.rulebook import Dated

_BITS = re.compile(r"(\d+(?:\.\d+)?)[ -]?bits?")


class Packing(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`values` numbers in `bytes` bytes.

    head_bytes: scales and the like, per head and token. whole: a head's width
    must be a multiple of `values`, as the engine demands.
    """

    values: int
    bytes: int
    head_bytes: int = 0
    whole: bool = False


class Format(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One way to keep keys and values.

    key, value: their packings. multiple: the bytes of K and V of one head are
    rounded up to a multiple of it. entry: bytes of one whole latent entry of
    `latent` + `rope` values, for layouts that exist for that shape alone.
    engines: who has it.
    """

    name: str
    key: Packing | None = None
    value: Packing | None = None
    aliases: tuple[str, ...] = ()
    multiple: int = 1
    entry: int | None = None
    latent: int = 0
    rope: int = 0
    engines: tuple[str, ...] = ()

    @property
    def bits(self) -> Fraction | None:
        """Bits per value without what heads carry; None where K and V differ or the layout is opaque."""
        if self.key is None or self.key != self.value:
            return None
        return Fraction(self.key.bytes * 8, self.key.values)


class FormatTable(Dated, frozen=True, forbid_unknown_fields=True):
    """`rules/kv-formats.toml`."""

    format: tuple[Format, ...]

    def find(self, name: str) -> Format:
        """A format by name or alias, or any number of bits ("2.5bit").

        Raises InputError listing what there is.
        """
        word = name.strip().lower()
        for row in self.format:
            if word == row.name or word in row.aliases:
                return row
        match = _BITS.fullmatch(word)
        if match and 0 < Fraction(match[1]) <= 64:
            share = Fraction(match[1]) / 8
            packing = Packing(share.denominator, share.numerator)
            return Format(name=f"{match[1]}bit", key=packing, value=packing)
        names = ", ".join(row.name for row in self.format)
        raise InputError(f"no KV format is called {name!r}; have {names}, or a number of bits such as 2.5bit")


@dataclass(frozen=True, slots=True)
class Formats:
    """What keys and values are kept in, and the two parts of a recurrent state, in bytes per value."""

    key: Format
    value: Format
    state_bytes: Mapping[str, int]

    @property
    def name(self) -> str:
        """As reports print it: one name, or key/value."""
        return self.key.name if self.key.name == self.value.name else f"{self.key.name}/{self.value.name}"


def head_bytes(packing: Packing, width: int, format_name: str) -> int:
    """Bytes of one head's key or value of `width` numbers. Raises InputError where the engine refuses."""
    if width == 0:
        return 0
    if packing.whole and width % packing.values:
        raise InputError(
            f"{format_name} packs {packing.values} values at a time, which does not divide a head of {width}"
        )
    return -(-width * packing.bytes // packing.values) + packing.head_bytes


def entry_bytes(cache: Cache, formats: Formats, heads: int) -> int:
    """Bytes of one entry of a cache with `heads` heads on this GPU.

    Raises InputError for a format that this cache cannot have.
    """
    key, value = formats.key, formats.value
    if cache.kind == "index":
        return cache.key + -(-cache.key // 128) * 4  # 8-bit keys, a 32-bit scale for each 128
    if key.entry is not None:
        return _opaque(cache, key)
    if key.key is None or value.value is None:
        raise InputError(f"{formats.name} says nothing of keys and values of this model")
    one = head_bytes(key.key, cache.key, key.name) + head_bytes(value.value, cache.value, value.name)
    step = max(key.multiple, value.multiple)
    return heads * (-(-one // step) * step)


def _opaque(cache: Cache, layout: Format) -> int:
    if cache.kind != "mla" or (cache.latent, cache.key) != (layout.latent, layout.latent + layout.rope):
        raise InputError(
            f"{layout.name} exists only for latent attention of {layout.latent} + {layout.rope} values"
        )
    assert layout.entry is not None
    return layout.entry
