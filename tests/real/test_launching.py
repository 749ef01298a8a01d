"""Servers of our own start, say why they do not, and never outlive us."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from prefixguard.engines import attach, binaries, launch
from prefixguard.engines.binaries import Candidate
from prefixguard.engines.client import JsonClient
from prefixguard.errors import ServerError
from tests.real.conftest import Servers


def alive(pid: int) -> bool:
    """Whether a process runs; one that has ended but was not yet waited for does not."""
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


def until_gone(pids: list[int]) -> bool:
    deadline = time.monotonic() + 20
    while any(map(alive, pids)) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not any(map(alive, pids))


def servers_of(parent: int) -> list[int]:
    """The process ids below `parent`."""
    below = subprocess.run(
        ["ps", "-o", "pid=", "--ppid", str(parent)], capture_output=True, text=True, check=False
    )
    children = [int(pid) for pid in below.stdout.split()]
    return children + [pid for child in children for pid in servers_of(child)]


def test_a_launched_server_ends_with_its_context(servers: Servers) -> None:
    with launch(servers.model, threads=1) as server:
        assert attach(server.url).kind == "llama.cpp"
        assert attach(f"{server.url}/v1").url == server.url
        assert server.engine.properties.slots == 1
        assert server.engine.properties.context == 4096
        below = servers_of(server._process._process.pid)
        assert below
        log = server.log
    assert until_gone(below)
    assert not log.exists()
    server.close()


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks at /proc")
@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM])
def test_a_launched_server_ends_with_the_process_that_asked_for_it(
    servers: Servers, end: signal.Signals
) -> None:
    script = f"""
        import sys, time
        from prefixguard.engines import launch
        server = launch({str(servers.model)!r}, threads=1)
        print(server.url, server.log, flush=True)
        time.sleep(60)
    """
    asking = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script)], stdout=subprocess.PIPE, text=True
    )
    assert asking.stdout is not None
    url, log = asking.stdout.readline().split()
    below = servers_of(asking.pid)
    assert JsonClient(url).get("/health")["status"] == "ok"
    asking.send_signal(end)
    asking.wait()
    asking.stdout.close()
    assert until_gone(below)
    assert not Path(log).exists()


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks at /proc")
def test_a_launched_server_ends_when_its_keeper_is_killed(servers: Servers) -> None:
    with launch(servers.model, threads=1) as server:
        keeper = server._process._process.pid
        below = servers_of(keeper)
        os.kill(keeper, signal.SIGKILL)
        assert until_gone(below)


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("import os; os.kill(os.getpid(), 4)", "another processor"),
        (
            "print('loading'); print('error: cannot open model'); print('bye'); exit(3)",
            "cannot open model (exit status 3)",
        ),
        ("pass", "it said nothing"),
    ],
    ids=["illegal-instruction", "told", "silent"],
)
def test_a_server_that_does_not_start_says_why(servers: Servers, script: str, why: str) -> None:
    broken = Candidate("broken", (sys.executable, "-c", script))
    with pytest.raises(ServerError) as error:
        launch(servers.model, binary=broken)
    assert str(error.value).startswith("no llama.cpp server could be started: broken: ")
    assert why in str(error.value)
    assert "\n" not in str(error.value)


def test_a_server_that_is_never_ready_is_given_up(servers: Servers) -> None:
    sleeping = Candidate(
        "sleeping", (sys.executable, "-c", "import time; print('wait', flush=True); time.sleep(60)")
    )
    with pytest.raises(ServerError, match="not ready after 1 s"):
        launch(servers.model, binary=sleeping, patience=1)


def test_the_next_program_is_tried_when_one_does_not_run(
    servers: Servers, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    broken = tmp_path / "llama-server"
    broken.write_text("#!/bin/sh\nkill -ILL $$\n")
    broken.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    assert next(binaries.candidates()).command == (str(broken),)
    with launch(servers.model, threads=1) as server:
        assert server.program != "llama-server on PATH"
        assert server.skipped[0] == (
            "llama-server on PATH: it was built for another processor (illegal instruction)"
        )


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"model": "nowhere.gguf"}, "the model file nowhere.gguf does not exist"),
        ({"template": "nowhere.jinja"}, "the chat template file nowhere.jinja does not exist"),
        ({"binary": "no-such-program"}, "no-such-program is no program"),
    ],
)
def test_what_is_missing_is_named(servers: Servers, changes: dict[str, str], why: str) -> None:
    with pytest.raises(ServerError, match=why):
        launch(**{"model": servers.model, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("http://127.0.0.1:9", "does not answer"),
        ("ftp://127.0.0.1", "no server address"),
        ("nonsense://", "no server address"),
    ],
)
def test_attaching_to_nothing_says_so(url: str, why: str) -> None:
    with pytest.raises(ServerError, match=why):
        attach(url)
