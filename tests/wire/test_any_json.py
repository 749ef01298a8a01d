"""Whatever comes over the wire: the decoder and the fold say something of it, and never raise."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from prefixguard.analysis import Fold, Options
from prefixguard.exchange import Exchange
from prefixguard.prompt import Prompt
from prefixguard.reports.json import to_json
from prefixguard.rulebook import Rulebook
from prefixguard.turn import Turn
from prefixguard.wire.decoder import Decoder, UnreadableError
from prefixguard.wire.streams import assemble
from prefixguard.wire.usage import decode_usage

from .any_json import PATHS, bodies, encoded, objects, values

RULEBOOK = Rulebook()
THOROUGH = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
paths = st.sampled_from(PATHS)


@THOROUGH
@given(path=paths, body=bodies | values, response=values | objects)
@example(path="/model/m/converse", body={"toolConfig": {}, "messages": []}, response={})
@example(path="/v1beta/models/m:generateContent", body={"tools": None, "contents": []}, response={})
def test_decoder_reads_any_json_or_says_that_it_cannot(path: str, body: Any, response: Any) -> None:
    exchange = Exchange(0.0, path, encoded(body), response=encoded(response))
    decoder = Decoder({"*": ("tool_choice", "reasoning.effort", "response_format")})
    try:
        reading = decoder.read(exchange)
    except UnreadableError:
        return
    prompt = reading.prompt
    assert isinstance(prompt, Prompt)
    for i, segment in enumerate(prompt.segments):
        assert len(segment.exact) == len(segment.alike) == 16
        assert prompt.pointer(i).startswith("/")
    assert reading.reply == decoder.reply(exchange) or all(
        a.exact == b.exact for a, b in zip(reading.reply, decoder.reply(exchange), strict=True)
    )
    again = Decoder({"*": ("tool_choice", "reasoning.effort", "response_format")}).prompt(exchange)
    assert again.exacts == prompt.exacts


@THOROUGH
@given(
    path=paths,
    raw=st.binary(max_size=60),
    response=st.none() | st.binary(max_size=60),
    kind=st.text(max_size=30),
)
def test_any_bytes(path: str, raw: bytes, response: bytes | None, kind: str) -> None:
    turn = Fold(RULEBOOK).step(Exchange(0.0, path, raw, response=response, usage=response))
    assert isinstance(turn, Turn)
    assemble(raw, kind)


@THOROUGH
@given(value=values)
def test_usage_of_any_json(value: Any) -> None:
    found = decode_usage(value) if isinstance(value, dict) else None
    if found is not None:
        assert found.usage.total >= 0


@pytest.mark.parametrize("depth", [400, 5_000, 300_000])
@pytest.mark.parametrize("opening", [b"[", b'{"a":'])
def test_deep_nesting(depth: int, opening: bytes) -> None:
    deep = opening * depth + b"1" + {b"[": b"]"}.get(opening, b"}") * depth
    for path, request in [
        ("/v1/messages", b'{"messages":[%b]}' % deep),
        ("/v1/messages", b'{"messages":[{"role":"user","content":%b}],"tools":[%b]}' % (deep, deep)),
        ("/v1/responses", b'{"input":%b,"reasoning":%b}' % (deep, deep)),
        ("/v1/messages", deep),
    ]:
        fold = Fold(RULEBOOK)
        for response in (b'{"content":%b,"usage":%b}' % (deep, deep), deep):
            turn = fold.step(Exchange(0.0, path, request, response=response, usage=response))
            assert isinstance(turn, Turn)
            for kind in ("text/event-stream", "application/json", ""):
                for stream in (response, b"data: " + response + b"\n\n", b"[" + response + b"]"):
                    assemble(stream, kind)
        fold.result()


exchanges = st.builds(
    lambda t, path, body, headers, response, usage, status, aborted: Exchange(
        t,
        path,
        encoded(body),
        headers,
        response=None if response is None else encoded(response),
        usage=None if usage is None else encoded(usage),
        status=status,
        aborted=aborted,
    ),
    t=st.floats(0, 1e5),
    path=paths,
    body=bodies | values,
    headers=st.dictionaries(
        st.sampled_from(["x-session-id", "x-claude-code-session-id", "authorization"]), st.text(max_size=9)
    ),
    response=st.none() | objects | values,
    usage=st.none() | objects,
    status=st.sampled_from([200, 200, 200, 429, 500, None]),
    aborted=st.booleans(),
)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    log=st.lists(exchanges, max_size=6),
    repeats=st.lists(st.integers(0, 5), max_size=3),
    server=st.sampled_from([None, "anthropic", "openai-5.6", "vllm", "deepseek", "llama.cpp"]),
)
def test_fold_says_something_of_any_log(log: list[Exchange], repeats: list[int], server: str | None) -> None:
    log = log + [log[i % len(log)] for i in repeats if log]
    fold = Fold(RULEBOOK, Options.standard(RULEBOOK, server=server))
    for i, exchange in enumerate(log):
        turn = fold.step(exchange)
        assert turn.index == i
        assert 0 <= turn.tokens.rebilled <= turn.tokens.lost
    result = fold.result()
    assert sum(len(session.turns) for session in result.sessions) == len(log)
    to_json(result)
