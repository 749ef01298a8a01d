"""Folding as it comes: the same figures as a report, whatever comes in which order, in bounded memory."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from prefixguard.analysis import Fold
from prefixguard.errors import InputError
from prefixguard.exchange import Exchange
from prefixguard.store import Store
from prefixguard.turn import Session
from prefixguard.ui.desk import BUDGET, Desk, UnknownSessionError
from prefixguard.ui.feed import Feed, News, Unit
from prefixguard.ui.folded import Folded
from prefixguard.ui.stream import Hub
from prefixguard.ui.watch import RecordFeed

from .agents import add, captures, record
from .running import OPTIONS, RULEBOOK, wait_until


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "record.sqlite")


@pytest.fixture
def store(path: str) -> Iterator[Store]:
    with Store.open(path) as store:
        yield store


@contextmanager
def working(feed: Feed, budget: int = BUDGET) -> Iterator[Desk]:
    desk = Desk(feed, lambda: Fold(RULEBOOK, OPTIONS), RULEBOOK.findings, Hub(), budget)
    desk.start()
    try:
        yield desk
    finally:
        desk.stop()


def asked[T](question: Callable[[], Awaitable[T]]) -> T:
    async def ask() -> T:
        return await asyncio.wait_for(question(), 20)

    return asyncio.run(ask())


def session_of(desk: Desk, key: str) -> Session:
    def question(units: tuple[Folded, ...]) -> Session:
        listed = units[0].sessions[key].listed
        assert listed is not None
        return listed.session

    return asked(lambda: desk.ask_of((key,), question))


def reported(store: Store, name: str) -> Session:
    fold = Fold(RULEBOOK, OPTIONS)
    for exchange in store.exchanges(name):
        fold.step(exchange)
    (session,) = fold.result().sessions
    return session


def in_memory(desk: Desk) -> set[str]:
    return asked(lambda: desk.ask(lambda d: {unit.key for unit in d.units if unit.fold is not None}))


def settled(desk: Desk) -> bool:
    return asked(lambda: desk.ask(lambda d: bool(d.units) and not d.waiting))


def test_what_comes_late_is_brought_in_order(store: Store, path: str) -> None:
    """Of two requests at the same time, the one that began first may end last."""
    live = list(captures("one", clock=True, turns=6))
    with Store.open(f"{path}.warm") as other:  # the rest between efforts is measured by how long they take
        record(other, "one", turns=1)
        reported(other, "one")
    with working(RecordFeed(path)) as desk:
        for i in (0, 1, 3, 2, 5, 4):
            add(store, live[i])
            wait_until(lambda: settled(desk))
        expected = reported(store, "one")
        wait_until(lambda: session_of(desk, "one") == expected)


def test_prompts_of_few_sessions_stay_in_memory(store: Store, path: str) -> None:
    for number in range(5):
        record(store, f"s{number}", turns=3, start=1_796_000_000.0 + 100 * number)
    with working(RecordFeed(path), budget=1) as desk:
        wait_until(lambda: settled(desk))
        assert len(in_memory(desk)) == 2
        told = asked(lambda: desk.ask(lambda d: [one.entry for u in d.units for one in u.sessions.values()]))
        assert len([entry for entry in told if entry is not None and entry.turns == 3]) == 5
        assert session_of(desk, "s0") == reported(store, "s0")
        assert "s0" in in_memory(desk)
        # One that is not in memory still grows.
        gone = next(iter({f"s{n}" for n in range(5)} - in_memory(desk)))
        start = 1_796_000_000.0 + 100 * int(gone[1])
        add(store, list(captures(gone, turns=4, start=start))[3])
        wait_until(lambda: len(session_of(desk, gone).turns) == 4)
        assert session_of(desk, gone) == reported(store, gone)


def test_two_are_compared_whatever_they_weigh(store: Store, path: str) -> None:
    for number in range(3):
        record(store, f"s{number}", turns=3)
    with working(RecordFeed(path), budget=1) as desk:
        wait_until(lambda: settled(desk))
        for pair in (("s0", "s1"), ("s1", "s2"), ("s2", "s0")):
            found = asked(
                lambda pair=pair: desk.ask_of(pair, lambda units: [u.fold is not None for u in units])
            )
            assert found == [True, True]


def test_a_session_that_is_deleted_while_it_is_awaited(store: Store, path: str) -> None:
    record(store, "one", turns=3)
    with working(RecordFeed(path)) as desk:
        wait_until(lambda: settled(desk))
        store.delete("one")
        wait_until(lambda: not asked(lambda: desk.ask(lambda d: d.units)))
        with pytest.raises(UnknownSessionError):
            session_of(desk, "one")


class Odd:
    """A feed that fails as it is told to."""

    name = "odd"
    remarks = ()

    def __init__(self, exchanges: Sequence[Exchange]) -> None:
        self.exchanges = exchanges
        self.units = {"good": Unit("good", t=1.0), "bad": Unit("bad", t=2.0)}
        self.fails = False

    def news(self) -> News:
        if self.fails:
            raise InputError("the disk is gone")
        units, self.units = self.units, {}
        return News(units=units, afresh=set(units))

    def read(self, unit: str, numbers: Sequence[int] | None = None) -> Iterator[tuple[int, Exchange]]:
        for number, exchange in enumerate(self.exchanges):
            if unit == "bad" and number == 1:
                raise InputError("its second half is missing")
            yield number, exchange

    def close(self) -> None:
        pass


@pytest.fixture
def exchanges(store: Store) -> list[Exchange]:
    record(store, "one", turns=3)
    return list(store.exchanges("one"))


def test_a_damaged_session_is_shown_as_far_as_it_goes(exchanges: list[Exchange]) -> None:
    with working(Odd(exchanges)) as desk:
        wait_until(lambda: settled(desk))
        turns = asked(lambda: desk.ask(lambda d: {u.key: len(u.numbers) for u in d.units}))
        assert turns == {"good": 3, "bad": 1}
        assert asked(lambda: desk.ask(lambda d: d.trouble)) == "its second half is missing"


def test_trouble_with_the_feed_is_said_and_passes(
    exchanges: list[Exchange], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("prefixguard.ui.desk._TROUBLED", 0.05)
    feed = Odd(exchanges[:1])
    del feed.units["bad"]
    with working(feed) as desk:
        wait_until(lambda: settled(desk))
        feed.fails = True
        wait_until(lambda: asked(lambda: desk.ask(lambda d: d.trouble)) == "the disk is gone")
        feed.fails = False
        wait_until(lambda: asked(lambda: desk.ask(lambda d: d.trouble)) == "")
