"""Watches a record that another process writes: the proxy's, most of the time.

Asks whether anything was committed, several times a second, and reads a row per
exchange only when there was. A new exchange is passed on once its analysis is
kept, because only then are its session and its token ids known, or after a
short wait where nobody analyses.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from prefixguard.errors import InputError
from prefixguard.exchange import Exchange
from prefixguard.store import UNASSIGNED, Store
from prefixguard.store.database import store_url
from prefixguard.store.watching import Arrival, Watch
from prefixguard.ui.feed import Found, News, Unit

PATIENCE = 0.6
"""Seconds that a new exchange is waited for, until its analysis is kept."""
PATIENCE_UNASSIGNED = 2.0
"""Seconds, where only its analysis will tell its session."""
_FOLLOWED = 256
"""How many exchanges without an analysis are followed, to see what becomes of them."""
_LOOK_AGAIN = 1.0
"""Seconds between looks for a file that is not there, or that may have been replaced."""


@dataclass(slots=True)
class _Passed:
    """What was known of an exchange when it was passed on."""

    session: str
    rendered: bool


class RecordFeed:
    """The sessions of a record.

    only: ids, or starts of ids, of the sessions to show; () for all. newest: how
    many of those that are there at the start; the others come when they go on.
    """

    def __init__(
        self,
        target: str | None = None,
        only: Sequence[str] = (),
        newest: int | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Raises StoreError when there is a record that cannot be read, InputError for an unknown session."""
        self.remarks: tuple[str, ...] = ()
        self._target = target
        self._newest = newest
        self._clock = clock
        url = store_url(target)
        self._path = Path(str(url.database)) if url.get_backend_name() == "sqlite" else None
        self._name = url.render_as_string() if self._path is None else str(self._path)
        self._store: Store | None = None
        self._watch: Watch | None = None
        self._file: tuple[int, int] | None = None
        self._looked = -_LOOK_AGAIN
        self._forget()
        self._units: dict[str, Unit] = {}
        self._open()
        self._only = self._resolved(only) if only else None

    @property
    def name(self) -> str:
        return self._name

    def close(self) -> None:
        if self._watch is not None:
            self._watch.close()
        if self._store is not None:
            self._store.close()
        self._watch = self._store = None

    def news(self) -> News:
        news = News()
        self._look_for_another_file(news)
        if self._watch is None:
            return news
        if not self._begun:
            self._begin(news)
        elif self._watch.changed() or self._waiting:
            self._advance(self._watch, news)
        return news

    def read(self, unit: str, numbers: Sequence[int] | None = None) -> Iterator[tuple[int, Exchange]]:
        if self._watch is None:
            return iter(())
        return self._watch.exchanges(unit, numbers)

    def search(self, text: str, most: int) -> list[Found]:
        store, only = self._store, self._only
        hits = store.search(text, most) if store is not None else []
        return [
            Found(hit.session, hit.index, hit.excerpt) for hit in hits if only is None or hit.session in only
        ]

    def _resolved(self, names: Sequence[str]) -> frozenset[str]:
        if self._store is None:
            raise InputError(f"{names[0]}: no such file, and there is no record at {self._name} yet")
        return frozenset(self._store.resolve(name) for name in names)

    def _forget(self) -> None:
        self._begun = False
        self._deletions = ""
        self._highest = 0
        self._waiting: dict[int, float] = {}
        self._followed: dict[int, _Passed] = {}

    def _open(self) -> None:
        if self._path is not None:
            try:
                found = self._path.stat()
            except OSError:
                return
            if found.st_size == 0:  # somebody is making it just now
                return
            self._file = found.st_dev, found.st_ino
        self._store = Store.open(self._target, create=False)
        self._watch = self._store.watch()

    def _look_for_another_file(self, news: News) -> None:
        """A record that was not there may be now; one that was deleted may have been made anew."""
        now = self._clock()
        if self._path is None or now < self._looked + _LOOK_AGAIN:
            return
        self._looked = now
        if self._watch is not None:
            try:
                found = self._path.stat()
            except OSError:
                found = None
            if found is not None and (found.st_dev, found.st_ino) == self._file:
                return
            self.close()
            self._forget()
            news.gone |= self._units.keys()
            self._units = {}
        self._open()

    def _begin(self, news: News) -> None:
        """Everything that is there, and again after a deletion, when numbers may come a second time."""
        assert self._watch is not None
        self._watch.changed()
        self._deletions, self._highest = self._watch.state()
        before, self._units = self._units, self._listed(news)
        self._begun = True
        self._waiting, self._followed = {}, {}
        recent = self._watch.arrivals(max(0, self._highest - _FOLLOWED))
        self._followed = {a.number: _Passed(a.session, a.rendered) for a in recent if not a.analysed}
        news.units |= {key: unit for key, unit in self._units.items() if before.get(key) != unit}
        news.afresh |= {key for key, unit in self._units.items() if key not in before or before[key] != unit}
        news.gone |= before.keys() - self._units.keys()

    def _listed(self, news: News) -> dict[str, Unit]:
        assert self._store is not None
        rows = [row for row in self._store.sessions() if self._only is None or row.id in self._only]
        # Those that are shown already stay, however many have come since.
        shown = len(rows) if self._newest is None else self._newest
        kept = [row for place, row in enumerate(reversed(rows)) if place < shown or row.id in self._units]
        news.left_out = len(rows) - len(kept)
        return {
            row.id: Unit(row.id, "", row.agent, row.last_t, row.exchanges, tuple(sorted(row.recording)))
            for row in reversed(kept)
        }

    def _advance(self, watch: Watch, news: News) -> None:
        deletions, _ = watch.state()
        if deletions != self._deletions:
            self._begin(news)
            return
        now = self._clock()
        known = [*self._waiting, *self._followed]
        arrivals = watch.arrivals(self._highest, known)
        for arrival in arrivals:
            self._highest = max(self._highest, arrival.number)
            passed = self._followed.get(arrival.number)
            if passed is not None:
                self._follow(arrival, passed, news)
                continue
            since = self._waiting.setdefault(arrival.number, now)
            patience = PATIENCE_UNASSIGNED if arrival.session == UNASSIGNED else PATIENCE
            if arrival.analysed or now - since >= patience:
                del self._waiting[arrival.number]
                self._pass_on(arrival, news)

    def _pass_on(self, arrival: Arrival, news: News) -> None:
        if not arrival.analysed:
            self._followed[arrival.number] = _Passed(arrival.session, arrival.rendered)
            while len(self._followed) > _FOLLOWED:
                del self._followed[next(iter(self._followed))]
        if self._only is not None and arrival.session not in self._only:
            return
        unit = self._units.get(arrival.session) or Unit(arrival.session)
        unit = replace(
            unit,
            agent=unit.agent or arrival.agent,
            t=max(unit.t, arrival.started),
            exchanges=unit.exchanges + 1,
        )
        self._units[unit.key] = news.units[unit.key] = unit
        news.added.setdefault(unit.key, []).append(arrival.number)

    def _follow(self, arrival: Arrival, passed: _Passed, news: News) -> None:
        """An exchange that was passed on before its analysis came: is it still what it was?"""
        if arrival.session != passed.session:
            # It moves into its session; those that stay behind have to be told apart from it.
            self._units = self._listed(news)
            for key in (arrival.session, passed.session):
                if key in self._units:
                    news.units[key] = self._units[key]
                    news.afresh.add(key)
                elif self._only is None or key in self._only:
                    news.gone.add(key)
        elif arrival.rendered != passed.rendered:
            news.afresh.add(arrival.session)
        passed.session, passed.rendered = arrival.session, arrival.rendered
        if arrival.analysed:
            del self._followed[arrival.number]
