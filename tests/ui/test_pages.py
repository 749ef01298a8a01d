"""What the pages get to know, through a real server from a real record."""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from prefixguard.analysis import analyze
from prefixguard.reports.html import Listed, overview, session_view
from prefixguard.reports.json import encode
from prefixguard.store import Store
from prefixguard.ui.watch import RecordFeed

from .agents import add, captures, record
from .running import OPTIONS, RULEBOOK, Running, running, wait_until


def recorded(path: Path) -> Store:
    store = Store.open(str(path))
    record(store, "mended", turns=5)
    record(store, "broken", clock=True, turns=5, start=1_796_001_000.0)
    return store


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Store, Running]]:
    path = tmp_path_factory.mktemp("ui") / "record.sqlite"
    with recorded(path) as store, running(RecordFeed(str(path))) as server:
        yield store, server


@pytest.fixture
def store(both: tuple[Store, Running]) -> Store:
    """A record that tests only read."""
    return both[0]


@pytest.fixture
def server(both: tuple[Store, Running]) -> Running:
    return both[1]


def complete(server: Running) -> dict[str, Any]:
    """The overview once everything is folded."""

    def find() -> dict[str, Any] | None:
        found = server.overview()
        return found if found["keys"] and not found["waiting"] else None

    found = wait_until(find)
    assert found is not None
    return found


def reported(store: Store, name: str) -> Any:
    """The same session as the report has it, as JSON."""
    (session,) = analyze(store.exchanges(name), RULEBOOK, OPTIONS).sessions
    return json.loads(encode(session_view(Listed(name, session), RULEBOOK.findings)))


def test_the_overview_is_the_reports(server: Running, store: Store) -> None:
    found = complete(server)
    assert found["keys"] == ["broken", "mended"]  # the one that was active last first
    listed = [
        Listed(name, analyze(store.exchanges(name), RULEBOOK, OPTIONS).sessions[0])
        for name in ("broken", "mended")
    ]
    expected = json.loads(encode(overview(listed, RULEBOOK.findings, None, "test")))
    assert {name: found[name] for name in expected} == expected
    assert "Question" not in json.dumps(found)


def test_a_session_is_the_reports(server: Running, store: Store) -> None:
    found = server.session("broken")
    expected = reported(store, "broken")
    assert [entry for _, entry in found["turns"]] == expected["turns"]
    assert (found["entry"], found["causes"]) == (expected["entry"], expected["causes"])
    assert [entry["mark"] for entry in expected["turns"]] == ["", "", "break", "break", "break"]


def test_turns_stream_in(tmp_path: Path) -> None:
    path = tmp_path / "record.sqlite"
    with recorded(path) as store, running(RecordFeed(str(path))) as server:
        stream_in(server, store)
        tell_a_page(server, store)


def stream_in(server: Running, store: Store) -> None:
    complete(server)
    before = server.session("broken")
    seen = server.overview()["revision"]
    add(store, list(captures("broken", clock=True, turns=6, start=1_796_001_000.0))[5])

    def grown() -> dict[str, Any] | None:
        found = server.session("broken", since=before["revision"])
        return found if found["count"] == 6 else None

    found = wait_until(grown)
    assert found is not None
    changed = dict(found["turns"])
    assert changed[5]["mark"] == "break"
    assert len(changed) < 6  # what did not change is not sent again
    whole = [entry for _, entry in before["turns"]]
    for place, entry in changed.items():
        whole[place : place + 1] = [entry]
    assert whole == reported(store, "broken")["turns"]
    news = server.overview(since=seen)
    assert [entry["key"] for entry in news["sessions"]] == ["broken"]
    assert news["keys"] == ["broken", "mended"]


def test_a_turn_with_its_prompt(server: Running) -> None:
    turn = server.get("/api/sessions/broken/turns/3").raise_for_status()
    view = turn.json()
    assert view["findings"][0]["finding"]["code"] == "PG101"
    assert view["prompt"]["segments"][0]["role"] == "system"
    text = server.get("/api/sessions/broken/turns/3/segments/0").json()
    assert text["text"].startswith("It is 14:02:10.")
    again = server.get("/api/sessions/broken/turns/3", **{"if-none-match": turn.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


def test_long_answers_are_packed(server: Running) -> None:
    complete(server)
    with server.client.stream("GET", "/api/overview", headers={"accept-encoding": "gzip"}) as answer:
        raw = b"".join(answer.iter_raw())
    assert answer.headers["content-encoding"] == "gzip"
    assert json.loads(gzip.decompress(raw))["keys"] == ["broken", "mended"]


@pytest.mark.parametrize(
    "address",
    [
        "/api/sessions/nobody", "/api/sessions/nobody/turns/0", "/api/sessions/broken/turns/99",
        "/api/sessions/broken/turns/3/segments/999", "/api/compare?before=broken&after=nobody",
        "/api/compare",
    ],
)  # fmt: skip
def test_what_is_not_there(server: Running, address: str) -> None:
    answer = server.get(address)
    assert answer.status_code == 404
    assert answer.json()["error"]


@pytest.mark.parametrize(
    "address",
    ["/nothing", "/page/../desk.py", "/live/%2e%2e/desk.py", "/api/sessions/broken/turns/-1", "/api"],
)
def test_what_is_no_address_here(server: Running, address: str) -> None:
    assert server.get(address).status_code == 404


def test_the_page_and_its_files(server: Running) -> None:
    with httpx.Client(base_url=server.url) as anybody:
        page = anybody.get("/")
        assert page.headers["content-type"].startswith("text/html")
        for address in ("/page/page.js", "/page/page.css", "/live/live.js", "/live/live.css"):
            answer = anybody.get(address).raise_for_status()
            assert ("javascript" if address.endswith("js") else "css") in answer.headers["content-type"]
        assert anybody.get("/api/overview").status_code == 401


def test_two_sessions_side_by_side(server: Running) -> None:
    found = server.get("/api/compare?before=broken&after=mended").raise_for_status().json()
    measures = {measure["name"]: measure for measure in found["measures"]}
    assert (measures["breaks"]["before"], measures["breaks"]["after"]) == ("3", "0")
    assert measures["breaks"]["better"] is True
    assert found["codes"][0]["code"] == "PG101"


def tell_a_page(server: Running, store: Store) -> None:
    """Whoever listens hears of a new session, and no word of its prompts."""
    heard: list[str] = []
    listening = threading.Event()

    def listen() -> None:
        with server.client.stream("GET", "/api/events") as answer:
            assert answer.headers["content-type"].startswith("text/event-stream")
            assert "content-encoding" not in answer.headers
            for row in answer.iter_lines():
                heard.append(row)
                listening.set()
                if row.startswith("data:") and "fresh" in row:
                    return

    thread = threading.Thread(target=listen)
    thread.start()
    assert listening.wait(10)
    add(store, next(captures("fresh")))
    thread.join(20)
    assert not thread.is_alive()
    assert "event: changed" in heard
    assert not any("Question" in row for row in heard)


def test_a_text_is_found_where_it_came_in(server: Running) -> None:
    complete(server)
    found = server.get("/api/search?q=FILE number 3 holds").raise_for_status().json()["found"]
    assert [(place["key"], place["turn"]) for place in found] == [("broken", 4), ("mended", 4)]
    assert "File number 3 holds the parser." in found[0]["excerpt"]
    assert server.get("/api/search?q=nowhere at all").json()["found"] == []
    assert server.get("/api/search?q=x").status_code == 400
