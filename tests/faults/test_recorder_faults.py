"""Whatever happens to the recording, the agent's requests go through; what is lost is counted and said.

Each test breaks one real thing (a process, a disk, a database, a hook) and asks
the same: every request is answered with what the upstream said, none waits for
the recorder, and the numbers add up to the exchanges that passed.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from tests.proxy.running import MAIN, Event, RunningProxy, of
from tests.proxy.upstream import Answer, Upstream

BODY = {"model": "m", "messages": [{"role": "user", "content": "hello " * 200}]}
ANSWER = json.dumps(
    {
        "object": "chat.completion",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "hi"}}],
    }
).encode()
PATIENCE = 60.0
MOST_QUEUED = 8


@pytest.fixture(scope="module")
def upstream() -> Iterator[Upstream]:
    with Upstream(lambda _: Answer([ANSWER])) as upstream:
        yield upstream


@pytest.fixture(scope="module")
def shared(upstream: Upstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningProxy]:
    """For the faults that a proxy gets over; its queue is short."""
    limit = "from prefixguard.proxy.link import Link\n"
    limit += f"Link.__init__.__kwdefaults__.update(max_frames={MOST_QUEUED})"
    folder = tmp_path_factory.mktemp("faults")
    with RunningProxy(folder, "--upstream", upstream.url, prepare=limit) as proxy:
        yield proxy


@pytest.fixture
def proxy(shared: RunningProxy) -> RunningProxy:
    until(shared, lambda page: page["queued"] == 0 and page["recorder"]["alive"])
    return shared


def ask(
    proxy: RunningProxy,
    count: int,
    session: str = "faults",
    *,
    path: str = "/v1/chat/completions",
    content: bytes | None = None,
) -> None:
    """`count` requests, one after the other; each must be answered with what the upstream said."""
    with httpx.Client(trust_env=False, timeout=20) as client:
        for _ in range(count):
            answer = client.post(
                f"{proxy.url}{path}",
                content=json.dumps(BODY).encode() if content is None else content,
                headers={"x-session-id": session},
            )
            assert (answer.status_code, answer.content) == (200, ANSWER)


def until(proxy: RunningProxy, reached: Callable[[Event], bool]) -> Event:
    """The first health page that is as wanted."""
    end = time.monotonic() + PATIENCE
    while not reached(page := proxy.health()):
        assert time.monotonic() < end, page
        time.sleep(0.05)
    return page


def settled(proxy: RunningProxy) -> Event:
    """The health page once nothing is queued."""
    return until(proxy, lambda page: page["queued"] == 0)


def adds_up(page: Event) -> None:
    """Every exchange was either recorded or counted as lost."""
    assert page["recorded"] + sum(page["lost"].values()) == page["exchanges"]
    assert page["queued"] == 0


def lost(page: Event) -> int:
    return sum(page["lost"].values())


def test_a_recorder_that_is_killed_is_started_again(proxy: RunningProxy) -> None:
    ask(proxy, 2, "killed")
    before = settled(proxy)
    pid = before["recorder"]["pid"]
    os.kill(pid, signal.SIGKILL)
    ask(proxy, 3, "killed")
    page = until(proxy, lambda page: page["recorder"]["alive"] and page["recorder"]["pid"] != pid)
    assert page["recorder"]["restarts"] == before["recorder"]["restarts"] + 1
    page = settled(proxy)
    adds_up(page)
    assert lost(page) == lost(before)
    assert len(proxy.captures("killed", 5)) == 5

    def turns(events: list[Event]) -> list[int] | None:
        found = [event["index"] for event in of(events, "turn") if event["session"] == "killed"]
        return found if found[-1:] == [4] else None

    # The new recorder takes the session up where the old one stood; no turn is told twice.
    indices = proxy.wait_for(turns, "last turn")
    assert indices == sorted(set(indices))


def test_a_recorder_that_stalls_fills_a_bounded_queue(proxy: RunningProxy) -> None:
    before = settled(proxy)
    pid = before["recorder"]["pid"]
    os.kill(pid, signal.SIGSTOP)
    try:
        ask(proxy, MOST_QUEUED + 5)
        page = proxy.health()
        assert page["queued"] == MOST_QUEUED
        assert lost(page) == lost(before) + 5
        assert page["lost"]["the queue to the recorder is full"] >= 5
    finally:
        os.kill(pid, signal.SIGCONT)
    page = settled(proxy)
    adds_up(page)
    assert page["recorded"] == before["recorded"] + MOST_QUEUED


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="needs Linux")
def test_a_full_disk(proxy: RunningProxy) -> None:
    """The operating system lets no file of the recorder grow, as on a full disk; then there is room again."""
    before = settled(proxy)
    pid = before["recorder"]["pid"]
    soft, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (4096, hard))
    try:
        ask(proxy, 5, "full")
        page = settled(proxy)
        assert page["recorded"] == before["recorded"]
        assert lost(page) == lost(before) + 5
    finally:
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (soft, hard))
    ask(proxy, 2, "room")
    page = settled(proxy)
    adds_up(page)
    assert page["recorded"] == before["recorded"] + 2
    assert len(proxy.captures("room", 2)) == 2
    assert len(of(proxy.events, "lost")) >= 5


def test_a_locked_database(proxy: RunningProxy) -> None:
    """Another program holds the record's write lock; when it lets go, recording goes on."""
    before = settled(proxy)
    other = sqlite3.connect(proxy.store_path, isolation_level=None, timeout=30)
    other.execute("BEGIN IMMEDIATE")
    ask(proxy, 3, "locked")
    assert proxy.health()["recorded"] == before["recorded"]
    other.execute("ROLLBACK")
    other.close()
    page = settled(proxy)
    adds_up(page)
    assert page["recorded"] == before["recorded"] + 3


def test_odd_requests(proxy: RunningProxy) -> None:
    """An unknown API, and malformed bodies."""
    before = settled(proxy)
    ask(proxy, 1, "odd", path="/v9/brand-new-api", content=b'{"question": "why"}')
    ask(proxy, 1, "odd", content=b'{"model": "m", "messages": [{"role": "user"')
    ask(proxy, 1, "odd", content=b"\xff\xfe\x00not json at all")
    ask(proxy, 1, "odd", content=b"[" * 100_000)
    ask(proxy, 1, "odd", content=b'{"messages": "no list", "tools": 7, "model": ["x"]}')
    ask(proxy, 1, "odd", path="/v1/messages", content=b"")
    page = settled(proxy)
    adds_up(page)
    assert page["recorded"] == before["recorded"] + 6
    assert page["unknown_api"] == before["unknown_api"] + 1

    def turns(events: list[Event]) -> list[Event] | None:
        found = [event for event in of(events, "turn") if event["session"] == "odd"]
        return found if len(found) == 6 else None

    notes = [turn["note"] for turn in proxy.wait_for(turns, "six turns")]
    assert any("unknown API" in note for note in notes)
    assert not [event for event in of(proxy.events, "trouble") if event["what"] == "analysis"]


def test_a_recorder_that_never_answers_does_not_hold_up_the_end(tmp_path: Path, upstream: Upstream) -> None:
    patience = "from prefixguard.proxy.link import Link; Link.close.__defaults__ = (0.5, 0.5)"
    with RunningProxy(tmp_path, "--upstream", upstream.url, prepare=patience) as proxy:
        os.kill(proxy.health()["recorder"]["pid"], signal.SIGSTOP)
        ask(proxy, 3)
        stopped = proxy.stop()
        adds_up(stopped)
        assert stopped["lost"] == {"the recorder did not answer": 3}


def test_an_exception_in_the_hooks(tmp_path: Path, upstream: Upstream) -> None:
    """Every second exchange fails in the hook that makes captures, every third body in its copy."""
    breaks = """
from prefixguard.proxy import copies, tap
made, kept, calls = tap.Tap._hand_over, copies.Copy._keep, [0, 0]
def hand_over(self, *a, **k):
    calls[0] += 1
    if calls[0] % 2: raise RuntimeError("broken on purpose")
    return made(self, *a, **k)
def keep(self, data):
    calls[1] += 1
    if calls[1] % 3 == 0: raise ValueError("broken on purpose")
    return kept(self, data)
tap.Tap._hand_over, copies.Copy._keep = hand_over, keep
"""
    with RunningProxy(tmp_path, "--upstream", upstream.url, prepare=breaks) as proxy:
        ask(proxy, 9)
        stopped = proxy.stop()
        assert list(stopped["lost"]) == ["an error in the recording hooks"]
        assert 0 < stopped["recorded"] < 9
        adds_up(stopped)


def test_a_terminal_that_is_not_read(tmp_path: Path, upstream: Upstream) -> None:
    """Nobody reads what the proxy prints: the pipe fills, lines are dropped, recording goes on."""
    count = 150
    prepare = f"from prefixguard.proxy import live; live._LINES = 10\n{MAIN}"
    command = [sys.executable, "-c", prepare, "proxy", "--listen", "127.0.0.1:0", "--format", "json"]
    options = ["--store", str(tmp_path / "record.sqlite"), "--upstream", upstream.url]
    environ = {**os.environ, "XDG_DATA_HOME": str(tmp_path)}
    process = subprocess.Popen([*command, *options], stdout=subprocess.PIPE, env=environ)
    try:
        assert process.stdout is not None
        opening = (json.loads(line) for line in process.stdout)
        url = next(event["url"] for event in opening if event["type"] == "listening")
        end = time.monotonic() + PATIENCE
        with httpx.Client(trust_env=False, timeout=20) as client:
            for n in range(count):
                headers = {"x-session-id": f"{n}-" + "x" * 400}
                answer = client.post(f"{url}/v1/chat/completions", json=BODY, headers=headers)
                assert answer.status_code == 200
            while client.get(f"{url}/prefixguard/health").json()["recorded"] < count:
                assert time.monotonic() < end
                time.sleep(0.1)
        process.send_signal(signal.SIGTERM)
        process.stdout.read()
        assert process.wait(PATIENCE) == 0
    finally:
        process.kill()
        process.wait()
