"""What the pages are fed with from a record that another process writes."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from pathlib import Path

import pytest

from prefixguard.errors import InputError
from prefixguard.exchange import Rendered
from prefixguard.store import UNASSIGNED, Store, StoreError
from prefixguard.ui.watch import PATIENCE, PATIENCE_UNASSIGNED, RecordFeed

from .agents import add, captures, key_of, record


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "record.sqlite")


@pytest.fixture
def store(path: str) -> Iterator[Store]:
    with Store.open(path) as store:
        yield store


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def feed(store: Store, path: str, clock: Clock) -> Iterator[RecordFeed]:
    feed = RecordFeed(path, clock=clock)
    yield feed
    feed.close()


def test_what_is_there_comes_first(store: Store, feed: RecordFeed) -> None:
    record(store, "one", turns=3)
    news = feed.news()
    assert news.afresh == {"one"}
    assert (news.units["one"].exchanges, news.units["one"].recording) == (3, ("full",))
    assert [exchange.path for _, exchange in feed.read("one")] == ["/v1/chat/completions"] * 3
    assert not feed.news()


def test_an_analysed_exchange_comes_at_once(store: Store, feed: RecordFeed) -> None:
    feed.news()
    live = captures("one")
    add(store, next(live))
    news = feed.news()
    assert list(news.added) == ["one"]
    assert news.units["one"].exchanges == 1
    add(store, next(live))
    add(store, next(live))
    (numbers,) = feed.news().added.values()
    assert len([1 for _ in feed.read("one", numbers)]) == 2
    assert not feed.news()


def test_one_without_analysis_comes_after_a_while(store: Store, feed: RecordFeed, clock: Clock) -> None:
    feed.news()
    store.append(next(captures("one")), key_of("one"))
    assert not feed.news()
    clock.now += PATIENCE
    assert list(feed.news().added) == ["one"]


def test_a_session_found_by_content_is_waited_for(store: Store, feed: RecordFeed, clock: Clock) -> None:
    feed.news()
    capture = next(captures("one"))
    store.append(capture, None)
    assert not feed.news()
    clock.now += PATIENCE
    assert not feed.news()
    store.assign(capture.id, "c0ffee")
    store.save_turn(capture.id, b"{}")
    assert list(feed.news().added) == ["c0ffee"]


def test_one_that_moves_late_is_moved(store: Store, feed: RecordFeed, clock: Clock) -> None:
    feed.news()
    capture = next(captures("one"))
    store.append(capture, None)
    feed.news()
    clock.now += PATIENCE_UNASSIGNED
    assert list(feed.news().added) == [UNASSIGNED]
    store.assign(capture.id, "c0ffee")
    news = feed.news()
    assert (news.afresh, news.gone) == ({"c0ffee"}, {UNASSIGNED})
    assert len(list(feed.read("c0ffee"))) == 1


def test_token_ids_that_come_late_make_it_anew(store: Store, feed: RecordFeed, clock: Clock) -> None:
    feed.news()
    capture = next(captures("one"))
    store.append(capture, key_of("one"))
    feed.news()
    clock.now += PATIENCE
    feed.news()
    store.save_rendered(capture.id, Rendered("llama.cpp b1", array("i", [1, 2])))
    assert feed.news().afresh == {"one"}
    assert not feed.news()


def test_deleted_sessions_go(store: Store, feed: RecordFeed) -> None:
    record(store, "one", turns=2)
    record(store, "two", turns=2)
    feed.news()
    store.delete("two")
    record(store, "three", turns=1)  # it gets the numbers of those that were deleted
    news = feed.news()
    assert (news.gone, news.afresh) == ({"two"}, {"three"})
    assert not feed.news()


def test_a_record_may_come_later(path: str, clock: Clock) -> None:
    feed = RecordFeed(path, clock=clock)
    assert not feed.news()
    with Store.open(path) as store:
        record(store, "one", turns=1)
        assert not feed.news()  # it does not look all the time
        clock.now += 2
        assert feed.news().afresh == {"one"}
    feed.close()


def test_a_record_may_be_made_anew(store: Store, feed: RecordFeed, path: str, clock: Clock) -> None:
    record(store, "one", turns=1)
    feed.news()
    store.close()
    for file in Path(path).parent.iterdir():
        file.unlink()
    clock.now += 2
    assert feed.news().gone == {"one"}
    with Store.open(path) as other:
        record(other, "two", turns=1)
        clock.now += 2
        assert feed.news().afresh == {"two"}


def test_some_sessions_only(store: Store, path: str) -> None:
    record(store, "one", turns=1)
    record(store, "two", turns=1)
    feed = RecordFeed(path, ["last"])
    assert feed.news().afresh == {"two"}
    add(store, next(captures("one")))
    add(store, next(captures("two")))
    assert list(feed.news().added) == ["two"]
    feed.close()
    with pytest.raises(InputError, match="no session"):
        RecordFeed(path, ["nobody"])


def test_the_newest_sessions_only(store: Store, path: str) -> None:
    for number in range(4):
        record(store, f"s{number}", turns=1, start=1_796_000_000.0 + 100 * number)
    feed = RecordFeed(path, newest=2)
    news = feed.news()
    assert (news.afresh, news.left_out) == ({"s2", "s3"}, 2)
    add(store, list(captures("s0", turns=2, start=1_797_000_000.0))[1])  # an old one goes on
    assert list(feed.news().added) == ["s0"]
    assert len(list(feed.read("s0"))) == 2
    store.delete("s3")
    news = feed.news()
    assert (news.gone, news.left_out) == ({"s3"}, 1)
    feed.close()


def test_what_is_no_record_is_said_at_once(tmp_path: Path) -> None:
    text = tmp_path / "record.sqlite"
    text.write_text("This is a letter and no database at all, however long it may be.\n" * 20)
    with pytest.raises(StoreError):
        RecordFeed(str(text))
    with pytest.raises(InputError, match="no record"):
        RecordFeed(str(tmp_path / "nothing.sqlite"), ["one"])
