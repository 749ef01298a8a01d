"""A reader notices what another writer adds, and sees how far each exchange has come."""

from __future__ import annotations

from array import array
from collections.abc import Iterator

import pytest

from prefixguard.exchange import Rendered
from prefixguard.store import UNASSIGNED, Store
from prefixguard.store.watching import Watch

from .captures import KEY, OTHER, capture, conversation


@pytest.fixture
def writer(target: str) -> Iterator[Store]:
    with Store.open(target) as store:
        yield store


@pytest.fixture
def watch(writer: Store, target: str) -> Iterator[Watch]:
    with Store.open(target, create=False) as reader:
        watch = reader.watch()
        yield watch
        watch.close()


def test_what_another_writes_is_noticed_once(writer: Store, watch: Watch) -> None:
    assert watch.changed()
    assert not watch.changed()
    writer.append(capture({"model": "m"}), KEY)
    assert watch.changed()
    assert not watch.changed()


def test_an_exchange_is_seen_to_come_along(writer: Store, watch: Watch) -> None:
    one = capture({"model": "m", "messages": []})
    writer.append(one, None)
    (arrival,) = watch.arrivals(0)
    assert (arrival.session, arrival.started, arrival.rendered, arrival.analysed) == (
        UNASSIGNED, one.t, False, False,
    )  # fmt: skip
    writer.save_rendered(one.id, Rendered("llama.cpp b1", array("i", [1, 2, 3])))
    writer.assign(one.id, "c0ffee")
    writer.save_turn(one.id, b"{}")
    assert watch.arrivals(arrival.number) == []
    (later,) = watch.arrivals(arrival.number, again=[arrival.number])
    assert (later.session, later.rendered, later.analysed) == ("c0ffee", True, True)


def test_exchanges_are_read_by_session_or_number(writer: Store, watch: Watch) -> None:
    bodies = [capture(body) for body in conversation(4)]
    for one, key in zip(bodies, (KEY, OTHER, KEY, None), strict=True):
        writer.append(one, key)
    assert [e.request for _, e in watch.exchanges("ses_one")] == [bodies[0].body, bodies[2].body]
    assert [e.request for _, e in watch.exchanges(UNASSIGNED)] == [bodies[3].body]
    numbers = [arrival.number for arrival in watch.arrivals(0)]
    found = list(watch.exchanges(numbers=numbers[1:3]))
    assert [number for number, _ in found] == numbers[1:3]
    assert [e.request for _, e in found] == [bodies[1].body, bodies[2].body]


def test_a_deletion_shows_in_the_state(writer: Store, watch: Watch) -> None:
    writer.append(capture({"model": "m"}), KEY)
    before = watch.state()
    writer.delete("ses_one")
    after = watch.state()
    assert before[1] == 1
    assert after[1] == 0
    assert after[0] != before[0]
