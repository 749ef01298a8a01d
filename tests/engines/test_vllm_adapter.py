"""The vLLM adapter against a server that answers in vLLM's shapes and keeps blocks by its published rule.

A stand-in, because vLLM itself is gigabytes: what it answers was recorded from
vLLM 0.32.0, on which the same commands were run by hand (docs/measure.md).
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from prefixguard.engines import attach
from prefixguard.engines.doctor import check_up
from prefixguard.engines.replay import bench_for, measure
from prefixguard.engines.vllm import Vllm
from prefixguard.errors import InputError, ServerError
from prefixguard.exchange import Exchange

BLOCK = 16


class StandIn(ThreadingHTTPServer):
    """One id per character. details: whether usage names cached tokens. caching: whether anything is kept."""

    def __init__(self, *, details: bool = True, caching: bool = True, leaky: bool = False) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.details, self.caching, self.leaky = details, caching, leaky
        self.kept: list[tuple[str, str]] = []
        self.queries = self.hits = 0
        self.salts: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def cached(self, prompt: str, salt: str) -> int:
        shared = 0
        for owner, text in self.kept:
            if owner == salt or self.leaky:
                equal = next((i for i, (a, b) in enumerate(zip(text, prompt, strict=False)) if a != b), None)
                shared = max(shared, min(len(text), len(prompt)) if equal is None else equal)
        self.kept.append((salt, prompt))
        hit = min(shared, len(prompt) - 1) // BLOCK * BLOCK if self.caching else 0
        self.queries, self.hits = self.queries + len(prompt), self.hits + hit
        return hit


class Handler(BaseHTTPRequestHandler):
    server: StandIn

    def do_GET(self) -> None:
        info = f'block_size="{BLOCK}",enable_prefix_caching="{self.server.caching}",num_gpu_blocks="101"'
        answers: dict[str, Any] = {
            "/version": {"version": "0.32.0"},
            "/v1/models": {"data": [{"id": "tiny", "max_model_len": 4096}]},
            "/metrics": f"vllm:cache_config_info{{{info}}} 1.0\n"
            f'vllm:prefix_cache_queries_total{{engine="0"}} {self.server.queries}\n'
            f'vllm:prefix_cache_hits_total{{engine="0"}} {self.server.hits}\n'
            f'vllm:prompt_tokens_total{{engine="0"}} {self.server.queries}\n',
        }
        self.answer(answers.get(self.path), 200 if self.path in answers else 404)

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if self.path == "/tokenize":
            self.answer({"tokens": [ord(c) for c in laid_out(body)]})
        elif body.get("tools") and body.get("tool_choice") != "none":
            self.answer({"error": {"message": '"auto" tool choice requires --enable-auto-tool-choice'}}, 400)
        else:
            prompt = laid_out(body)
            self.server.salts.append(body.get("cache_salt", ""))
            hit = self.server.cached(prompt, body.get("cache_salt", ""))
            usage: dict[str, Any] = {
                "prompt_tokens": len(prompt), "completion_tokens": 1, "total_tokens": len(prompt) + 1,
                "prompt_tokens_details": {"cached_tokens": hit} if self.server.details else None,
            }  # fmt: skip
            if body.get("stream"):
                said = {"choices": [{"index": 0, "delta": {"role": "assistant", "content": "x"}}]}
                events = [{"object": "chat.completion.chunk", **said}, {"choices": [], "usage": usage}]
                text = "".join(f"data: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n\n"
                self.answer(text, kind="text/event-stream")
            else:
                self.answer({"choices": [{"text": "x"}], "usage": usage})

    def answer(self, what: Any, status: int = 200, kind: str = "application/json") -> None:
        data = what.encode() if isinstance(what, str) else json.dumps(what).encode()
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        pass


def laid_out(body: dict[str, Any]) -> str:
    if "prompt" in body:
        return str(body["prompt"])
    tools = "".join(f"<tool {json.dumps(tool)}>" for tool in body.get("tools") or ())
    return tools + "".join(f"<{m['role']}>{m['content']}" for m in body["messages"]) + "<assistant>"


@contextmanager
def stand_in(**options: bool) -> Iterator[StandIn]:
    with StandIn(**options) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def session(*, clock: bool, turns: int = 5) -> list[Exchange]:
    exchanges, history = [], []
    tool = {"type": "function", "function": {"name": "read", "parameters": {"type": "object"}}}
    for turn in range(turns):
        time = f"It is 12:0{turn}. " if clock else ""
        history.append({"role": "user", "content": f"question {turn}, and some more words of it"})
        system = {"role": "system", "content": time + "You are careful. " * 20}
        body = {"model": "big", "messages": [system, *history], "tools": [tool]}
        exchanges.append(Exchange(float(turn), "/v1/chat/completions", json.dumps(body).encode()))
        history.append({"role": "assistant", "content": f"answer {turn}"})
    return exchanges


@pytest.mark.parametrize("details", [True, False], ids=["usage", "counters"])
@pytest.mark.parametrize("clock", [True, False])
def test_every_turn_is_predicted_and_runs_do_not_see_each_other(clock: bool, details: bool) -> None:
    with stand_in(details=details) as server:
        engine = attach(server.url)
        assert isinstance(engine, Vllm)
        result = measure(session(clock=clock), bench_for(engine), repeat=3)
        assert len(set(server.salts)) == 3
    assert (result.count("exact"), len(result.turns)) == (5, 5)
    assert all(turn.exact_ids for turn in result.turns)
    assert result.turns[0].measured == 0
    assert all(turn.is_break == clock for turn in result.turns[1:])
    assert all((turn.measured > 300) != clock for turn in result.turns[1:])
    assert (result.engine.rule, result.engine.version) == (f"vllm:block={BLOCK}", "0.32.0")
    assert result.notes == ()


def test_a_cache_that_is_off_is_said_to_be_off() -> None:
    with stand_in(caching=False) as server:
        result = measure(session(clock=False), bench_for(attach(server.url)))
        remarks = {r.topic: r.severity for r in check_up(server.url, probe=True).remarks}
    assert [(t.verdict, t.measured, t.predicted_high) for t in result.turns] == [("exact", 0, 0)] * 5
    assert "prefix cache is off" in result.notes[0]
    assert remarks["caching"] == "problem"


def test_runs_that_differ_are_told() -> None:
    """A server that reads across salts, as none should: the second run finds what the first one left."""
    with stand_in(leaky=True) as server:
        result = measure(session(clock=False), bench_for(attach(server.url)), repeat=2)
    assert result.turns[0].measured_each[0] == 0 < result.turns[0].measured_each[1]
    assert "differ between the runs on turns 0" in result.notes[0]
    assert result.count("exact") == 5


def test_the_check_up_of_a_small_cache() -> None:
    with stand_in(details=False) as server:
        found = {r.topic: r for r in check_up(server.url, probe=True).remarks}
    assert found["memory"].severity == "advice"
    assert "holds 1,600 tokens" in found["memory"].found
    assert found["usage-details"].severity == "problem"


def test_what_cannot_be_known_is_said(tmp_path: Any) -> None:
    with stand_in() as server:
        with pytest.raises(InputError, match="no file and no known model"):
            bench_for(attach(server.url), model="no-such-model")
        engine = attach(server.url)
        assert engine.render(Exchange(0, "/completion", b'{"prompt": "x"}')) is None
        assert engine.problem is not None
        assert "llamacpp" in engine.problem
        response = b'{"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 1}}'
        body = b'{"messages": [{"role": "user", "content": "x"}]}'
        assert engine.render(Exchange(0, "/v1/chat/completions", body, response=response)) is None
        assert "counted 7" in (engine.problem or "")
    with pytest.raises(ServerError, match="does not answer"):
        attach(server.url)
