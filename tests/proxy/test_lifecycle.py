"""Starting and ending: bad input is one line, and an end loses nothing."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import httpx
import pytest

from .running import MAIN, RunningProxy
from .upstream import Answer, Request, Upstream

SSE = (("Content-Type", "text/event-stream"),)


def test_an_end_waits_for_what_runs_and_records_what_it_cuts_off(tmp_path: Path) -> None:
    gate, never = threading.Event(), threading.Event()

    def script(request: Request) -> Answer:
        waits = gate if request.header("x-session-id") == "finishes" else never
        return Answer([b"data: 1\n\n", waits, b"data: 2\n\n"], headers=SSE, chunked=True)

    prepare = "from prefixguard.proxy.serve import Proxy; Proxy.stop.__defaults__ = (1.5, lambda n: None)"
    bodies: dict[str, bytes] = {}
    with (
        Upstream(script) as upstream,
        RunningProxy(tmp_path, "--upstream", upstream.url, prepare=prepare) as proxy,
    ):

        def ask(session: str, started: threading.Event) -> None:
            headers = {"x-session-id": session}
            url = f"{proxy.url}/v1/messages"
            body = b""
            try:
                with httpx.stream(
                    "POST", url, json={"model": "m"}, headers=headers, trust_env=False
                ) as answer:
                    for chunk in answer.iter_raw():
                        body += chunk
                        started.set()
            except httpx.HTTPError:
                body += b"cut off"
            bodies[session] = body

        threads = []
        for session in ("finishes", "hangs"):
            started = threading.Event()
            threads.append(threading.Thread(target=ask, args=(session, started)))
            threads[-1].start()
            assert started.wait(20)
        assert proxy.health()["running"] == 2
        threading.Timer(0.5, gate.set).start()
        stopped = proxy.stop(signal.SIGINT)
        never.set()
        for thread in threads:
            thread.join(20)
    assert bodies == {"finishes": b"data: 1\n\ndata: 2\n\n", "hangs": b"data: 1\n\ncut off"}
    assert (stopped["recorded"], stopped["lost"]) == (2, {})
    (finished,) = proxy.captures("finishes", 1)
    (cut,) = proxy.captures("hangs", 1)
    assert (finished.aborted, cut.aborted) == (False, True)
    assert cut.response_body == b"data: 1\n\n"


def command_line(tmp_path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", MAIN, *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "XDG_DATA_HOME": str(tmp_path)},
        check=False,
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--upstream", "localhost:8080"), "write it as http://host:port"),
        (("--listen", "here"), "HOST:PORT"),
        (("--to", "nothing"), "NAME=URL"),
        (("--mode", "forward", "--listen", "0.0.0.0:0"), "open relay"),
        (("--store", "mysql://u:secret@h/x", "--listen", "127.0.0.1:0"), "neither a file"),
    ],
)
def test_bad_input_is_one_line(tmp_path: Path, arguments: tuple[str, ...], message: str) -> None:
    result = command_line(tmp_path, "proxy", *arguments)
    assert result.returncode == 2
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
    assert "secret" not in result.stderr + result.stdout


def test_a_port_in_use_is_one_line(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        result = command_line(tmp_path, "proxy", "--listen", f"127.0.0.1:{taken.getsockname()[1]}")
    assert result.returncode == 2
    assert "cannot listen" in result.stderr
    assert result.stderr.count("\n") == 1
