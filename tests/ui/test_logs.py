"""Logs are watched, too: one that grows is read on, one that is written anew is read anew."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from prefixguard.errors import InputError
from prefixguard.ui.feed import Feeds
from prefixguard.ui.logs import LogFeed


def line(number: int, text: str = "hello") -> str:
    body = {"model": "gpt-4.1", "messages": [{"role": "user", "content": f"{text} {number}"}]}
    return json.dumps({"t": float(number), "path": "/v1/chat/completions", "request": body}) + "\n"


def test_a_log_that_grows_is_read_on(tmp_path: Path) -> None:
    log = tmp_path / "run.jsonl"
    log.write_text(line(0) + line(1))
    feed = LogFeed(str(log))
    news = feed.news()
    assert news.afresh == {feed.key}
    assert news.units[feed.key].exchanges == 2
    assert not feed.news()
    whole = line(2)
    with log.open("a") as stream:
        stream.write(whole[:40])
        stream.flush()
        assert not feed.news()  # half a line is not yet one
        stream.write(whole[40:] + line(3))
        stream.flush()
    assert feed.news().added == {feed.key: [2, 3]}
    assert [(n, e.t) for n, e in feed.read(feed.key, [2, 3])] == [(2, 2.0), (3, 3.0)]
    assert [n for n, _ in feed.read(feed.key)] == [0, 1, 2, 3]


def test_a_log_that_is_written_anew_is_read_anew(tmp_path: Path) -> None:
    log = tmp_path / "run.jsonl"
    log.write_text(line(0) + line(1))
    feed = LogFeed(str(log))
    feed.news()
    log.write_text(line(0, "goodbye") + line(1) + line(2))
    assert feed.news().afresh == {feed.key}
    log.write_text(line(0, "goodbye"))
    assert feed.news().afresh == {feed.key}
    assert len(list(feed.read(feed.key))) == 1


def test_a_folder_is_one_log(tmp_path: Path) -> None:
    (tmp_path / "b.jsonl").write_text(line(5))
    feed = LogFeed(str(tmp_path))
    feed.news()
    (tmp_path / "a.jsonl").write_text(line(1))
    assert feed.news().afresh == {feed.key}
    assert [e.t for _, e in feed.read(feed.key)] == [1.0, 5.0]


def test_what_cannot_be_read_is_said_at_the_start(tmp_path: Path) -> None:
    log = tmp_path / "run.jsonl"
    log.write_text(line(0) + '{"t": 1')
    with pytest.raises(InputError, match=r"run\.jsonl:2"):
        LogFeed(str(log))


def test_several_feeds_are_one(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.jsonl").write_text(line(0, name))
    feeds = Feeds([LogFeed(str(tmp_path / "a.jsonl")), LogFeed(str(tmp_path / "b.jsonl"))])
    news = feeds.news()
    assert len(news.afresh) == 2
    found = {key: [e.request for _, e in feeds.read(key)] for key in news.afresh}
    assert {b"a 0" in bodies[0] for bodies in found.values()} == {True, False}
    assert list(feeds.read("nothing")) == []


def test_a_text_is_found_where_it_came_in(tmp_path: Path) -> None:
    log = tmp_path / "run.jsonl"
    log.write_text(line(0, 'say "yes"') + line(1) + line(2, 'say "yes"'))
    feed = LogFeed(str(log))
    assert [(hit.unit, hit.index) for hit in feed.search('SAY "yes" 2', 10)] == [(feed.key, 2)]
    assert [hit.index for hit in feed.search("hello", 10)] == [1]
    assert feed.search("goodbye", 10) == []
    assert len(Feeds([feed, feed]).search("say", 3)) == 3
