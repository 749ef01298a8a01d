"""Logs are read as they are written by anybody, and what we write comes back the same."""

from __future__ import annotations

import gzip
import io
import json
from array import array
from typing import TYPE_CHECKING, Any

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from prefixguard.errors import InputError
from prefixguard.exchange import Exchange, Rendered, Timing
from prefixguard.importers import read_log, write_log
from prefixguard.importers.exchange_log import format_line, parse_line

if TYPE_CHECKING:
    from pathlib import Path

LINE = b'{"t":1,"path":"/v1/messages","request":{"a": 1}}'


def read(tmp_path: Path, content: bytes, name: str = "log.jsonl") -> list[Exchange]:
    (tmp_path / name).write_bytes(content)
    return list(read_log(tmp_path / name))


def test_the_least_line(tmp_path: Path) -> None:
    assert read(tmp_path, LINE) == [Exchange(t=1.0, path="/v1/messages", request=b'{"a": 1}')]


def test_every_field_and_unknown_ones(tmp_path: Path) -> None:
    line = (
        b'{"run": 2, "t": 1796061339.386, "method": "PUT", "path": "/x?key=abc",'
        b' "headers": {"X-Api-Key": "k", "N": 3},'
        b' "request" : {"b": 1,"a" :[ 1.0 ]} , "response": null, "usage": {"input_tokens":4}, "status": 503,'
        b' "upstream": "https://u:p@host", "timing": {"first_token_ms": 1.5, "more": 1}, "aborted": true,'
        b' "transport": "websocket", "raw_len": 980, "note": {"x": [1, 2]}}'
    )
    (exchange,) = read(tmp_path, line)
    assert exchange == Exchange(
        t=1796061339.386,
        path="/x?key=***",
        request=b'{"b": 1,"a" :[ 1.0 ]}',
        headers={"x-api-key": "***", "n": "3"},
        usage=b'{"input_tokens":4}',
        status=503,
        upstream="https://***@host",
        method="PUT",
        timing=Timing(1.5, None),
        aborted=True,
        transport="websocket",
        extra={"run": b"2", "raw_len": b"980", "note": b'{"x": [1, 2]}'},
    )


NULLS = b',"status":null,"headers":null,"timing":null,"upstream":null,"aborted":null,"transport":null}'


def test_null_is_unknown_and_missing_is_the_default(tmp_path: Path) -> None:
    line = LINE[:-1] + NULLS
    (exchange,) = read(tmp_path, line)
    assert (exchange.status, exchange.headers, exchange.timing, exchange.transport) == (
        None,
        {},
        Timing(),
        "http",
    )
    (exchange,) = read(tmp_path, LINE)
    assert exchange.status == 200


def test_empty_lines_and_a_byte_order_mark_are_passed_over(tmp_path: Path) -> None:
    assert len(read(tmp_path, b"\xef\xbb\xbf" + LINE + b"\r\n\n  \n" + LINE + b"\n\n")) == 2


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (LINE + b"\n{oops", r"log.jsonl:2: not one JSON object: "),
        (LINE + b"\n\n[1]", r"log.jsonl:3: not one JSON object: "),
        (
            b'{"t":1,"path":"/x"}',
            r"log.jsonl:1: an exchange needs 'request' .* fields: t, path",
        ),
        (b"{}", r"log.jsonl:1: an exchange needs 't' .* fields: none"),
        (b'{"t":"x","path":"/x","request":{}}', r"log.jsonl:1: Expected `float`, got `str` - at `\$.t`"),
        (b'{"t":1,"path":"/x","request":null}', r"log.jsonl:1: request is null"),
        (b'{"t":1,"path":"/x","request_base64":"%%"}', r"log.jsonl:1: request_base64: "),
        (
            b'{"t":1,"path":"/x","request":{},"transport":"smoke"}',
            r"log.jsonl:1: transport is .* not 'smoke'",
        ),
        (
            b'{"t":1,"path":"/x","request":{},"rendered":{"engine":"e","prompt":[4294967296]}}',
            r"out of range",
        ),
        (b"", r"log.jsonl: holds no exchange"),
        (b"\n \n", r"log.jsonl: holds no exchange"),
        (b"\xff\xfe\x00", r"log.jsonl:1: not one JSON object"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, content: bytes, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        read(tmp_path, content)
    assert "\n" not in str(caught.value)


def test_what_stands_before_a_bad_line_is_read(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_bytes(LINE + b"\nnonsense\n")
    reading = read_log(tmp_path / "log.jsonl")
    assert next(reading).t == 1.0
    with pytest.raises(InputError):
        next(reading)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file"):
        list(read_log(tmp_path / "nothing.jsonl"))
    with pytest.raises(InputError, match="Is a directory"):
        list(read_log(tmp_path))


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.ZstdCompressor().compress])
def test_compressed_logs_are_told_by_their_content(tmp_path: Path, pack: Any) -> None:
    content = (LINE + b"\n") * 3000
    assert len(read(tmp_path, pack(content))) == 3000
    with pytest.raises(InputError, match=r"log.jsonl:\d+: "):
        read(tmp_path, pack(content)[:-20])


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    for content in (LINE, gzip.compress(LINE)):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(content))))
        assert [exchange.t for exchange in read_log("-")] == [1.0]


def test_half_a_surrogate_pair_does_not_make_a_log_unreadable(tmp_path: Path) -> None:
    (exchange,) = read(tmp_path, LINE[:-2] + b',"text":"cut \\ud83d"}}')
    assert json.loads(exchange.request) == {"a": 1, "text": "cut \ud83d"}


def test_a_request_that_is_no_json_survives() -> None:
    for body in (b"", b"not json", b'{"a":"\xff"}', b'{"a":"\\ud83d"}', b"null", b'{"a":1,}'):
        exchange = Exchange(t=0.0, path="/x", request=body)
        line = format_line(exchange)
        assert json.loads(line)["request"] is None
        assert parse_line(line, "f", 1) == exchange


def test_the_request_is_copied_byte_for_byte() -> None:
    body = b'{"b" :1e5,\n\t"a":"\\u00e9\\/ \\n", "b":2.0,\r\n "big":123456789012345678901234567890}'
    line = format_line(Exchange(t=0.0, path="/x", request=body))
    assert body.replace(b"\n", b" ").replace(b"\r", b" ") in line
    assert line.count(b"\n") == 1
    assert parse_line(line, "f", 1).request == body.replace(b"\n", b" ").replace(b"\r", b" ")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
compact = json_values.map(lambda value: json.dumps(value, ensure_ascii=False).encode())
bodies = compact.filter(lambda body: body != b"null")
milliseconds = st.none() | st.floats(0, 1e6)
tokens = st.lists(st.integers(-(2**31), 2**31 - 1), max_size=5).map(lambda values: array("i", values))
plain = st.text(alphabet="abcdefgh-/_.0123456789", max_size=12)
exchanges = st.builds(
    Exchange,
    t=st.floats(0, 4e9),
    path=plain,
    request=bodies
    | st.binary(max_size=20).filter(lambda body: body.strip(b" \t\r\n") == body and b"\n" not in body),
    headers=st.dictionaries(plain.filter(bool), plain, max_size=4),
    response=st.none() | bodies,
    usage=st.none() | bodies,
    status=st.none() | st.integers(100, 599),
    upstream=st.none() | plain,
    method=st.sampled_from(["GET", "POST"]),
    timing=st.builds(Timing, milliseconds, milliseconds),
    aborted=st.booleans(),
    transport=st.sampled_from(["http", "websocket"]),
    rendered=st.none() | st.builds(Rendered, plain, tokens, st.none() | tokens),
    extra=st.dictionaries(st.sampled_from(["run", "raw_len", "x y", "é"]), compact, max_size=3),
)


@given(st.lists(exchanges, min_size=1, max_size=4))
def test_what_is_written_is_read(written: list[Exchange]) -> None:
    stream = io.BytesIO()
    assert write_log(written, stream) == len(written)
    lines = stream.getvalue().split(b"\n")
    assert lines.pop() == b""
    assert [parse_line(line, "f", i) for i, line in enumerate(lines)] == written
    for line in lines:
        json.loads(line)
