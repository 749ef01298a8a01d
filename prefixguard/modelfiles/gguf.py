"""The metadata of a GGUF file: what stands before the tensors, without the vocabulary.

Only the header is read, and long lists (tokens, merges) are stepped over, so
that a file of a hundred gigabytes answers in milliseconds. The format is
https://github.com/ggml-org/ggml/blob/master/docs/gguf.md, versions 2 and 3.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from prefixguard.errors import InputError

_STRING, _ARRAY = 8, 9
_NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_LONGEST_LIST = 4096
"""Lists above it are vocabularies, not facts about layers."""
_LONGEST_STRING = 1 << 26
_MOST_FIELDS = 1 << 20


@dataclass(frozen=True, slots=True)
class Header:
    """fields: metadata by name; long lists are left out. size: bytes of the file."""

    fields: dict[str, Any]
    size: int


def read_header(path: Path) -> Header:
    """Raises InputError when the file cannot be read or is no GGUF."""
    try:
        with path.open("rb") as file:
            return Header(_Reader(file, path).fields(), path.stat().st_size)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from error


class _Reader:
    def __init__(self, file: BinaryIO, path: Path) -> None:
        self._file = file
        self._path = path
        self._order = "<"
        self._size = path.stat().st_size

    def fields(self) -> dict[str, Any]:
        if self._file.read(4) != b"GGUF":
            raise InputError(f"{self._path}: not a GGUF file")
        raw = self._take(4)
        (version,) = struct.unpack("<I", raw)
        if version > 0xFFFF:  # written on a big-endian machine
            self._order = ">"
            (version,) = struct.unpack(">I", raw)
        if version not in (2, 3):
            raise InputError(f"{self._path}: is GGUF version {version}; versions 2 and 3 can be read")
        self._number("Q")  # tensors
        count = self._number("Q")
        if count > _MOST_FIELDS:
            raise self._broken()
        found: dict[str, Any] = {}
        for _ in range(count):
            name = self._string()
            value = self._value(self._number("I"))
            if value is not None:
                found[name] = value
        return found

    def _value(self, kind: int) -> Any:
        if kind == _STRING:
            return self._string()
        if kind == _ARRAY:
            return self._array()
        if kind not in _NUMBERS:
            raise self._broken()
        return self._number(_NUMBERS[kind])

    def _array(self) -> list[Any] | None:
        kind, count = self._number("I"), self._number("Q")
        if count > self._size:
            raise self._broken()
        if kind in _NUMBERS:
            width = struct.calcsize("=" + _NUMBERS[kind])
            if count > _LONGEST_LIST:
                self._skip(count * width)
                return None
            return list(struct.unpack(f"{self._order}{count}{_NUMBERS[kind]}", self._take(count * width)))
        if kind == _STRING and count > _LONGEST_LIST:
            for _ in range(count):
                self._skip(self._number("Q"))
            return None
        return [self._value(kind) for _ in range(count)]

    def _number(self, letter: str) -> Any:
        width = struct.calcsize("=" + letter)
        (value,) = struct.unpack(self._order + letter, self._take(width))
        return value

    def _string(self) -> str:
        length = self._number("Q")
        if length > _LONGEST_STRING:
            raise self._broken()
        return self._take(length).decode("utf-8", "replace")

    def _take(self, count: int) -> bytes:
        raw = self._file.read(count)
        if len(raw) != count:
            raise self._broken()
        return raw

    def _skip(self, count: int) -> None:
        if self._file.tell() + count > self._size:
            raise self._broken()
        self._file.seek(count, 1)

    def _broken(self) -> InputError:
        return InputError(f"{self._path}: ends or goes wrong inside the GGUF header")
