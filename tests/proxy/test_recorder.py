"""The recorder's work on a real store with the real analysis, in this process."""

from __future__ import annotations

import gzip
import json
import time
import zlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from prefixguard.analysis import Fold as RealFold
from prefixguard.exchange import Capture, SessionKey, Timing
from prefixguard.proxy.account import account
from prefixguard.proxy.analyst import Analyst, Fold, make_analyst
from prefixguard.proxy.copies import Copy
from prefixguard.proxy.frames import Event, Frame, Lost, Stored, Trouble, TurnSeen
from prefixguard.proxy.recorder import Recorder
from prefixguard.proxy.understand import exchange_of, timing_of
from prefixguard.store import Store
from prefixguard.store.errors import StoreBusyError, StoreFullError

from .captures import capture

TEXT = "You are a careful assistant. " * 300


def turn(n: int, *, clock: bool = False, **changes: object) -> Capture:
    """The n-th exchange of a conversation, perhaps with a clock at its start."""
    system = f"It is 2026-11-30 10:00:{n:02d}. {TEXT}" if clock else TEXT
    messages = [{"role": "system", "content": system}]
    for i in range(n):
        messages += [{"role": "user", "content": f"question {i}"}, {"role": "assistant", "content": "hi"}]
    messages.append({"role": "user", "content": f"question {n}"})
    body = json.dumps({"model": "gpt-4.1", "messages": messages}).encode()
    return capture(str(n), t=1_800_000_000.0 + n * 10, body=body, **changes)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "record.sqlite") as store:
        yield store


def analyst_of(store: Store) -> Analyst:
    """As the recorder makes it."""
    return make_analyst(store.exchanges, store.sessions)


class Bench:
    """A recorder and what it said."""

    def __init__(self, store: object, analyst: Analyst | None) -> None:
        self.events: list[Event] = []
        self.recorder = Recorder(store, analyst, self.events.append)  # type: ignore[arg-type]

    def record(self, *captures: Capture) -> list[TurnSeen]:
        for one in captures:
            self.recorder.store(Frame(one))
        while self.recorder.is_behind:
            self.recorder.analyse_one()
        return [event for event in self.events if isinstance(event, TurnSeen)]


def test_a_break_is_seen_live_and_saved(store: Store) -> None:
    bench = Bench(store, analyst_of(store))
    turns = bench.record(*(turn(n, clock=True, headers={"x-session-id": "s"}) for n in range(3)))
    assert [t.is_break for t in turns] == [False, True, True]
    assert turns[1].causes[0].code == "PG101"
    assert turns[1].rebilled_tokens > 100
    saved = [json.loads(content) for _, content in store.turns("s")]
    assert [one["is_break"] for one in saved] == [False, True, True]


def test_sessions_without_a_name_are_found_by_content(store: Store) -> None:
    bench = Bench(store, analyst_of(store))
    turns = bench.record(*(turn(n) for n in range(3)))
    assert len({t.session for t in turns}) == 1
    (row,) = store.sessions()
    assert (row.id, row.key_kind, row.exchanges) == (turns[0].session, "content", 3)
    assert [t.index for t in turns] == [0, 1, 2]


def test_a_session_is_taken_up_by_a_new_recorder(store: Store) -> None:
    headers = {"x-session-id": "s"}
    Bench(store, analyst_of(store)).record(*(turn(n, headers=headers) for n in range(2)))
    (later,) = Bench(store, analyst_of(store)).record(turn(2, headers=headers))
    assert (later.index, later.shape) == (2, "append")


def test_a_session_without_a_key_is_taken_up_by_a_new_recorder(store: Store) -> None:
    """Its name comes from its first exchange, which the new recorder may not see again."""
    (*_, before) = Bench(store, analyst_of(store)).record(*(turn(n) for n in range(60)))
    other, before_t = {"x-session-id": "other"}, turn(59).t
    Bench(store, analyst_of(store)).record(capture("else", t=before_t + 5, headers=other))
    later = Bench(store, analyst_of(store)).record(turn(60), turn(61))
    assert [(t.session, t.index, t.shape) for t in later] == [(before.session, n, "append") for n in (60, 61)]
    saved = [json.loads(content)["session"] for _, content in store.turns(before.session)]
    assert saved == [before.session] * 62
    assert {row.id for row in store.sessions()} == {before.session, "other"}


def test_what_another_session_left_in_the_cache_is_known_again(store: Store) -> None:
    (first,) = Bench(store, analyst_of(store)).record(turn(0, headers={"x-session-id": "one"}))
    (soon,) = Bench(store, analyst_of(store)).record(turn(1, headers={"x-session-id": "two"}))
    late = turn(2, headers={"x-session-id": "three"})
    (after,) = Bench(store, analyst_of(store)).record(replace(late, t=late.t + 40 * 3600))
    assert (first.read_high, after.read_high) == (0, 0)
    assert soon.read_high is not None
    assert soon.read_high > 1000


@pytest.mark.parametrize("headers", [{}, {"x-session-id": "s"}], ids=["unnamed", "named"])
def test_a_fold_that_has_grown_is_given_up_without_a_trace(store: Store, headers: dict[str, str]) -> None:
    made: list[Fold] = []

    def make() -> Fold:
        made.append(RealFold())
        return made[-1]

    bench = Bench(store, Analyst(make, store.exchanges, store.sessions, most_steps=5))
    turns = bench.record(*(turn(n, clock=n > 15, headers=headers) for n in range(18)))
    assert len(made) > 2
    assert [t.index for t in turns] == list(range(18))
    assert len({t.session for t in turns}) == 1
    assert [t.shape for t in turns] == ["first", *["append"] * 15, "changed", "changed"]


def test_exchanges_that_wait_are_folded_once(store: Store) -> None:
    """Two requests at a time: the store holds both before the first of them is analysed."""
    bench = Bench(store, analyst_of(store))
    turns = bench.record(*(turn(n, headers={"x-session-id": "s"}) for n in (1, 0, 2)))
    assert [t.index for t in turns] == [0, 1, 2]


def test_storing_comes_before_analysing(store: Store) -> None:
    bench = Bench(store, analyst_of(store))
    bench.record(turn(0), turn(1))
    kinds = [type(event) for event in bench.events]
    assert kinds == [Stored, Stored, TurnSeen, TurnSeen]


class BrokenAnalyst:
    def step(self, *_: object) -> tuple[TurnSeen, bytes]:
        raise RuntimeError("on purpose")


def test_an_analysis_that_fails_loses_no_exchange(store: Store) -> None:
    bench = Bench(store, BrokenAnalyst())  # type: ignore[arg-type]
    (seen,) = bench.record(turn(0))
    assert seen.note == "the analysis failed"
    assert [event.message for event in bench.events if isinstance(event, Trouble)] == [
        "RuntimeError: on purpose"
    ]
    assert len(list(store.exchanges())) == 1


class FailingStore:
    """A store whose append fails a number of times before it works."""

    def __init__(self, store: Store, *errors: Exception) -> None:
        self._store = store
        self.errors = list(errors)

    def append(self, one: Capture, session: SessionKey | None) -> None:
        if self.errors:
            raise self.errors.pop(0)
        self._store.append(one, session)

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)


def test_a_busy_store_is_tried_again(store: Store) -> None:
    bench = Bench(FailingStore(store, StoreBusyError("busy"), StoreBusyError("busy")), None)
    bench.record(turn(0))
    assert isinstance(bench.events[0], Stored)


def test_a_full_store_is_lost_with_its_reason_and_the_next_is_stored(store: Store) -> None:
    bench = Bench(FailingStore(store, StoreFullError("no room left")), None)
    bench.record(turn(0), turn(1))
    lost, stored = bench.events[:2]
    assert lost == Lost("0", "no room left")
    assert isinstance(stored, Stored)


def test_a_frame_sent_again_is_not_stored_twice(store: Store) -> None:
    Bench(store, None).record(turn(0))
    bench = Bench(store, None)
    bench.recorder.store(Frame(turn(0), again=True))
    assert isinstance(bench.events[0], Stored)
    assert len(list(store.exchanges())) == 1


@pytest.mark.parametrize("encoding", ["", "gzip"])
def test_an_exchange_of_a_stream(encoding: str) -> None:
    deltas = [{"choices": [{"index": 0, "delta": {"content": part}}]} for part in ("Par", "is.")]
    body = b"".join(b"data: %s\n\n" % json.dumps(delta).encode() for delta in deltas)
    headers = {"content-type": "text/event-stream"}
    if encoding:
        body, headers = gzip.compress(body), {**headers, "content-encoding": encoding}
    exchange = exchange_of(capture("1", response_body=body, response_headers=headers, account="a"))
    assert exchange.response is not None
    assert json.loads(exchange.response)["choices"][0]["message"]["content"] == "Paris."
    assert exchange.extra == {"id": b'"1"', "account": b'"a"'}


def test_an_exchange_of_odd_bytes_has_no_response() -> None:
    odd = capture("1", body=b"\xff", response_body=b"\x00\x01", response_headers={"content-encoding": "gzip"})
    exchange = exchange_of(odd)
    assert exchange.response is None
    assert exchange.request == b"\xff"


CREATED = b'event: response.created\ndata: {"type":"response.created"}\n\n'
DELTA = b'data: {"type":"response.output_text.delta","delta":"a"}\n\n'
START = b'event: message_start\ndata: {"type": "message_start"}\n\nevent: ping\ndata: {"type": "ping"}\n\n'


@pytest.mark.parametrize(
    ("chunks", "first"),
    [
        ([DELTA, DELTA], 10.0),
        ([CREATED, DELTA], 20.0),
        ([CREATED[:10], CREATED[10:], DELTA], 30.0),
        ([START, DELTA], 20.0),
        ([b": keep-alive\n\n", DELTA], 20.0),
        ([b'{"id": "whole"}'], 10.0),
        ([CREATED], None),
        ([b": keep-alive\n\n", b": keep-alive\n\n"], None),
        ([b": keep-alive\n\n", b": keep-alive\n\n" + DELTA], 20.0),
    ],
)
@pytest.mark.parametrize("encoding", ["identity", "gzip"])
def test_first_token(chunks: list[bytes], first: float | None, encoding: str) -> None:
    packer = zlib.compressobj(wbits=16 + zlib.MAX_WBITS)
    marks, size = [], 0
    if encoding == "gzip":
        chunks = [packer.compress(chunk) + packer.flush(zlib.Z_SYNC_FLUSH) for chunk in chunks]
    for n, chunk in enumerate(chunks):
        size += len(chunk)
        marks.append((size, 10.0 * (n + 1)))
    headers = {"content-encoding": encoding}
    made = capture(response_body=b"".join(chunks), response_headers=headers)
    assert timing_of(replace(made, timing=Timing(10.0, 99.0)), marks) == Timing(first, 99.0)


def test_comments_do_not_use_up_the_marks() -> None:
    copy = Copy(time.perf_counter())
    for _ in range(1000):
        copy(b": still at it\n\n")
    copy(DELTA)
    made = capture(response_body=b"".join(copy.chunks))
    assert timing_of(made, copy.marks).first_token_ms == copy.marks[-1][1]


def test_accounts() -> None:
    one = account({"authorization": "Bearer sk-1"}, "/", b"salt")
    assert one is not None
    assert len(one) == 16
    assert account({"x-api-key": "sk-1"}, "/", b"salt") == one
    assert account({"authorization": "Bearer sk-2"}, "/", b"salt") != one
    assert account({"authorization": "Bearer sk-1"}, "/", b"pepper") != one
    assert account({}, "/v1?key=sk-1", b"salt") == one
    assert account({"accept": "*/*"}, "/v1?a=b", b"salt") is None
