"""Watches exchange logs, and other records that the importers read; a log that grows is read on."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from prefixguard.errors import InputError
from prefixguard.exchange import Exchange
from prefixguard.importers import iterate_source
from prefixguard.importers.exchange_log import STDIN, parse_line
from prefixguard.importers.sources import Tell
from prefixguard.store.searching import excerpt, spellings
from prefixguard.ui.feed import Found, News, Unit

_PLAIN = (".jsonl", ".ndjson")
_HEAD = 512
_BLANK = b" \t\r\n\x00\xef\xbb\xbf"

type _Stamp = tuple[tuple[str, int, int, int], ...]


class LogFeed:
    """One log (a file, a folder of files, or "-"). Numbers are places in it, from 0."""

    def __init__(self, source: str) -> None:
        """Raises InputError when it cannot be read."""
        self._source = source
        self._path = Path(source)
        self._kept: list[Exchange] | None = None
        if source == STDIN or self._path.is_fifo():
            self._kept = list(iterate_source(source))
        remarks: list[str] = []
        self._stamp = self._stamped()
        # Whatever is wrong now is an error; later a line may be cut off because it is being written.
        self._first, self._count = _opening(self._all(remarks.extend))
        self._tail = _Tail.of(self._path) if self._kept is None else None
        self._grown: dict[int, Exchange] = {}  # what was read on, until it is asked for
        self._begun = False
        self.remarks = tuple(remarks)

    @property
    def name(self) -> str:
        return "standard input" if self._source == STDIN else self._source

    @property
    def key(self) -> str:
        """The key of its only unit."""
        return f"log:{self._source}"

    def close(self) -> None:
        pass

    def news(self) -> News:
        news = News()
        stamp = self._stamped()
        if self._begun and stamp == self._stamp:
            return news
        before, self._stamp = self._stamp, stamp
        if not self._begun:
            self._begun = True
            news.afresh.add(self.key)
        else:
            new = self._read_on(news)
            if new is None:
                new = self._read_again(news, alone=len(before) == len(stamp) == 1)
            if not new:
                return news
        news.units[self.key] = Unit(
            self.key, self.name, t=max((at / 1e9 for *_, at in stamp), default=0.0), exchanges=self._count
        )
        return news

    def _read_on(self, news: News) -> bool | None:
        """Takes what was added to a plain log: whether that was anything; None where it must all be read."""
        lines = self._tail.read() if self._tail is not None else None
        if lines is None:
            return None
        for line in lines:
            try:
                self._grown[self._count] = parse_line(line, self.name, self._count + 1)
            except InputError:
                break
            news.added.setdefault(self.key, []).append(self._count)
            self._count += 1
        return bool(news.added)

    def _read_again(self, news: News, *, alone: bool) -> bool:
        """Looks at all of it; False where nothing of it is new. alone: it is one file, and was."""
        first, count = _opening(_as_far_as_written(self._all()))
        if first == self._first and count == self._count:
            return False
        # A folder is read in the order of its names, so that a new log may come before the others.
        if first == self._first and count > self._count and alone:
            news.added[self.key] = list(range(self._count, count))
        else:
            news.afresh.add(self.key)
        self._first, self._count = first, count
        self._tail = _Tail.of(self._path)
        return True

    def read(self, unit: str, numbers: Sequence[int] | None = None) -> Iterator[tuple[int, Exchange]]:
        grown, self._grown = self._grown, {}
        if numbers is not None and grown.keys() >= set(numbers):
            return iter([(number, grown[number]) for number in numbers])
        found = enumerate(_as_far_as_written(self._all()))
        return islice(found, self._count) if numbers is None else islice(found, numbers[0], numbers[-1] + 1)

    def search(self, text: str, most: int) -> list[Found]:
        needles = spellings(text)
        found: dict[str, Found] = {}  # by excerpt: a text stands in every later prompt, too
        for index, exchange in enumerate(_as_far_as_written(self._all())):
            around = excerpt(exchange.request, needles)
            if around is not None and around not in found:
                found[around] = Found(self.key, index, around)
        return list(reversed(found.values()))[:most]

    def _all(self, tell: Tell = lambda lines: None) -> Iterator[Exchange]:
        return iter(self._kept) if self._kept is not None else iterate_source(self._source, tell=tell)

    def _stamped(self) -> _Stamp:
        """By file: name, number, size, time of change. What cannot be looked at counts as not there."""
        if self._kept is not None:
            return ()
        files = sorted(self._path.rglob("*")) if self._path.is_dir() else [self._path]
        stamp = []
        for file in files:
            try:
                found = file.stat()
            except OSError:
                continue
            stamp.append((str(file), found.st_ino, found.st_size, found.st_mtime_ns))
        return tuple(stamp)


class _Tail:
    """The end of a plain exchange log: where it is, so that a long log is not read again for each line."""

    def __init__(self, path: Path, head: bytes, end: int) -> None:
        self._path = path
        self._head = head
        self._end = end

    @classmethod
    def of(cls, path: Path) -> _Tail | None:
        """The end of a log as it is now; None for other files, and for one that ends within a line."""
        if not path.name.endswith(_PLAIN):
            return None
        try:
            with path.open("rb") as stream:
                head = stream.read(_HEAD)
                end = stream.seek(0, os.SEEK_END)
                stream.seek(max(0, end - 1))
                whole = stream.read() == b"\n" and head.lstrip(_BLANK).startswith(b"{")
        except OSError:
            return None
        return cls(path, head, end) if whole else None

    def read(self) -> list[bytes] | None:
        """The lines that were added and are whole; None when it is not the same file any more."""
        try:
            with self._path.open("rb") as stream:
                head = stream.read(len(self._head))
                if head != self._head or stream.seek(0, os.SEEK_END) < self._end:
                    return None
                stream.seek(self._end)
                added = stream.read()
        except OSError:
            return None
        added = added[: added.rfind(b"\n") + 1]
        self._end += len(added)
        return [line for line in added.split(b"\n") if line.strip(_BLANK)]


def _as_far_as_written(exchanges: Iterator[Exchange]) -> Iterator[Exchange]:
    """The exchanges up to a line that cannot be read: the last one, while it is being written."""
    try:
        yield from exchanges
    except InputError:
        return


def _opening(exchanges: Iterator[Exchange]) -> tuple[tuple[float, bytes] | None, int]:
    """(what tells a log from another of the same name, how many exchanges it holds)."""
    first, count = None, 0
    for exchange in exchanges:
        if first is None:
            first = exchange.t, exchange.request[:256]
        count += 1
    return first, count
