"""`prefixguard export`: what it writes, and what it says when it cannot."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from prefixguard.cli import main
from prefixguard.exchange import Capture, SessionKey
from prefixguard.importers import read_log
from prefixguard.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def record(tmp_path: Path) -> Path:
    path = tmp_path / "record.sqlite"
    with Store.open(path) as store:
        for i in range(6):
            body = json.dumps({"messages": [{"role": "user", "content": f"n{i}"}]}).encode()
            capture = Capture(f"x{i}", float(i), "POST", "/x", "https://h", {}, body, 200, {}, b'{"id":1}')
            store.append(capture, SessionKey("header", "x", ["ses_a", "ses_b"][i % 2]))
    return path


@dataclass(frozen=True)
class Done:
    returncode: int
    stdout: bytes
    stderr: bytes


@pytest.fixture
def export(monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]) -> Callable[..., Done]:
    """Runs the command as the console script does, in this process."""

    def run(*words: str | Path) -> Done:
        monkeypatch.setattr(sys, "argv", ["prefixguard", "export", *map(str, words)])
        code = 0
        try:
            main()
        except SystemExit as stop:
            code = int(stop.code or 0)
        return Done(code, *capfdbinary.readouterr())

    return run


def test_everything_goes_to_standard_output_in_order_of_time(
    record: Path, export: Callable[..., Done]
) -> None:
    done = export("--store", record)
    assert (done.returncode, done.stderr) == (0, b"")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["t"] for line in lines] == [0, 1, 2, 3, 4, 5]
    assert lines[1]["session"] == "ses_b"
    assert lines[1]["request"] == {"messages": [{"role": "user", "content": "n1"}]}


@pytest.mark.parametrize("name", ["log.jsonl", "log.jsonl.gz", "log.jsonl.zst"])
def test_one_session_to_a_file(record: Path, tmp_path: Path, export: Callable[..., Done], name: str) -> None:
    done = export("ses_b", "last", "--store", record, "-o", tmp_path / name)
    assert done.returncode == 0, done.stderr
    assert done.stderr.decode() == f"{tmp_path / name}: 3 exchanges\n"
    with Store.open(record) as store:
        assert list(read_log(tmp_path / name)) == list(store.exchanges("ses_b"))
    assert sorted(path.name for path in tmp_path.iterdir() if "sqlite" not in path.name) == [name]


def test_a_session_that_is_not_there_leaves_the_file_alone(
    record: Path, tmp_path: Path, export: Callable[..., Done]
) -> None:
    (tmp_path / "log.jsonl").write_text("old")
    done = export("ses_a", "nope", "--store", record, "-o", tmp_path / "log.jsonl")
    assert done.returncode == 2
    assert done.stderr.decode().startswith("prefixguard: nope: no session of")
    assert done.stderr.count(b"\n") == 1
    assert (tmp_path / "log.jsonl").read_text() == "old"


def test_what_cannot_be_done_is_said_in_one_line(
    record: Path, tmp_path: Path, export: Callable[..., Done]
) -> None:
    for words in (
        ("--store", tmp_path / "none.sqlite"),
        ("--store", record, "-o", tmp_path / "no" / "folder" / "log.jsonl"),
        ("--store", record, "-o", "/dev/full"),
        ("--store", record.parent),
    ):
        done = export(*words)
        assert done.returncode == 2, words
        assert done.stderr.count(b"\n") == 1, done.stderr
        assert done.stderr.startswith(b"prefixguard: ")


def test_a_device_is_written_to_and_not_replaced(record: Path) -> None:
    command = "from prefixguard.cli import main; main()"
    words = [sys.executable, "-c", command, "export", "--store", str(record), "-o", "/dev/stdout"]
    done = subprocess.run(words, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(b"\n") == 6
