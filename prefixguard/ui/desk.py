"""Where exchanges are folded as they come: one thread, that also answers what pages ask of prompts.

What somebody waits for comes first, then what is being recorded, then what was
recorded before, the newest first. Prompts of the units used last stay in
memory, up to a budget; others are read and folded again when they are opened.
"""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Generator, Mapping
from typing import Final

from prefixguard.analysis import Fold
from prefixguard.errors import PrefixGuardError
from prefixguard.exchange import Exchange
from prefixguard.reports.json import encode
from prefixguard.rulebook import FindingRule
from prefixguard.ui.answer import Answer
from prefixguard.ui.feed import Feed, News
from prefixguard.ui.folded import Folded
from prefixguard.ui.stream import Hub

PERIOD: Final = 0.15
"""Seconds between looks at the feed."""
BUDGET: Final = 384 * 2**20
"""Bytes of memory, about, for the prompts of folded units."""
_AT_LEAST: Final = 2
"""Units that stay folded whatever they weigh: the two that are compared."""
_TROUBLED: Final = 2.0
"""Seconds until the feed is tried again after it failed."""
_SLICE: Final = 0.05
"""Seconds of folding between looks at what is asked."""
_REST: Final = 10.0
"""A unit is brought in order of time again after this many times as long as that took last."""

type _Job = Callable[[], None]


class UnknownSessionError(PrefixGuardError):
    """A page asks for a session that is not, or no longer, there."""


class Desk:
    """Folds what a feed brings and tells the hub. Start it once; what is `async` is for the loop."""

    def __init__(
        self,
        feed: Feed,
        make_fold: Callable[[], Fold],
        findings: Mapping[str, FindingRule],
        hub: Hub,
        budget: int = BUDGET,
    ) -> None:
        self.findings = findings
        self.feed_name = feed.name
        self.remarks = feed.remarks
        self.left_out = 0
        self.revision = 0
        """Grows with everything that is told."""
        self._feed = feed
        self._make_fold = make_fold
        self._hub = hub
        self._budget = budget
        self._units: dict[str, Folded] = {}
        self._owners: dict[str, Folded] = {}  # by the key of a session
        self._in_memory: OrderedDict[str, Folded] = OrderedDict()  # complete ones, the last used at the end
        self._to_do: set[str] = set()  # units to fold from the start
        self._reading: dict[str, _Reading] = {}
        self._awaited: dict[str, list[_Job]] = {}
        self._troubles: dict[str, str] = {}  # by unit; "" is the feed
        self._rested: dict[str, float] = {}  # when a unit may be brought in order again
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="prefixguard-desk", daemon=True)

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def stop(self, timeout: float = 5.0) -> None:
        """Ends the thread, and closes the feed."""
        self._stopping = True
        self._jobs.put(None)
        if self._thread.is_alive():
            self._thread.join(timeout)

    # What the loop asks.

    async def ask[T](self, question: Callable[[Desk], T]) -> T:
        """The answer to a question that needs no prompt, given in the desk's thread."""
        answer = Answer[T]()
        self._jobs.put(lambda: answer.give(lambda: question(self)))
        return await answer.future

    async def ask_of[T](self, keys: tuple[str, ...], question: Callable[[tuple[Folded, ...]], T]) -> T:
        """The answer to a question about sessions, whose units are folded first where they are not.

        Raises UnknownSessionError; whatever the question raises.
        """
        answer = Answer[T]()

        def when_folded() -> None:
            if any(key not in self._owners for key in keys):
                answer.give(lambda: question(tuple(self.owner(key) for key in keys)))
                return
            units = tuple(self.owner(key) for key in keys)
            missing = next((unit.unit.key for unit in units if not unit.complete), None)
            if missing is None:
                for unit in units:
                    self._in_memory.move_to_end(unit.unit.key)
                answer.give(lambda: question(units))
                return
            if missing not in self._reading:
                self._to_do.add(missing)
            self._awaited.setdefault(missing, []).append(when_folded)

        self._jobs.put(when_folded)
        return await answer.future

    async def search(self, text: str, most: int) -> list[tuple[str, int, str]]:
        """(key of the session, index of the turn, excerpt) where a text came into a prompt."""
        # It reads much and folds nothing: what is being recorded need not wait for it.
        found = await asyncio.to_thread(self._feed.search, text, most)

        def named(desk: Desk) -> list[tuple[str, int, str]]:
            units = desk._units
            return [
                (units[one.unit].session_of(one.index), one.index, one.excerpt)
                for one in found
                if one.unit in units
            ]

        return await self.ask(named)

    # The rest runs in the thread.

    @property
    def units(self) -> list[Folded]:
        """Every unit, the one that was active last first."""
        return sorted(self._units.values(), key=lambda unit: unit.unit.t, reverse=True)

    @property
    def waiting(self) -> int:
        """How many units are still to be folded for the first time."""
        return sum(1 for unit in self._units.values() if not unit.sessions)

    @property
    def trouble(self) -> str:
        """What does not work just now, or ""."""
        return next(iter(self._troubles.values()), "")

    def owner(self, key: str) -> Folded:
        """The unit of a session. Raises UnknownSessionError."""
        unit = self._owners.get(key)
        if unit is None:
            raise UnknownSessionError(f"there is no session {key} here (any more)")
        return unit

    def _run(self) -> None:
        look = 0.0
        try:
            while not self._stopping:
                now = time.monotonic()
                if now >= look:
                    look = now + (PERIOD if self._look() else _TROUBLED)
                    # Here, and not when nobody asks: pages that ask all the time must not keep it from this.
                    if not self._to_do and not self._reading:
                        self._bring_in_order()
                busy = bool(self._to_do or self._reading)
                try:
                    job = self._jobs.get(block=not busy, timeout=max(0.001, look - time.monotonic()))
                except queue.Empty:
                    if busy:
                        self._work()
                    continue
                if job is not None:
                    job()
        finally:
            for reading in self._reading.values():
                reading.close()
            self._feed.close()

    def _look(self) -> bool:
        """Takes what is new from the feed; False when that failed."""
        try:
            self._take(self._feed.news())
        except Exception as error:  # noqa: BLE001  the pages go on with what they have, and say it
            self._say_trouble("", _reason(error))
            return False
        self._say_trouble("", None)
        return True

    def _say_trouble(self, unit: str, message: str | None) -> None:
        before = self.trouble
        if message is None:
            self._troubles.pop(unit, None)
        else:
            self._troubles[unit] = message
        if self.trouble != before:
            self._hub.publish("trouble", encode(self.trouble))

    def _take(self, news: News) -> None:
        if news.left_out is not None:
            self.left_out = news.left_out
        for key in news.gone:
            self._drop(key)
        for key, unit in news.units.items():
            known = self._units.get(key)
            if known is None:
                known = self._units[key] = Folded(unit)
                self._owners[known.key] = known
            known.unit = unit
        for key in news.afresh & self._units.keys():
            self._afresh(key)
        for key, numbers in news.added.items():
            self._add(self._units[key], numbers)

    def _drop(self, key: str) -> None:
        unit = self._units.pop(key, None)
        if unit is None:
            return
        self._put_down(key)
        self._to_do.discard(key)
        self._rested.pop(key, None)
        self._say_trouble(key, None)
        for session in {unit.key, *unit.sessions}:
            self._owners.pop(session, None)
            self._say_gone(session)
        for job in self._awaited.pop(key, ()):
            job()

    def _put_down(self, key: str) -> None:
        reading = self._reading.pop(key, None)
        if reading is not None:
            reading.close()
        self._in_memory.pop(key, None)

    def _afresh(self, key: str) -> None:
        self._put_down(key)
        self._units[key].complete = False
        self._to_do.add(key)

    def _add(self, unit: Folded, numbers: list[int]) -> None:
        key = unit.unit.key
        if key in self._reading:
            self._reading[key].later += numbers
        elif unit.complete:
            for number, exchange in self._feed.read(key, numbers):
                unit.step(number, exchange)
            self._in_memory.move_to_end(key)
            self._tell(unit)
            self._make_room()
        else:
            self._to_do.add(key)

    def _bring_in_order(self) -> None:
        """Folds a unit anew in which an exchange came late.

        Agents with parallel requests do that all the time, so that there is a
        rest behind each such effort.
        """
        now = time.monotonic()
        for key, unit in self._in_memory.items():
            if unit.disordered and now >= self._rested.get(key, 0.0):
                self._afresh(key)
                return

    def _work(self) -> None:
        """Folds for a moment: what is awaited, else the unit that was active last."""
        open_ = self._to_do | self._reading.keys()
        key = max(open_, key=lambda one: (one in self._awaited, self._units[one].unit.t))
        unit = self._units[key]
        try:
            reading = self._reading.get(key)
            if reading is None:
                self._to_do.discard(key)
                unit.begin(self._make_fold())
                reading = self._reading[key] = _Reading(self._feed, key)
            if not reading.fold_into(unit, time.monotonic() + _SLICE):
                return
            self._rested[key] = time.monotonic() + _REST * reading.seconds
            self._say_trouble(key, None)
        except Exception as error:  # noqa: BLE001  a damaged record, say: it is shown as far as it was read
            self._to_do.discard(key)
            self._say_trouble(key, _reason(error))
        self._put_down(key)
        unit.complete = True
        self._in_memory[key] = unit
        self._tell(unit)
        for job in self._awaited.pop(key, ()):
            job()
        self._make_room()

    def _tell(self, unit: Folded) -> None:
        self.revision += 1
        try:
            changed, gone = unit.tell(self.findings, self.revision)
        except Exception as error:  # noqa: BLE001  one session that cannot be told must not end the others
            self._say_trouble(unit.unit.key, _reason(error))
            return
        for session in gone:
            self._owners.pop(session, None)
            self._say_gone(session)
        for session in unit.sessions:
            self._owners[session] = unit
        if changed:
            self._hub.publish("changed", encode({"keys": changed, "waiting": self.waiting}))

    def _say_gone(self, session: str) -> None:
        self.revision += 1
        self._hub.publish("gone", encode(session))

    def _make_room(self) -> None:
        held = sum(unit.weight for unit in self._in_memory.values())
        while held > self._budget and len(self._in_memory) > _AT_LEAST:
            _, unit = self._in_memory.popitem(last=False)
            held -= unit.weight
            unit.pack()


class _Reading:
    """A unit that is being folded from its start. later: numbers that came in meanwhile."""

    def __init__(self, feed: Feed, key: str) -> None:
        self._feed = feed
        self._key = key
        self._exchanges = self._all()
        self.later: list[int] = []
        self.seconds = 0.0

    def _all(self) -> Generator[tuple[int, Exchange]]:
        yield from self._feed.read(self._key)
        while self.later:
            numbers, self.later = self.later, []
            yield from self._feed.read(self._key, numbers)

    def fold_into(self, unit: Folded, until: float) -> bool:
        """Folds on for a while; whether that was all."""
        start = time.monotonic()
        for number, exchange in self._exchanges:
            unit.step(number, exchange)
            now = time.monotonic()
            if now >= until:
                self.seconds += now - start
                return False
        self.seconds += time.monotonic() - start
        return True

    def close(self) -> None:
        """Lets go of the record."""
        self._exchanges.close()


def _reason(error: Exception) -> str:
    return str(error) if isinstance(error, PrefixGuardError) else f"{type(error).__name__}: {error}"
