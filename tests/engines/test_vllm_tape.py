"""What a real vLLM answered, and what its cache published, through `measure` to the verdicts.

The tape was recorded by `tests/oracle/tape.py` on a server of 129 blocks. Here
it is played by a server that opens real sockets, HTTP and ZMQ.
"""

from __future__ import annotations

import json
import threading
from base64 import b64decode
from collections import defaultdict, deque
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import zmq

from prefixguard.engines import attach
from prefixguard.engines.replay import bench_for, measure, salted
from prefixguard.trial import Trial
from tests.oracle.sessions import SESSIONS
from tests.oracle.tape import key

TAPE: dict[str, Any] = json.loads((Path(__file__).parents[2] / "fixtures/vllm/tape.json").read_text())


class Player(ThreadingHTTPServer):
    """Answers each request as it was answered, in order, and publishes what was published behind it."""

    def __init__(self, tape: list[dict[str, Any]], *, publishes: bool) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers: dict[str, deque[dict[str, Any]]] = defaultdict(deque)
        for row in tape:
            self.answers[row["key"]].append(row)
        self.publishes = publishes
        self.publisher = zmq.Context.instance().socket(zmq.PUB)
        self.port = self.publisher.bind_to_random_port("tcp://127.0.0.1")
        self.sent = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def publish(self, payloads: list[str]) -> None:
        for payload in payloads:
            self.publisher.send_multipart([b"kv-events", self.sent.to_bytes(8, "big"), b64decode(payload)])
            self.sent += 1


class Handler(BaseHTTPRequestHandler):
    server: Player

    def do_GET(self) -> None:
        self.play("GET", b"")

    def do_POST(self) -> None:
        self.play("POST", self.rfile.read(int(self.headers["content-length"])))

    def play(self, method: str, body: bytes) -> None:
        queue = self.server.answers[key(method, self.path, body)]
        assert queue, f"{method} {self.path} was not asked when the tape was recorded"
        row = queue.popleft() if len(queue) > 1 else queue[0]
        answer = row["body"].encode()
        status = row["status"]
        if self.path == "/kv_event_sources":
            source = {"publisher": "zmq", "endpoint": f"tcp://*:{self.server.port}", "topic": "kv-events"}
            answer = json.dumps({"0": source}).encode()
            status = 200 if self.server.publishes else 404
        self.send_response(status)
        self.send_header("content-type", row["type"])
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)
        self.server.publish(row["events"])

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def playing(tape: list[dict[str, Any]], *, publishes: bool = True) -> Iterator[Player]:
    with Player(tape, publishes=publishes) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
            server.publisher.close(0)


def played(name: str, monkeypatch: pytest.MonkeyPatch, *, publishes: bool = True) -> Trial:
    tape = TAPE["sessions"][name]
    salt = next(row["salt"] for row in tape if row["salt"])
    monkeypatch.setattr(salted.secrets, "token_hex", lambda _: salt.removeprefix("prefixguard-"))
    with playing(tape, publishes=publishes) as server:
        return measure(SESSIONS[name], bench_for(attach(server.url)))


@pytest.mark.parametrize("name", [name for name in SESSIONS if "small cache" not in name])
def test_a_real_server_is_predicted_on_every_turn(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    trial = played(name, monkeypatch)
    assert (trial.count("exact"), len(trial.turns), trial.skipped) == (len(SESSIONS[name]),) * 2 + ((),)
    assert all(turn.exact_ids for turn in trial.turns)
    assert any(turn.measured for turn in trial.turns) == (name != "clock in the system prompt")
    # The events agree with usage on every turn, and nothing was thrown out.
    assert all(turn.evidence and turn.evidence.left in (None, turn.measured) for turn in trial.turns)
    assert trial.notes[-1].endswith(" 0 thrown out")


def test_evictions_account_for_every_token_that_was_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    trial = played("six sessions in a small cache", monkeypatch)
    less = [turn for turn in trial.turns if turn.verdict == "less"]
    assert len(less) + trial.count("exact") == len(trial.turns) == 18
    assert trial.accounted == len(less) > 5
    assert {turn.explanation for turn in less} == {"PG602"}
    assert {turn.measured > 0 for turn in less} == {True, False}  # trimmed from the end, and gone whole
    first = less[0]
    assert f"{first.measured:,} of {first.predicted_high:,} stored tokens were left" in first.words


def test_without_events_the_same_misses_are_guessed_at(monkeypatch: pytest.MonkeyPatch) -> None:
    trial = played("six sessions in a small cache", monkeypatch, publishes=False)
    assert trial.accounted == 0
    less = [turn for turn in trial.turns if turn.verdict == "less"]
    assert len(less) > 5
    assert not any("events" in turn.words for turn in less)
    assert trial.notes == ()
