"""The JSON records of a file, one after the other, however the writer laid them out.

JSON Lines, objects printed over several lines one behind the other, one list,
or one document with a list in it. What is damaged is named and passed over.
"""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import zstandard

from prefixguard.errors import InputError
from prefixguard.importers.told import Told
from prefixguard.surrogates import lenient

_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_MARK = b"\xef\xbb\xbf"
_MOST_LINES = 200_000
"""Lines that one record may be printed over."""

_decode = msgspec.json.Decoder().decode
_members = lenient(msgspec.json.Decoder(dict[str, msgspec.Raw]).decode)
_items = lenient(msgspec.json.Decoder(list[msgspec.Raw]).decode)


@contextmanager
def opened(path: Path) -> Iterator[io.BufferedIOBase]:
    """A file's bytes, decompressed where its first bytes say so. Raises InputError when it cannot be read."""
    try:
        with path.open("rb") as stream:
            start = stream.peek(4)[:4]
            if start.startswith(_GZIP):
                yield gzip.GzipFile(fileobj=stream)
            elif start == _ZSTD:
                with zstandard.ZstdDecompressor().stream_reader(stream, read_across_frames=True) as reader:
                    yield io.BufferedReader(reader)
            else:
                yield stream
    except (EOFError, zstandard.ZstdError, gzip.BadGzipFile) as error:
        raise InputError(f"{path}: the compressed file is damaged or cut off: {error}") from error
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from error


def value_of(raw: bytes | msgspec.Raw) -> Any:
    """A JSON text as plain objects. Raises ValueError; text with half a surrogate pair is taken."""
    try:
        return _decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        first = error
    try:
        return json.loads(bytes(raw))
    except (ValueError, RecursionError):
        raise ValueError(f"not JSON: {first}") from first


def encode(value: Any) -> bytes:
    """A value as JSON, members in the order in which they stand."""
    try:
        return msgspec.json.encode(value)
    except (UnicodeEncodeError, TypeError, ValueError):
        return json.dumps(value, separators=(",", ":"), default=str).encode("ascii")


def objects(stream: Iterable[bytes], told: Told) -> Iterator[tuple[str, dict[str, Any]]]:
    """(where, object) of each record. Records that cannot be read are told, and the next one is taken."""
    for where, raw in _texts(stream, told):
        try:
            value = value_of(raw)
        except ValueError as error:
            told.problem(where, error)
            continue
        if isinstance(value, dict):
            yield where, value
        else:
            told.problem(where, f"expected an object, found {type(value).__name__}")


def _texts(stream: Iterable[bytes], told: Told) -> Iterator[tuple[str, bytes | msgspec.Raw]]:
    lines = iter(stream)
    begun: list[bytes] = []
    first = 0
    for number, read in enumerate(lines, 1):
        line = read.removeprefix(_MARK).strip() if number == 1 else read.rstrip()
        if not line.strip(b" \t\x00"):
            continue
        if not begun and line.startswith(b"[") and number == 1:
            whole = b"".join([line, b"\n", *lines])
            for i, raw in enumerate(elements(whole, (), told), 1):
                yield f"entry {i}", raw
            return
        if line.startswith(b"{"):
            if begun:
                told.problem(f"line {first}", "the record is cut off")
                begun = []
            if _is_whole(line):
                yield f"line {number}", line
                continue
            first = number
        elif not begun:
            told.problem(f"line {number}", f"not JSON: {line[:40].decode('utf-8', 'replace')}")
            continue
        begun.append(line)
        if line.startswith(b"}") or len(begun) > _MOST_LINES:
            yield f"line {first}", b"\n".join(begun)
            begun = []
    if begun:
        # One line that is no whole object is told by whoever reads it.
        yield f"line {first}", b"\n".join(begun)


def _is_whole(line: bytes) -> bool:
    return line.endswith(b"}")


def elements(whole: bytes, names: tuple[str, ...], told: Told) -> Iterator[msgspec.Raw | bytes]:
    """The raw elements of the list that lies under the named members of a document; () for a list itself.

    Of a document that was cut off, those that are whole; then it is told where
    the file ends.
    """
    whole = whole.removeprefix(_MARK)
    try:
        inner: Any = whole
        for name in names:
            inner = _members(inner)[name]
        found = _items(inner)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, KeyError) as error:
        yield from _salvaged(whole, names[-1] if names else "", told, error)
        return
    yield from found


def _salvaged(whole: bytes, name: str, told: Told, why: Exception) -> Iterator[bytes]:
    text = whole.decode("utf-8", "replace")
    start = text.find(f'"{name}"') if name else 0
    at = text.find("[", start) + 1 if start >= 0 else 0
    decoder = json.JSONDecoder()
    count = 0
    while at:
        while at < len(text) and text[at] in " \t\r\n,":
            at += 1
        if at >= len(text) or text[at] == "]":
            break
        try:
            _, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            break
        count += 1
        yield text[at:end].encode("utf-8", "replace")
        at = end
    told.problem(f"entry {count + 1}", f"the document is cut off or damaged here: {why}")
