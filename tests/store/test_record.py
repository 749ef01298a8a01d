"""What is written comes back, byte for byte, in SQLite and in PostgreSQL alike."""

from __future__ import annotations

import gzip
import json
import threading
from array import array
from typing import TYPE_CHECKING

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from prefixguard.errors import InputError
from prefixguard.exchange import Rendered, SessionKey
from prefixguard.store import UNASSIGNED, Store, StoreDamagedError, StoreError, schema
from prefixguard.store.recipes import MAX_DEPTH

from .captures import KEY, OTHER, capture, conversation, words

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def store(target: str) -> Iterator[Store]:
    with Store.open(target) as store:
        yield store


def test_a_conversation_comes_back_byte_for_byte(store: Store) -> None:
    written = [
        capture(body, response=json.dumps({"id": f"r{i}"}).encode())
        for i, body in enumerate(conversation(20))
    ]
    for one in written:
        store.append(one, KEY)
    read = list(store.exchanges("ses_one"))
    assert [exchange.request for exchange in read] == [one.body for one in written]
    assert [exchange.response for exchange in read] == [one.response_body for one in written]
    first = read[0]
    assert (first.t, first.path, first.status, first.upstream) == (
        written[0].t, "/v1/chat/completions", 200, "https://api.example.org",
    )  # fmt: skip
    assert first.headers == written[0].headers
    assert first.timing == written[0].timing
    assert first.extra == {"id": json.dumps(written[0].id).encode(), "session": b'"ses_one"'}
    assert store.capture(written[7].id) == written[7]


def test_another_process_reads_and_goes_on(store: Store, target: str) -> None:
    bodies = [capture(body) for body in conversation(9)]
    store.append_many([(one, KEY) for one in bodies[:4]])
    with Store.open(target, create=False) as second:
        second.append_many([(one, KEY) for one in bodies[4:6]])
        store.append_many([(one, KEY) for one in bodies[6:]])
        assert [exchange.request for exchange in second.exchanges()] == [one.body for one in bodies]


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.one_of(
            st.binary(max_size=200),
            st.text(alphabet='{}[]",:\\ \n0', max_size=100).map(str.encode),
            st.recursive(
                st.none() | st.integers() | st.text(max_size=30),
                lambda inner: (
                    st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=5), inner, max_size=5)
                ),
            ).map(
                lambda value: json.dumps({"messages": [value, "x" * 3000], "tools": value}, indent=1).encode()
            ),
            st.just(b'{"a":1, "a" : 2,"a":[{"b":"\\ud83d\\ude00\\u0041"}]}'),
            st.integers(1, 5).map(lambda n: b'{"prompt":"' + b'long \\\\ \\n text \\"' * 2000 * n + b'"}'),
        ),
        max_size=6,
    )
)
def test_any_bodies_come_back(store: Store, bodies: list[bytes]) -> None:
    written = [capture(body, response=body[::-1], response_headers={}) for body in bodies]
    for one in written:
        store.append(one, KEY)
    for one in written:
        assert store.capture(one.id) == one


def test_a_long_session_costs_what_is_new_in_it(store: Store) -> None:
    bodies = conversation(MAX_DEPTH + 40)
    for body in bodies:
        store.append(capture(body), KEY)
    with store._database.reading() as connection:
        contents = connection.execute(sa.select(schema.slice_.c.content)).scalars().all()
        recipes = connection.execute(sa.select(schema.recipe)).all()
    # Each message once, and the parts of the envelope.
    assert len(contents) < len(bodies[-1]["messages"]) + 20
    assert sum(recipe.base is None for recipe in recipes) == 2
    assert [e.request for e in store.exchanges()] == [json.dumps(body).encode() for body in bodies]


def test_threads_of_one_session_do_not_disturb_each_other(store: Store) -> None:
    one, two = conversation(12), conversation(12, first=5000)
    for a, b in zip(one, two, strict=True):
        store.append_many([(capture(a), KEY), (capture(b), KEY)])
    with store._database.reading() as connection:
        sizes = [len(s) for s in connection.execute(sa.select(schema.recipe.c.steps)).scalars()]
    assert sorted(sizes)[-3] < 70, "only the first body of each thread lists all its slices"


@pytest.mark.parametrize("encoding", ["gzip", "GZIP ", "identity"])
def test_content_encodings_are_taken_off_and_named(store: Store, encoding: str) -> None:
    plain = json.dumps(conversation(1)[0]).encode()
    packed = plain if encoding == "identity" else gzip.compress(plain)
    one = capture(packed, headers={"content-encoding": encoding, "x-a": "1"})
    store.append(one, KEY)
    read = store.capture(one.id)
    assert read.body == plain
    assert next(iter(store.exchanges())).request == plain
    name = "content-encoding" if encoding == "identity" else "x-original-content-encoding"
    assert read.headers == {name: encoding, "x-a": "1"}


def test_a_body_that_cannot_be_decoded_is_kept_whole(store: Store) -> None:
    one = capture(b"not gzip at all", headers={"content-encoding": "gzip"})
    store.append(one, None)
    assert store.capture(one.id) == one


def test_a_stream_is_kept_raw_and_read_as_what_it_adds_up_to(store: Store) -> None:
    stream = b"".join(
        b"data: "
        + json.dumps({"id": "c1", "choices": [{"index": 0, "delta": {"content": text}}]}).encode()
        + b"\n\n"
        for text in ("Hel", "lo")
    )
    one = capture({"messages": []}, response=stream, response_headers={"content-type": "text/event-stream"})
    store.append(one, KEY)
    assert store.capture(one.id).response_body == stream
    (exchange,) = store.exchanges()
    assert exchange.response is not None
    assert json.loads(exchange.response)["choices"][0]["message"]["content"] == "Hello"


def test_an_exchange_without_response(store: Store) -> None:
    store.append(capture({"messages": []}, response=b"", status=None, aborted=True), KEY)
    (exchange,) = store.exchanges()
    assert (exchange.response, exchange.status, exchange.aborted) == (None, None, True)


def test_a_response_that_is_no_json_is_no_response_object(store: Store) -> None:
    one = capture({"a": 1}, response=b"<html>", response_headers={"content-type": "text/html"}, status=502)
    store.append(one, KEY)
    assert next(iter(store.exchanges())).response is None
    assert store.capture(one.id).response_body == b"<html>"


def test_sessions_and_their_names(store: Store) -> None:
    store.append(capture({"n": 1}, agent="codex"), KEY)
    store.append(capture({"n": 2}), OTHER)
    last = capture({"n": 3})
    store.append(last, KEY)
    store.append(capture({"n": 4}), None)
    two, one, none = store.sessions()
    assert (one.id, one.key_kind, one.key_name, one.key_value, one.agent, one.exchanges) == (
        "ses_one", "header", "x-session-id", "ses_one", "codex", 2,
    )  # fmt: skip
    assert one.last_t == last.t
    assert one.recording == {"full"}
    assert (two.id, two.key_kind, two.exchanges) == ("ses_two", "body", 1)
    assert (none.id, none.exchanges) == (UNASSIGNED, 1)
    assert [exchange.request for exchange in store.exchanges(UNASSIGNED)] == [b'{"n": 4}']


def test_an_agent_that_shows_later_is_still_named(store: Store) -> None:
    store.append(capture({"n": 1}), KEY)
    store.append(capture({"n": 2}, agent="codex"), KEY)
    assert store.sessions()[0].agent == "codex"


def test_resolve(store: Store) -> None:
    with pytest.raises(InputError, match="nothing is recorded yet"):
        store.resolve("last")
    store.append_many([(capture({}), KEY), (capture({}), OTHER)])
    assert store.resolve("ses_one") == "ses_one"
    assert store.resolve("ses_t") == "ses_two"
    assert store.resolve("last") == "ses_two"
    with pytest.raises(InputError, match=r"2 sessions of .* start so \(ses_one, ses_two\)"):
        store.resolve("ses")
    for prefix in ("x", ""):
        with pytest.raises(InputError, match="no session of"):
            store.resolve(prefix)


def test_an_odd_session_name_gets_an_id_that_can_be_typed(store: Store) -> None:
    store.append(capture({}), SessionKey("header", "x", "a b\u2028/" * 30))
    (row,) = store.sessions()
    assert row.key_value == "a b\u2028/" * 30
    assert row.id.isalnum()
    assert len(row.id) == 20


def test_assign_moves_an_exchange(store: Store) -> None:
    one = capture({"n": 1}, agent="aider")
    store.append(one, None)
    store.assign(one.id, "s-7")
    (row,) = store.sessions()
    assert (row.id, row.key_kind, row.agent) == ("s-7", "content", "aider")
    with pytest.raises(StoreError, match="no exchange nope"):
        store.assign("nope", "s-7")


def test_turns_are_kept_and_replaced(store: Store) -> None:
    one, two = capture({"n": 1}), capture({"n": 2})
    store.append_many([(one, KEY), (two, OTHER)])
    assert store.save_turn(two.id, b'{"index":1}')
    assert store.save_turn(one.id, b'{"index":0}')
    assert store.save_turn(one.id, b'{"index":7}')
    assert list(store.turns()) == [(one.id, b'{"index":7}'), (two.id, b'{"index":1}')]
    assert list(store.turns("ses_two")) == [(two.id, b'{"index":1}')]


def test_token_ids_come_back_and_share_their_start(store: Store) -> None:
    ids = [i * 7919 % 100_003 for i in range(60_000)]
    for turn in range(12):
        one = capture({"n": turn})
        store.append(one, KEY)
        prompt = array("i", ids[: 1024 + turn * 900])
        assert store.save_rendered(one.id, Rendered("llama.cpp b9000", prompt, array("i", [1, turn])))
        assert store.save_rendered(one.id, Rendered("other", array("i"), None)), "the first ones stay"
    plain = capture({"n": 99})
    store.append(plain, KEY)
    *read, last = store.exchanges()
    assert last.rendered is None
    for turn, exchange in enumerate(read):
        assert exchange.rendered is not None
        assert exchange.rendered.engine == "llama.cpp b9000"
        assert list(exchange.rendered.prompt) == ids[: 1024 + turn * 900]
        assert exchange.rendered.reply == array("i", [1, turn])
    with store._database.reading() as connection:
        stored = sum(len(c) for c in connection.execute(sa.select(schema.slice_.c.content)).scalars())
    assert stored < 4 * 2 * len(read[-1].rendered.prompt)  # type: ignore[union-attr]


def test_the_same_exchange_twice_is_refused_and_changes_nothing(store: Store) -> None:
    one = capture({"n": 1})
    store.append(one, KEY)
    with pytest.raises(StoreError):
        store.append_many([(capture({"n": 2, "text": "x" * 3000}), KEY), (one, KEY)])
    assert [exchange.request for exchange in store.exchanges()] == [one.body]
    later = capture({"n": 2, "text": "x" * 3000})
    store.append(later, KEY)
    assert store.capture(later.id) == later


def test_delete_takes_a_session_and_what_only_it_used(store: Store) -> None:
    shared = conversation(4)
    secret = words(424242, 400)
    private = [
        {**body, "messages": [*body["messages"], {"role": "user", "content": secret}]} for body in shared
    ]
    # The other exchanges come between, so that their recipes and headers may build on the deleted ones.
    kept = []
    for mine, other in zip(private, shared, strict=True):
        store.append(capture(mine), None)
        kept.append(capture(other))
        store.append(kept[-1], None)
    for exchange in list(store.exchanges()):
        identity = json.loads(exchange.extra["id"])
        if secret.encode() in exchange.request:
            store.assign(identity, KEY)
            store.save_turn(identity, b"{}")
            store.save_rendered(identity, Rendered("e", array("i", range(2000))))
    assert store.delete("ses_one") == 4
    assert [row.id for row in store.sessions()] == [UNASSIGNED]
    for one in kept:
        assert store.capture(one.id) == one
    with store._database.reading() as connection:
        recipes = connection.execute(sa.select(sa.func.count()).select_from(schema.recipe)).scalar()
        slices = connection.execute(sa.select(sa.func.count()).select_from(schema.slice_)).scalar()
    assert recipes == len(kept)
    # What is left is what a record of the kept exchanges alone would hold.
    assert slices is not None
    assert slices <= 4 * 2 + 8 + 10
    # The same writer, whose memory of slice numbers is now void, goes on.
    again = [capture(body) for body in private]
    for one in again:
        store.append(one, OTHER)
    for one in again:
        assert store.capture(one.id) == one


def test_a_writer_notices_that_another_one_deleted(store: Store, target: str) -> None:
    bodies = conversation(3)
    store.append(capture(bodies[0]), KEY)
    with Store.open(target) as other:
        assert other.delete("ses_one") == 1
    one = capture(bodies[1])
    store.append(one, KEY)
    assert store.capture(one.id) == one


def test_deleting_nothing(store: Store) -> None:
    assert store.delete("nobody") == 0


def test_readers_see_one_state_while_a_writer_writes(store: Store) -> None:
    bodies = conversation(30)
    store.append_many([(capture(body), KEY) for body in bodies[:10]])
    failures: list[BaseException] = []
    counts: list[int] = []
    done = threading.Event()

    def read() -> None:
        try:
            while not done.is_set():
                found = [exchange.request for exchange in store.exchanges()]
                counts.append(len(found))
                assert found == [json.dumps(body).encode() for body in bodies[: len(found)]]
        except BaseException as error:
            failures.append(error)

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    for body in bodies[10:]:
        store.append(capture(body), KEY)
    done.set()
    for reader in readers:
        reader.join()
    assert not failures
    assert min(counts) >= 10


def test_a_reader_keeps_its_state_when_the_session_is_deleted(store: Store) -> None:
    bodies = conversation(8)
    store.append_many([(capture(body), KEY) for body in bodies])
    reading = store.exchanges()
    assert next(reading).request == json.dumps(bodies[0]).encode()
    store.delete("ses_one")
    assert [exchange.request for exchange in reading] == [json.dumps(body).encode() for body in bodies[1:]]
    assert list(store.exchanges()) == []


def test_damage_is_noticed(store: Store) -> None:
    one, two = capture({"text": "a" * 3000}), capture({"text": "b" * 3000})
    store.append_many([(one, KEY), (two, KEY)])
    with store._database.writing() as connection:
        connection.execute(sa.update(schema.slice_).values(content=b"xxx", packed=False))
    with pytest.raises(StoreDamagedError, match="is not the one written"):
        list(store.exchanges())
    with store._database.writing() as connection:
        connection.execute(sa.update(schema.slice_).values(content=b"xxx", packed=True))
    with pytest.raises(StoreDamagedError, match="cannot be unpacked"):
        store.capture(one.id)
    with store._database.writing() as connection:
        connection.execute(sa.delete(schema.slice_))
    with pytest.raises(StoreDamagedError, match="is missing"):
        store.capture(one.id)


def test_websocket_exchanges(store: Store) -> None:
    store.append(capture({"type": "response.create"}, transport="websocket", method="GET"), KEY)
    (exchange,) = store.exchanges()
    assert (exchange.transport, exchange.method) == ("websocket", "GET")


def test_the_account_is_handed_on(store: Store) -> None:
    store.append(capture({}, account="d1ge57"), KEY)
    assert next(iter(store.exchanges())).extra["account"] == b'"d1ge57"'


def test_nothing_to_append(store: Store, tmp_path: Path) -> None:
    store.append_many([])
    assert store.sessions() == []
