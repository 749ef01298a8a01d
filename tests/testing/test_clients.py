"""The listener at httpx and httpx2: everything is seen, nothing is changed."""

from __future__ import annotations

import asyncio
import gzip
import importlib
import subprocess
import sys
import textwrap
from typing import Any

import pytest

from prefixguard.testing import Recording

BODY = {"model": "gpt-5.1", "messages": [{"role": "user", "content": "Hello"}]}
EVENTS = [
    b'data: {"id":"c1","choices":[{"index":0,"delta":{"role":"assistant","content":"Good "}}]}\n\n',
    b'data: {"id":"c1","choices":[{"index":0,"delta":{"content":"day"}}]}\n\n',
    b'data: {"id":"c1","choices":[],"usage":{"prompt_tokens":9,"completion_tokens":2}}\n\n',
    b"data: [DONE]\n\n",
]
URL = "https://api.openai.com/v1/chat/completions?key=abc"


@pytest.fixture(params=["httpx", "httpx2"])
def http(request: pytest.FixtureRequest) -> Any:
    return pytest.importorskip(request.param)


def streaming(http: Any, *, compressed: bool = False, fails_after: int | None = None) -> Any:
    """A transport that streams EVENTS, to sync and async clients."""
    pieces = [gzip.compress(b"".join(EVENTS))] if compressed else EVENTS

    class Stream(http.SyncByteStream, http.AsyncByteStream):  # type: ignore[misc,name-defined]
        def __iter__(self) -> Any:
            for number, piece in enumerate(pieces):
                if number == fails_after:
                    raise http.ReadError("the line is cut")
                yield piece

        async def __aiter__(self) -> Any:
            for piece in self:
                yield piece

    def answer(request: Any) -> Any:
        headers = {"content-type": "text/event-stream"}
        if compressed:
            headers["content-encoding"] = "gzip"
        return http.Response(200, headers=headers, stream=Stream())

    return http.MockTransport(answer)


def read_streamed(http: Any, transport: Any, *, asynchronous: bool) -> bytes:
    if not asynchronous:
        with http.Client(transport=transport) as client, client.stream("POST", URL, json=BODY) as response:
            return b"".join(response.iter_bytes())

    async def read() -> bytes:
        async with (
            http.AsyncClient(transport=transport) as client,
            client.stream("POST", URL, json=BODY) as response,
        ):
            return b"".join([piece async for piece in response.aiter_bytes()])

    return asyncio.run(read())


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("compressed", [False, True])
def test_a_stream_passes_unchanged_and_is_put_together(
    http: Any, asynchronous: bool, compressed: bool
) -> None:
    with Recording() as recording:
        got = read_streamed(http, streaming(http, compressed=compressed), asynchronous=asynchronous)
    assert got == b"".join(EVENTS)
    (exchange,) = recording.exchanges()
    assert exchange.response is not None
    assert b"Good day" in exchange.response
    assert b'"prompt_tokens":9' in exchange.response
    assert not exchange.aborted
    assert exchange.status == 200
    assert exchange.timing.first_token_ms is not None


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_stream_that_is_cut_leaves_what_had_come(http: Any, asynchronous: bool) -> None:
    with Recording() as recording, pytest.raises(http.ReadError, match="cut"):
        read_streamed(http, streaming(http, fails_after=1), asynchronous=asynchronous)
    (exchange,) = recording.exchanges()
    assert exchange.aborted
    assert b"Good " in (exchange.response or b"")


def test_a_stream_that_is_closed_behind_its_last_event_is_whole(http: Any) -> None:
    with (
        Recording() as recording,
        http.Client(transport=streaming(http)) as client,
        client.stream("POST", URL, json=BODY) as response,
    ):
        for line in response.iter_lines():
            if line == "data: [DONE]":
                break
    (exchange,) = recording.exchanges()
    assert not exchange.aborted


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_whole_reply_is_recorded_with_its_request_and_without_secrets(
    http: Any, asynchronous: bool
) -> None:
    reply = {"id": "c1", "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hi"}}]}
    transport = http.MockTransport(lambda request: http.Response(200, json=reply))
    headers = {"Authorization": "Bearer sk-secret", "X-Session-Id": "run-1"}

    async def post() -> Any:
        async with http.AsyncClient(transport=transport, headers=headers) as client:
            return (await client.post(URL, json=BODY)).json()

    with Recording() as recording:
        if asynchronous:
            assert asyncio.run(post()) == reply
        else:
            with http.Client(transport=transport, headers=headers) as client:
                assert client.post(URL, json=BODY).json() == reply
    (exchange,) = recording.exchanges()
    assert exchange.upstream == "https://api.openai.com"
    assert exchange.path == "/v1/chat/completions?key=***"
    assert exchange.headers["authorization"] == "Bearer ***"
    assert exchange.headers["x-session-id"] == "run-1"
    assert b'"Hello"' in exchange.request
    assert b'"Hi"' in (exchange.response or b"")


def test_a_request_that_fails_fails_as_before_and_is_recorded_without_a_status(http: Any) -> None:
    def refuse(request: Any) -> Any:
        raise http.ConnectError("nobody there")

    with (
        Recording() as recording,
        http.Client(transport=http.MockTransport(refuse)) as client,
        pytest.raises(http.ConnectError),
    ):
        client.post(URL, json=BODY)
    (exchange,) = recording.exchanges()
    assert (exchange.status, exchange.response) == (None, None)


@pytest.mark.parametrize(
    ("method", "url", "body"),
    [
        ("GET", "https://api.openai.com/v1/models", None),
        ("POST", "https://api.openai.com/v1/embeddings", {"model": "e", "input": "x"}),
        ("POST", "https://api.anthropic.com/v1/messages/count_tokens", BODY),
        # An app's own API, as its tests call it, is no model.
        ("POST", "http://testserver/conversations/7/messages", {"messages": ["Hello"]}),
        ("POST", "http://testserver/chat", BODY),
        ("POST", URL, ["no", "object"]),
    ],
)
def test_what_is_no_prompt_is_let_pass(http: Any, method: str, url: str, body: Any) -> None:
    transport = http.MockTransport(lambda request: http.Response(204))
    with Recording() as recording, http.Client(transport=transport) as client:
        client.request(method, url, json=body)
    assert len(recording) == 0


def test_the_clients_are_as_they_were_when_the_last_recording_ends(http: Any) -> None:
    before = (http.Client.send, http.AsyncClient.send)
    transport = http.MockTransport(lambda request: http.Response(200, json={}))
    with Recording() as outer, http.Client(transport=transport) as client:
        with Recording() as inner:
            client.post(URL, json=BODY)
        client.post(URL, json=BODY)
    assert (len(outer), len(inner)) == (2, 1)
    assert (http.Client.send, http.AsyncClient.send) == before


def test_what_somebody_else_put_over_the_client_stays(http: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with Recording() as recording:
        seen = http.Client.send

        def theirs(self: Any, request: Any, **more: Any) -> Any:
            return seen(self, request, **more)

        monkeypatch.setattr(http.Client, "send", theirs)
    assert http.Client.send is theirs
    transport = http.MockTransport(lambda request: http.Response(200, json={}))
    with http.Client(transport=transport) as client:
        assert client.post(URL, json=BODY).status_code == 200
    assert len(recording) == 0
    with Recording() as again, http.Client(transport=transport) as client:
        client.post(URL, json=BODY)
    assert len(again) == 1


@pytest.mark.parametrize("module", ["httpx", "httpx2"])
def test_a_client_that_is_imported_while_recording_is_heard(module: str) -> None:
    importlib.import_module("prefixguard")
    pytest.importorskip(module)
    program = f"""
        import sys
        from prefixguard.testing import Recording
        assert "{module}" not in sys.modules
        with Recording() as recording:
            import {module} as http
            transport = http.MockTransport(lambda request: http.Response(200, json={{}}))
            http.Client(transport=transport).post("{URL}", json={BODY!r})
        print(len(recording))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, check=True
    )
    assert done.stdout == "1\n"


def test_time_goes_on_when_a_test_freezes_it(monkeypatch: pytest.MonkeyPatch, http: Any) -> None:
    transport = http.MockTransport(lambda request: http.Response(200, json={}))
    with Recording() as recording, http.Client(transport=transport) as client:
        for name in ("time", "perf_counter", "monotonic"):
            monkeypatch.setattr(f"time.{name}", lambda: 0.0)
            monkeypatch.setattr(f"prefixguard.testing.clients.{name}", lambda: 0.0, raising=False)
        client.post(URL, json=BODY)
        client.post(URL, json=BODY)
    first, second = recording.exchanges()
    assert 0 < first.t < second.t
