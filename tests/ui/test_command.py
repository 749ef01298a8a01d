"""The command as a user starts it: what it prints, how it ends, what it says when something is wrong."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from click.testing import CliRunner

from prefixguard.cli.ui import command
from prefixguard.errors import InputError, MissingExtraError, PrefixGuardError
from prefixguard.store import Store

from .agents import record


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_starts_answers_and_ends(tmp_path: Path, number: signal.Signals) -> None:
    path = tmp_path / "record.sqlite"
    with Store.open(path) as store:
        record(store, "one", turns=2)
    program = "from prefixguard.cli import main; main()"
    words = [sys.executable, "-c", program, "ui", "--store", str(path), "--listen", "127.0.0.1:0"]
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path, env=os.environ
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == f"watching {path}\n"
        address = re.fullmatch(r"open (http://127\.0\.0\.1:\d+)/#key=([\w-]+)\n", process.stdout.readline())
        assert address is not None
        with httpx.Client(base_url=address[1], timeout=20) as client:
            assert client.get("/").status_code == 200
            assert client.get("/api/sessions/one").status_code == 401
            key = {"authorization": f"Bearer {address[2]}"}
            assert client.get("/api/sessions/one", headers=key).json()["count"] == 2
            # An open page does not keep it from ending.
            with client.stream("GET", "/api/events", headers=key) as events:
                assert next(events.iter_lines())
                process.send_signal(number)
                assert process.wait(20) == 0
        assert process.stderr.read() == ""


def failing(*arguments: str) -> BaseException | None:
    return CliRunner().invoke(command, arguments).exception


def test_a_taken_port_is_one_line(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        error = failing("--listen", f"127.0.0.1:{port}", "--store", str(tmp_path / "r.sqlite"))
    assert isinstance(error, InputError)
    assert f"127.0.0.1:{port}: cannot listen there" in str(error)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nothing.jsonl"], "nothing.jsonl: no such file"),
        (["--listen", "here"], "HOST:PORT"),
        (["--server", "nobody"], "nobody"),
        (["--chat-template", "nothing.jinja"], "nothing.jinja"),
        (["7f3a"], "no record"),
    ],
)
def test_what_is_wrong_is_said_at_once(tmp_path: Path, words: list[str], said: str) -> None:
    rest = [] if "--listen" in words else ["--listen", "127.0.0.1:0"]
    error = failing(*words, *rest, "--store", str(tmp_path / "r.sqlite"))
    assert isinstance(error, PrefixGuardError)
    assert said in str(error)
    assert "\n" not in str(error)


def test_a_missing_extra_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    error = failing()
    assert isinstance(error, MissingExtraError)
    assert "prefixguard[ui]" in str(error)
