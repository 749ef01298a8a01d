"""The demo, from the command line, with the tests' own tiny model."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from prefixguard.engines import binaries
from prefixguard.engines.demo import play
from prefixguard.errors import MissingExtraError
from tests.real.conftest import Servers

MAIN = [sys.executable, "-c", "from prefixguard.cli import main; main()", "demo"]


def demo(*options: str | Path, **more: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **more}
    command = [*MAIN, *map(str, options)]
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)


@pytest.fixture(scope="module")
def printed(servers: Servers, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """What one run prints, and its record."""
    store = tmp_path_factory.mktemp("demo") / "demo.db"
    done = demo("--model", servers.model, "--store", store)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout, store


def test_every_prediction_comes_true(printed: tuple[str, Path]) -> None:
    counts = re.search(r"equal on (\d+) of (\d+) requests", printed[0])
    assert counts is not None
    assert int(counts[1]) == int(counts[2]) >= 8


def test_the_cause_the_line_and_the_fix_are_named(printed: tuple[str, Path]) -> None:
    text = printed[0]
    assert "PG101 clock-in-prefix" in text
    assert "To do: " in text
    place = re.search(r"The line: (\S+):(\d+)\n\s+(.*)", text)
    assert place is not None
    line = Path(place[1]).read_text().splitlines()[int(place[2]) - 1]
    assert "datetime.now()" in line
    assert line.strip() == place[3]


def test_the_mended_agent_computes_less(printed: tuple[str, Path]) -> None:
    computed = re.search(r"computed ([\d,]+) prompt\s+tokens, without it ([\d,]+)", printed[0])
    assert computed is not None
    faulty, mended = (int(figure.replace(",", "")) for figure in computed.groups())
    assert faulty > 2 * mended


def test_a_pipe_gets_no_escape_codes(printed: tuple[str, Path]) -> None:
    assert "\x1b" not in printed[0]


def test_the_record_is_kept_where_it_was_asked_for(printed: tuple[str, Path]) -> None:
    from prefixguard.store import Store

    with Store.open(printed[1], create=False) as record:
        exchanges = list(record.exchanges())
    assert len(exchanges) >= 8
    assert all(exchange.rendered and exchange.rendered.reply for exchange in exchanges)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--model", "nowhere.gguf"], "the model file nowhere.gguf does not exist"),
        (["--llama-server", "no-such-program"], "no-such-program is no program"),
        (["--store", f"{__file__}/demo.db"], "test_demo.py/demo.db"),
    ],
)
def test_bad_input_is_one_line(servers: Servers, options: list[str], why: str) -> None:
    model = [] if "--model" in options else ["--model", str(servers.model)]
    done = demo(*model, *options)
    assert done.returncode == 2
    assert why in done.stderr
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("prefixguard.engines.demo.runs.packaged_model", lambda: None)
    with pytest.raises(MissingExtraError, match=r"install prefixguard\[demo\]"):
        play()


def test_a_missing_server_is_named(servers: Servers, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(binaries, "package_folder", lambda _: None)
    with pytest.raises(Exception, match=r"no llama.cpp server is installed: install prefixguard\[demo\]"):
        play(model=servers.model)
