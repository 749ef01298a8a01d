"""The shelf of slices: each content once, found by its digest, and numbered.

Writing asks for the number of a content, reading for the content of a number.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from hashlib import blake2b

import zstandard
from sqlalchemy import Connection, bindparam, insert, select

from prefixguard.store.errors import StoreDamagedError
from prefixguard.store.schema import slice_

_PACK_FROM = 64
_REMEMBERED_NUMBERS = 200_000
_REMEMBERED_BYTES = 64 * 1024 * 1024
_AT_ONCE = 900
"""Most values in one query: SQLite used to allow 999."""
# Statements that every turn needs are built once.
_FIND = select(slice_.c.digest, slice_.c.number).where(
    slice_.c.digest.in_(bindparam("digests", expanding=True))
)
_READ = select(slice_.c.number, slice_.c.packed, slice_.c.content).where(
    slice_.c.number.in_(bindparam("numbers", expanding=True))
)
_ADD = insert(slice_)


def slice_digest(content: bytes) -> bytes:
    """The key of a slice."""
    return blake2b(content, digest_size=16).digest()


class SliceWriter:
    """Numbers contents; new ones are collected and written together. For one transaction after another."""

    def __init__(self) -> None:
        self._numbers: dict[bytes, int] = {}
        self._next = 0
        self._new: list[dict[str, object]] = []
        self._packer = zstandard.ZstdCompressor(level=3)

    def begin(self, first: int) -> None:
        """Starts a transaction that holds the write lock; new slices are numbered from `first` on."""
        self._new = []
        self._next = first
        if len(self._numbers) > _REMEMBERED_NUMBERS:
            self._numbers = {}

    def forget(self) -> None:
        """Drops what is remembered: after a transaction that failed, or when slices were deleted."""
        self._numbers = {}
        self._new = []

    def numbers(self, connection: Connection, contents: Sequence[bytes]) -> list[int]:
        """The number of each content, in order."""
        digests = [slice_digest(content) for content in contents]
        known = self._numbers
        missing = {
            digest: content for digest, content in zip(digests, contents, strict=True) if digest not in known
        }
        if missing:
            for some in _batches(list(missing)):
                for digest, number in connection.execute(_FIND, {"digests": some}):
                    known[bytes(digest)] = number
                    missing.pop(bytes(digest), None)
            for digest, content in missing.items():
                known[digest] = self._next
                packed = self._packer.compress(content) if len(content) >= _PACK_FROM else content
                if len(packed) >= len(content):
                    packed = content
                self._new.append(
                    {
                        "number": self._next,
                        "digest": digest,
                        "packed": packed is not content,
                        "content": packed,
                    }
                )
                self._next += 1
        return [known[digest] for digest in digests]

    def flush(self, connection: Connection) -> None:
        """Writes the new slices."""
        if self._new:
            connection.execute(_ADD, self._new)
            self._new = []


class SliceReader:
    """Contents by number, the recently used ones kept in memory."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._contents: OrderedDict[int, bytes] = OrderedDict()
        self._bytes = 0
        self._unpacker = zstandard.ZstdDecompressor()

    def join(self, numbers: Sequence[int]) -> bytes:
        """The slices with these numbers, one after the other. Raises StoreDamagedError when one is gone."""
        contents = self._contents
        missing = [number for number in dict.fromkeys(numbers) if number not in contents]
        for some in _batches(missing):
            for number, packed, content in self._connection.execute(_READ, {"numbers": some}):
                try:
                    plain = self._unpacker.decompress(content) if packed else bytes(content)
                except zstandard.ZstdError as error:
                    raise StoreDamagedError(f"slice {number} cannot be unpacked: {error}") from error
                contents[number] = plain
                self._bytes += len(plain)
        try:
            joined = b"".join([contents[number] for number in numbers])
        except KeyError as error:
            raise StoreDamagedError(f"slice {error.args[0]} is missing") from error
        while self._bytes > _REMEMBERED_BYTES and contents:
            _, content = contents.popitem(last=False)
            self._bytes -= len(content)
        return joined


def _batches[T](values: Sequence[T]) -> Iterable[Sequence[T]]:
    for start in range(0, len(values), _AT_ONCE):
        yield values[start : start + _AT_ONCE]
