"""Streams are never held back, and what was cut off is recorded as cut off."""

from __future__ import annotations

import asyncio
import json
import threading
import time

import httpx
import pytest

from .running import RunningProxy
from .upstream import Answer, Request, Upstream

SSE = (("Content-Type", "text/event-stream"),)
BODY = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "hello"}]}


def event(text: str) -> bytes:
    return b"data: %s\n\n" % json.dumps({"choices": [{"index": 0, "delta": {"content": text}}]}).encode()


def test_a_chunk_arrives_before_the_next_is_sent(
    upstream: Upstream, proxy: RunningProxy, client: httpx.Client
) -> None:
    gates = [threading.Event() for _ in range(3)]
    pieces: list[bytes | threading.Event | None] = []
    for n, gate in enumerate(gates):
        pieces += [event(f"w{n}"), gate]
    upstream.script = lambda _: Answer(pieces, headers=SSE, chunked=True)
    with client.stream("POST", f"{proxy.url}/v1/chat/completions", json=BODY) as answer:
        chunks = answer.iter_raw()
        for n, gate in enumerate(gates):
            # The upstream sends no further piece before the gate opens: this one came through alone.
            assert next(chunks) == event(f"w{n}")
            gate.set()
        assert b"".join(chunks) == b""


def test_whole_answers_are_not_held_back_either(
    upstream: Upstream, proxy: RunningProxy, client: httpx.Client
) -> None:
    gate = threading.Event()
    upstream.script = lambda _: Answer([b'{"a": ', gate, b"1}"])
    with client.stream("POST", f"{proxy.url}/v1/chat/completions", json=BODY) as answer:
        chunks = answer.iter_raw()
        assert next(chunks) == b'{"a": '
        gate.set()
        assert b"".join(chunks) == b"1}"


def test_a_client_that_leaves_is_recorded_as_aborted(
    upstream: Upstream, proxy: RunningProxy, client: httpx.Client
) -> None:
    never = threading.Event()
    upstream.script = lambda _: Answer([event("seen"), never], headers=SSE, chunked=True)
    headers = {"x-session-id": "left"}
    with client.stream("POST", f"{proxy.url}/v1/chat/completions", json=BODY, headers=headers) as answer:
        assert next(answer.iter_raw()) == event("seen")
    (capture,) = proxy.captures("left", 1)
    assert capture.aborted
    assert capture.status == 200
    assert capture.response_body == event("seen")
    assert json.loads(capture.body) == BODY
    never.set()


def test_a_client_that_leaves_before_any_answer(upstream: Upstream, proxy: RunningProxy) -> None:
    never = threading.Event()

    def script(_: Request) -> Answer:
        return Answer([never, b"{}"])

    upstream.script = script
    with pytest.raises(httpx.ReadTimeout):
        httpx.post(
            f"{proxy.url}/v1/chat/completions",
            json=BODY,
            headers={"x-session-id": "gone"},
            timeout=httpx.Timeout(60, read=0.5),
            trust_env=False,
        )
    (capture,) = proxy.captures("gone", 1)
    assert capture.aborted
    assert capture.response_body == b""
    never.set()


def test_an_upstream_that_dies_mid_stream(
    upstream: Upstream, proxy: RunningProxy, client: httpx.Client
) -> None:
    upstream.script = lambda _: Answer([event("one"), event("two"), None], headers=SSE, chunked=True)
    received = b""
    headers = {"x-session-id": "died"}

    def read() -> None:
        nonlocal received
        with client.stream("POST", f"{proxy.url}/v1/chat/completions", json=BODY, headers=headers) as answer:
            for chunk in answer.iter_raw():
                received += chunk

    with pytest.raises(httpx.RemoteProtocolError):
        read()
    assert received == event("one") + event("two")
    (capture,) = proxy.captures("died", 1)
    assert capture.aborted
    assert capture.response_body == received


def test_twenty_streams_at_once(upstream: Upstream, proxy: RunningProxy) -> None:
    """All are open at the same time, none waits for another, each gets its own bytes."""
    streams = 20
    everybody = threading.Event()

    def script(request: Request) -> Answer:
        name = request.header("x-session-id") or ""
        return Answer([event(name), everybody, event(f"{name} end")], headers=SSE, chunked=True)

    upstream.script = script

    async def one(client: httpx.AsyncClient, name: str, started: asyncio.Semaphore) -> bytes:
        body = b""
        headers = {"x-session-id": name}
        url = f"{proxy.url}/v1/chat/completions"
        async with client.stream("POST", url, json=BODY, headers=headers) as answer:
            async for chunk in answer.aiter_raw():
                if not body:
                    started.release()
                body += chunk
        return body

    async def all_of_them() -> list[bytes]:
        started = asyncio.Semaphore(0)
        limits = httpx.Limits(max_connections=streams)
        async with httpx.AsyncClient(timeout=60, trust_env=False, limits=limits) as client:
            tasks = [asyncio.create_task(one(client, f"many-{n}", started)) for n in range(streams)]
            for _ in tasks:
                await asyncio.wait_for(started.acquire(), 60)
            everybody.set()
            return list(await asyncio.gather(*tasks))

    bodies = asyncio.run(all_of_them())
    assert bodies == [event(f"many-{n}") + event(f"many-{n} end") for n in range(streams)]
    for n in range(streams):
        (capture,) = proxy.captures(f"many-{n}", 1)
        assert capture.response_body == bodies[n]
        assert not capture.aborted


def test_first_token_is_where_content_begins(
    upstream: Upstream, proxy: RunningProxy, client: httpx.Client
) -> None:
    """An opening event that comes at once is not the first token."""
    opened, gate = threading.Event(), threading.Event()
    opening = b'event: response.created\ndata: {"type":"response.created","response":{}}\n\n'
    content = b'event: response.output_text.delta\ndata: {"type":"response.output_text.delta"}\n\n'
    upstream.script = lambda _: Answer([opening, gate, content], headers=SSE, chunked=True)
    headers = {"x-session-id": "token"}
    with client.stream("POST", f"{proxy.url}/v1/responses", json=BODY, headers=headers) as answer:
        chunks = answer.iter_raw()
        assert next(chunks) == opening
        waited = time.perf_counter()
        opened.wait(0.3)
        waited = (time.perf_counter() - waited) * 1000
        gate.set()
        assert next(chunks) == content
    (capture,) = proxy.captures("token", 1)
    assert capture.timing.first_token_ms is not None
    assert capture.timing.total_ms is not None
    assert waited <= capture.timing.first_token_ms <= capture.timing.total_ms
