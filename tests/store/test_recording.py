"""What the three ways of recording keep, and that nothing else is to be found in the file."""

from __future__ import annotations

import gzip
import json
import re
import sqlite3
from array import array
from typing import TYPE_CHECKING, Any

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from prefixguard.exchange import Rendered, SessionKey
from prefixguard.store import Store
from prefixguard.store.recording import Recording, packaged_recording_rules

from .captures import KEY, capture, conversation

if TYPE_CHECKING:
    from pathlib import Path

    from prefixguard.store import Mode

API_KEY = "Hq7xPlainKey0123456789ZZ"
TOKEN = "sk-ant-api03-" + "Ab3dE_" * 8
PERSON = "Erika Mustermann"


def everything(path: Path) -> bytes:
    """All bytes of a record: its files as they lie, and every value unpacked."""
    raw = b"".join(file.read_bytes() for file in path.parent.iterdir() if file.name.startswith(path.name))
    values = []
    with sqlite3.connect(path) as connection:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type='table'")]
        bases = dict(connection.execute("SELECT number, headers FROM exchange WHERE headers_base IS NULL"))
        for table in tables:
            for row in connection.execute(f"SELECT * FROM {table}"):
                values += [value if isinstance(value, bytes) else str(value).encode() for value in row]
        dictionaries = [zstandard.ZstdDecompressor().decompress(packed) for packed in bases.values()]
    for value in list(values):
        for words in [None, *dictionaries]:
            options: dict[str, Any] = (
                {} if words is None else {"dict_data": zstandard.ZstdCompressionDict(words)}
            )
            try:
                values.append(zstandard.ZstdDecompressor(**options).decompress(value))
            except zstandard.ZstdError:
                continue
    return raw + b"\n".join(values)


def with_secrets(body: bytes | dict[str, Any], **changes: Any) -> Any:
    """A capture as a careless caller would make it: nothing masked."""
    return capture(
        body,
        path=f"/v1beta/models/m:generate?key={API_KEY}&alt=sse",
        upstream=f"https://user:{API_KEY}@api.example.org",
        headers={
            "Authorization": f"Bearer {API_KEY}", "X-Api-Key": API_KEY, "x-goog-api-key": API_KEY,
            "Cookie": f"s={API_KEY}", "x-note": f"token {TOKEN}",
            "user-agent": "test/1", "content-encoding": "gzip",
        },
        response_headers={
            "Set-Cookie": f"s={API_KEY}", "content-type": "application/json", "x-amz-security-token": API_KEY,
        },
        **changes,
    )  # fmt: skip


@pytest.mark.parametrize("mode", ["full", "redacted", "hashes"])
def test_no_credential_of_headers_and_urls_is_anywhere_in_the_file(tmp_path: Path, mode: Mode) -> None:
    path = tmp_path / "record.sqlite"
    with Store.open(path, mode=mode) as store:
        for body in conversation(3):
            store.append(with_secrets(gzip.compress(json.dumps(body).encode())), KEY)
        # While the store is open, so that the write-ahead log is there to be looked at.
        found = everything(path)
        assert (tmp_path / "record.sqlite-wal").stat().st_size > 0
    for content in (found, everything(path)):
        for secret in (API_KEY, TOKEN, API_KEY[5:]):
            assert secret.encode() not in content
        assert b"***" in content
    # The search itself finds what is there.
    with Store.open(path) as store:
        store.append(capture({"text": PERSON + "." * 200}, response=PERSON.encode() * 30), KEY)
        assert everything(path).count(PERSON.encode()) >= 2


def test_redacted_bodies_lose_the_values_and_nothing_else(tmp_path: Path) -> None:
    body = (
        b'{ "model":"m",\t"messages" : [ {"role":"user", "content": "I am Erika Mustermann,\\nmy key is '
        + TOKEN.encode()
        + b'" }, {"role": "user", "content":"Erika\\u0020Mustermann again; x \\/ y"} ] }'
    )
    one = capture(body, response=json.dumps({"text": f"Hello {PERSON}"}).encode())
    with Store.open(tmp_path / "r", mode="redacted", patterns=["Erika M[a-z]+"]) as store:
        store.append(one, KEY)
        read = store.capture(one.id)
        (exchange,) = store.exchanges()
        assert store.sessions()[0].recording == {"redacted"}
    assert exchange.extra["recording"] == b'"redacted"'
    text = read.body.decode()
    person = re.search(r"\[redacted:pattern:[0-9a-f]{4}\]", text)
    assert person is not None
    key = re.search(r"\[redacted:anthropic-key:[0-9a-f]{4}\]", text)
    assert key is not None
    assert text == (
        '{ "model":"m",\t"messages" : [ {"role":"user", "content": "I am '
        f'{person[0]},\\nmy key is {key[0]}" }}, '
        f'{{"role": "user", "content":"{person[0]} again; x / y"}} ] }}'
    )
    assert json.loads(read.response_body) == {"text": f"Hello {person[0]}"}


def test_redacted_bodies_without_secrets_are_exact() -> None:
    body = b'{"b" :1e5,\n"a":"\\u00e9\\/ \\n", "b":2.0,\r\n "c":["\\ud83d"]}'
    recording = Recording("redacted", [r"\d{9}"], b"salt")
    assert recording.keep(capture(body), None).body == body


def test_a_changed_secret_still_shows_as_a_change() -> None:
    recording = Recording("redacted", [r"\d{6}"], b"salt")
    one, same, other = (
        recording.keep(capture({"t": f"code {n}"}), None).body for n in (123456, 123456, 654321)
    )
    assert one == same
    assert one != other


def test_a_secret_spread_over_a_stream_is_found(tmp_path: Path) -> None:
    stream = b"".join(
        b"data: "
        + json.dumps({"id": "c", "choices": [{"index": 0, "delta": {"content": piece}}]}).encode()
        + b"\n\n"
        for piece in ("The key: ", *TOKEN, " and done")
    )
    for mode in ("redacted", "hashes"):
        path = tmp_path / mode
        with Store.open(path, mode=mode) as store:
            one = capture({"n": 1}, response=stream, response_headers={"content-type": "text/event-stream"})
            store.append(one, KEY)
            (exchange,) = store.exchanges()
            assert exchange.response is not None
            text = json.loads(exchange.response)["choices"][0]["message"]["content"]
            assert TOKEN not in text
            assert ("redacted:anthropic-key" in text) == (mode == "redacted")
        assert b'"content": "s"' not in everything(path)


def test_hashes_keep_the_shape_and_no_text(tmp_path: Path) -> None:
    body = {
        "model": "gpt-5.2", "temperature": 0.5, "stream": True,
        "messages": [
            {"role": "system", "content": "Line one of secrets\n\nLine two"},
            {"role": "user", "content": [
                {"type": "text", "text": "Line one of secrets",
                 "cache_control": {"type": "ephemeral", "ttl": "1h"}},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo"}},
            ]},
            {"role": "assistant", "tool_calls": [
                {"id": "call_1", "type": "function", "function": {"name": "read_file"}},
            ]},
        ],
        "tools": [{"type": "function", "function": {
            "name": "read_file", "parameters": {"properties": {"/etc/passwd": {}}},
        }}],
    }  # fmt: skip
    path = tmp_path / "r"
    with Store.open(path, mode="hashes") as store:
        store.append(capture(body, response=b'{"id":"resp_secret","usage":{"input_tokens":7}}'), KEY)
        (exchange,) = store.exchanges()
        (row,) = store.sessions()
    assert row.key_value != "ses_one"
    assert row.recording == {"hashes"}
    assert exchange.extra["recording"] == b'"hashes"'
    kept = json.loads(exchange.request)
    assert (kept["model"], kept["temperature"], kept["stream"]) == ("gpt-5.2", 0.5, True)
    system, user, assistant = kept["messages"]
    assert [system["role"], user["role"], assistant["role"]] == ["system", "user", "assistant"]
    first, empty, second = system["content"].split("\n")
    assert empty == ""
    assert first != second
    assert user["content"][0]["text"] == first, "equal lines stay equal"
    assert user["content"][0]["cache_control"] == {"type": "ephemeral", "ttl": "1h"}
    assert user["content"][1]["image_url"]["url"].startswith("data:image/png;base64,")
    assert (
        assistant["tool_calls"][0]["function"]["name"] == kept["tools"][0]["function"]["name"] != "read_file"
    )
    (name,) = kept["tools"][0]["function"]["parameters"]["properties"]
    assert name.startswith("#")
    assert json.loads(exchange.response or b"")["usage"] == {"input_tokens": 7}
    found = everything(path)
    for secret in (
        b"secrets",
        b"Line two",
        b"iVBOR",
        b"read_file",
        b"passwd",
        b"resp_secret",
        b"ses_one",
        b"call_1",
    ):
        assert secret not in found


def test_hashes_show_where_two_prompts_part() -> None:
    recording = Recording("hashes", salt=b"salt")
    lines = [f"rule {i}: never do {i * i}" for i in range(30)]

    def system(text: str) -> str:
        body = recording.keep(capture({"messages": [{"role": "system", "content": text}]}), None).body
        content: str = json.loads(body)["messages"][0]["content"]
        return content

    before = system("\n".join(lines)).split("\n")
    lines[17] = "the time is 12:00:01"
    after = system("\n".join(lines)).split("\n")
    assert [i for i, (a, b) in enumerate(zip(before, after, strict=True)) if a != b] == [17]


def test_hashes_of_another_record_differ() -> None:
    one, two = (
        Recording("hashes", salt=salt).keep(capture({"t": "a text"}), None).body for salt in (b"a", b"b")
    )
    assert one != two


def test_hashed_text_has_about_as_many_tokens() -> None:
    from prefixguard.tokens.encodings import encoding

    recording = Recording("hashes", salt=b"salt")
    text = "\n".join(f"def function_{i}(argument: int) -> str: return names[{i}]" for i in range(60))
    body = json.loads(recording.keep(capture({"t": text}), None).body)
    encode = encoding("o200k_base").encode_ordinary
    assert 0.5 < len(encode(body["t"])) / len(encode(text)) < 2


def test_a_body_that_is_no_json_is_hashed_as_text() -> None:
    recording = Recording("hashes", salt=b"salt")
    body = recording.keep(capture(b"<p>secret</p>\nmore \xff"), None).body
    assert b"secret" not in body
    assert body.count(b"\n") == 1


@settings(max_examples=60)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=12),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
        max_leaves=10,
    ),
    st.booleans(),
)
def test_hashed_json_has_the_same_shape(value: Any, ascii_only: bool) -> None:
    recording = Recording("hashes", salt=b"salt")
    body = json.dumps(value, ensure_ascii=ascii_only, indent=1).encode()

    def shape(value: Any) -> Any:
        if isinstance(value, dict):
            return [shape(member) for member in value.values()]
        if isinstance(value, list):
            return [shape(member) for member in value]
        return "" if isinstance(value, str) else value

    assert shape(json.loads(recording.keep(capture(body), None).body)) == shape(value)


def test_what_quotes_a_prompt_is_kept_no_further_than_the_prompt(tmp_path: Path) -> None:
    one = capture({"text": PERSON})
    turn = json.dumps({"before": PERSON}).encode()
    ids = Rendered("e", array("i", [1, 2, 3]))
    with Store.open(tmp_path / "hashes", mode="hashes") as store:
        store.append(one, KEY)
        assert not store.save_turn(one.id, turn)
        assert not store.save_rendered(one.id, ids)
        assert list(store.turns()) == []
    with Store.open(tmp_path / "hashes") as store:
        # Another mode today does not open what was closed yesterday.
        assert not store.save_turn(one.id, turn)
        assert not store.save_rendered(one.id, ids)
    with Store.open(tmp_path / "redacted", mode="redacted", patterns=[PERSON]) as store:
        store.append(one, KEY)
        assert store.save_turn(one.id, turn)
        assert not store.save_rendered(one.id, ids)
        assert PERSON.encode() not in next(store.turns())[1]


def test_a_session_found_by_content_can_be_assigned_in_every_mode(tmp_path: Path) -> None:
    for mode in ("full", "redacted", "hashes"):
        with Store.open(tmp_path / mode, mode=mode) as store:
            one = capture({"n": 1})
            store.append(one, None)
            store.assign(one.id, "s-1")
            assert store.resolve("s-") == "s-1"
            store.assign(one.id, SessionKey("header", "x", "named by the user"))
            assert ("named by the user" in store.sessions()[0].key_value) == (mode != "hashes")


def test_the_words_are_one_for_each_byte() -> None:
    words = packaged_recording_rules().words
    assert len(set(words)) == 256
    assert all(word.isalpha() and word.islower() for word in words)


def test_the_analysis_of_hashes_finds_the_same_break(tmp_path: Path) -> None:
    from prefixguard.analysis import analyze

    def recorded(mode: Mode) -> list[tuple[str | None, bool]]:
        with Store.open(tmp_path / mode, mode=mode) as store:
            for turn, body in enumerate(conversation(5)):
                rules = body["messages"][0]["content"]
                clock = f"It is 12:0{turn if turn > 2 else 0}.\n"
                system = {"role": "system", "content": clock + rules}
                changed = {**body, "messages": [system, *body["messages"][1:]]}
                store.append(capture(changed, t=1796000000.0 + turn, id=f"{mode}{turn}"), KEY)
            analysis = analyze(store.exchanges())
        turns = [turn for session in analysis.sessions for turn in session.turns]
        return [(turn.divergence.pointer if turn.divergence else None, turn.is_break) for turn in turns]

    found = recorded("hashes")
    assert found == recorded("full")
    assert [is_break for _, is_break in found] == [False, False, False, True, True]
