"""Watches exchange logs, and other records that the importers read; a log that grows is read on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from prefixguard.errors import InputError
from prefixguard.exchange import Exchange
from prefixguard.importers import iterate_source
from prefixguard.importers.exchange_log import STDIN
from prefixguard.store.searching import excerpt, spellings
from prefixguard.ui.feed import Found, News, Unit

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
        self._stamp = self._stamped()
        # Whatever is wrong now is an error; later a line may be cut off because it is being written.
        self._first, self._count = _opening(self._all())
        self._begun = False

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
        if not self._begun:
            self._begun = True
            news.afresh.add(self.key)
        else:
            before, self._stamp = self._stamp, stamp
            first, count = _opening(_as_far_as_written(self._all()))
            if first == self._first and count == self._count:
                return news
            # A folder is read in the order of its names, so that a new log may come before the others.
            if first == self._first and count > self._count and len(before) == len(stamp) == 1:
                news.added[self.key] = list(range(self._count, count))
            else:
                news.afresh.add(self.key)
            self._first, self._count = first, count
        news.units[self.key] = Unit(
            self.key, self.name, t=max((at / 1e9 for *_, at in stamp), default=0.0), exchanges=self._count
        )
        return news

    def read(self, unit: str, numbers: Sequence[int] | None = None) -> Iterator[tuple[int, Exchange]]:
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

    def _all(self) -> Iterator[Exchange]:
        return iter(self._kept) if self._kept is not None else iterate_source(self._source)

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
