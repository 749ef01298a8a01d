"""The SGLang adapter against a server that answers in SGLang's shapes and keeps what SGLang's own tree keeps.

A stand-in: SGLang needs a GPU. Its fields are those of the source of 0.5.23,
its cache is the tree that was held against SGLang's own (tests/caches/test_radix.py).
"""

from __future__ import annotations

import json
import threading
from array import array
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from prefixguard.caches.radix import Radix
from prefixguard.checkup import SglangState, examine_sglang
from prefixguard.engines import attach
from prefixguard.engines.doctor import check_up
from prefixguard.engines.replay import bench_for, measure
from prefixguard.engines.sglang import Sglang
from prefixguard.errors import InputError
from tests.engines.test_vllm_adapter import laid_out, session


class StandIn(ThreadingHTTPServer):
    """One id per character. reports: whether usage names cached tokens. metrics: whether it counts."""

    def __init__(
        self, *, reports: bool = True, metrics: bool = True, page: int = 1, old: bool = False
    ) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.reports, self.metrics, self.page, self.old = reports, metrics, page, old
        self.trees: dict[str, Radix] = defaultdict(Radix)
        self.prompts = self.cached = self.asked = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def read(self, prompt: str, salt: str) -> int:
        ids, tree = array("i", map(ord, prompt)), self.trees[salt]
        hit = tree.read(ids)[0] // self.page * self.page
        tree.observe(self.asked, ids, None)
        self.asked, self.prompts, self.cached = self.asked + 1, self.prompts + len(ids), self.cached + hit
        return hit


class Handler(BaseHTTPRequestHandler):
    server: StandIn

    def do_GET(self) -> None:
        server = self.server
        info = {
            "version": "0.5.23", "page_size": server.page, "disable_radix_cache": False,
            "enable_cache_report": server.reports, "max_total_num_tokens": 9000, "context_length": 4096,
            "kv_cache_dtype": "auto", "radix_eviction_policy": "lfu", "chunked_prefill_size": -1,
            "enable_hierarchical_cache": False, "model_path": "nobody/nothing",
        }  # fmt: skip
        answers: dict[str, Any] = {
            "/get_server_info" if server.old else "/server_info": info,
            "/v1/models": {"data": [{"id": "tiny", "max_model_len": 4096}]},
        }
        if server.metrics:
            answers["/metrics"] = (
                f'sglang:prompt_tokens_total{{model_name="tiny"}} {server.prompts}\n'
                f'sglang:cached_tokens_total{{cache_source="device"}} {server.cached}\n'
                f'sglang:num_requests_total{{model_name="tiny"}} {server.asked}\n'
            )
        self.answer(answers.get(self.path), 200 if self.path in answers else 404)

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        prompt = laid_out(body)
        if self.path == "/tokenize":
            self.answer({"tokens": [ord(c) for c in prompt], "count": len(prompt)})
            return
        hit = self.server.read(prompt, body.get("cache_salt") or "")
        usage: dict[str, Any] = {
            "prompt_tokens": len(prompt), "completion_tokens": 1, "total_tokens": len(prompt) + 1,
            "prompt_tokens_details": {"cached_tokens": hit} if self.server.reports else None,
        }  # fmt: skip
        said = {"choices": [{"index": 0, "delta": {"role": "assistant", "content": "x"}}]}
        events = [{"object": "chat.completion.chunk", **said}, {"choices": [], "usage": usage}]
        text = "".join(f"data: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n\n"
        self.answer(text, kind="text/event-stream")

    def answer(self, what: Any, status: int = 200, kind: str = "application/json") -> None:
        data = what.encode() if isinstance(what, str) else json.dumps(what).encode()
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def stand_in(**options: Any) -> Iterator[StandIn]:
    with StandIn(**options) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize("page", [1, 64])
@pytest.mark.parametrize("reports", [True, False], ids=["usage", "counters"])
def test_every_turn_is_predicted_and_runs_do_not_see_each_other(page: int, reports: bool) -> None:
    with stand_in(page=page, reports=reports) as server:
        engine = attach(server.url)
        assert isinstance(engine, Sglang)
        result = measure(session(clock=False), bench_for(engine), repeat=2)
        assert len(server.trees) == 2
    assert (result.count("exact"), len(result.turns)) == (5, 5)
    assert all(turn.exact_ids for turn in result.turns)
    assert all(turn.measured % page == 0 and turn.measured > 300 for turn in result.turns[1:])
    assert (result.engine.kind, result.engine.rule) == ("sglang", f"sglang:page={page}")
    assert result.notes == ()


def test_what_several_sessions_left_is_still_there() -> None:
    """Unlike llama.cpp's one slot: going back to the first conversation reads all of it."""
    first, other = session(clock=False, turns=3), session(clock=True, turns=2)
    with stand_in() as server:
        result = measure([*first[:2], *other, first[2]], bench_for(attach(server.url)))
    assert result.count("exact") == 5
    assert result.turns[4].measured == result.turns[1].prompt_tokens


def test_a_server_that_says_nothing_of_its_cache_is_not_measured() -> None:
    with stand_in(reports=False, metrics=False) as server:
        result = measure(session(clock=False), bench_for(attach(server.url)))
    assert (len(result.turns), len(result.skipped)) == (0, 5)
    assert "does not say" in result.skipped[0].reason


def test_the_check_up() -> None:
    with stand_in(reports=False, old=True) as server:
        found = {r.topic: r for r in check_up(server.url).remarks}
    assert found["caching"].severity == "ok"
    assert found["usage-details"].todo == "start with --enable-cache-report"
    assert (found["memory"].severity, "2.2 sequences" in found["memory"].found) == ("ok", True)
    assert {found[topic].severity for topic in ("eviction", "chunked-prefill", "kv-dtype")} == {"advice"}
    assert found["hit-rate"].severity == "unknown"


def test_a_check_up_of_what_is_off_and_full() -> None:
    state = SglangState(
        page=64, caching=False, reports=True, tokens=5000, longest=4096, host=False, retracted=3, usage=0.95
    )
    found = {r.topic: r.severity for r in examine_sglang(state)}
    assert (found["caching"], found["memory"], found["preemptions"]) == ("problem", "advice", "problem")
    assert (found["crowded"], found["host-cache"], found["usage-details"]) == ("advice", "advice", "ok")
    quiet = {r.topic for r in examine_sglang(SglangState(page=1, caching=True, reports=True, metrics=False))}
    assert "metrics" in quiet
    assert not {"preemptions", "crowded", "host-cache"} & quiet


def test_events_are_only_understood_of_vllm() -> None:
    with stand_in() as server, pytest.raises(InputError, match="--kv-events"):
        bench_for(attach(server.url), kv_events="tcp://*:5557")
