"""`prefixguard simulate`: tables, JSON, pictures, and what wrong input gets."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from prefixguard.cli.simulate import command
from prefixguard.errors import InputError
from prefixguard.importers import write_log
from tests.simulate.agent import exchanges


def run(*arguments: str) -> Result:
    return CliRunner().invoke(command, arguments, env={"COLUMNS": "150"})


@pytest.fixture
def log(tmp_path: Path) -> str:
    path = tmp_path / "log.jsonl"
    with path.open("wb") as file:
        write_log(exchanges(5, clock=True), file)
    return str(path)


@pytest.fixture
def trace(tmp_path: Path) -> str:
    path = tmp_path / "trace.jsonl"
    rows = [
        {"timestamp": 1000 * i, "input_length": 1500, "output_length": 20, "hash_ids": [1, 2, 10 + i % 3]}
        for i in range(12)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def answer(*arguments: str) -> dict[str, Any]:
    result = run(*arguments, "--format", "json")
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.output)
    return found


def test_sessions_in_pools_of_several_kinds(log: str) -> None:
    found = answer(
        log, "--model", "llama-3.1-8b", "--memory", "0.25,1", "--kv-dtype", "fp16,fp8", "--sessions", "1,3"
    )
    assert found["schema"] == "prefixguard-simulate/1"
    assert found["workload"]["breaks"] == 4
    assert found["workload"]["exact"] is False
    assert len(found["runs"]) == 2 * 2 * 2
    half = {run["kv_dtype"]: run["tokens"] for run in found["runs"] if run["memory_bytes"] == 1 << 28}
    assert half == {"fp16": 2047 // 16 * 16, "fp8": 4095 // 16 * 16}
    for one in found["runs"]:
        assert one["cached_tokens"] + one["recomputed_tokens"] == one["prompt_tokens"]
        assert one["mended"]["cached_tokens"] >= one["cached_tokens"]


def test_seconds_come_from_a_fit(log: str, tmp_path: Path) -> None:
    by_hand = answer(log, "--tokens", "50000", "--fit", "10,1,0")["runs"][0]
    assert by_hand["prefill_seconds"] == pytest.approx((50 + by_hand["recomputed_tokens"]) / 1000)
    measured = tmp_path / "measure.json"
    measured.write_text('{"fit": {"a_ms": 10, "b_ms_per_token": 1, "c_ms_per_token2": 0}}')
    assert answer(log, "--tokens", "50000", "--fit", str(measured))["runs"][0] == by_hand


def test_what_breaks_cost_in_sessions(log: str) -> None:
    found = answer(log, "--tokens", "20000", "--capacity")
    (capacity,) = found["capacity"]
    assert 0 < capacity["sessions"] < capacity["mended_sessions"]
    page = run(log, "--tokens", "20000", "--capacity").output
    assert "sessions served" in page
    assert "Note: estimate" in page


def test_a_hash_trace(trace: str) -> None:
    runs = answer(trace, "--tokens", "1600,100000", "--block-size", "16,512")["runs"]
    assert runs[3]["cached_tokens"] == 11 * 1024
    assert runs[0]["hit_rate"] < runs[2]["hit_rate"]
    # Every prompt but the first shares two blocks, and from the fourth on its last one, too.
    assert runs[2]["possible_hit_rate"] == runs[2]["hit_rate"]
    assert runs[2]["cached_tokens"] == 2 * 1024 + 9 * 1488
    assert "estimate" not in run(trace, "--tokens", "100000").output


@pytest.mark.parametrize("name", ["hits.svg", "hits.html"])
def test_a_picture_holds_all_it_needs(log: str, tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    assert run(log, "--tokens", "2000,20000", "--sessions", "1,2", "--plot", str(path)).exit_code == 0
    text = path.read_text()
    assert "1 session mended" in text
    assert "2 sessions" in text
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "")
    if name.endswith(".svg"):
        drawing = ElementTree.fromstring(text)
        assert len(drawing.findall("{*}polyline")) == 4
    else:
        assert "<table>" in text


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ((), "say how large the pool is"),
        (("--memory", "4"), "--memory needs --model"),
        (("--memory", "4", "--tokens", "5"), "say how large the pool is"),
        (("--tokens", "3"), "holds no block"),
        (("--tokens", "1000", "--fit", "1,2"), "--fit 1,2: "),
        (("--tokens", "1000", "--fit", "a,b,c"), "not three numbers"),
        (("--tokens", "1000", "--plot", "x.png"), "must end in .svg or .html"),
        (("--tokens", "1000", "--server", "nonsense"), "no such cache rule"),
        (("--model", "no-such", "--memory", "1"), "no file and no known model"),
    ],
)
def test_wrong_input_is_one_line(log: str, arguments: tuple[str, ...], complaint: str) -> None:
    error = run(log, *arguments).exception
    assert isinstance(error, InputError)
    assert complaint in str(error)
    assert "\n" not in str(error)


def test_traces_that_are_not_whole(tmp_path: Path, trace: str) -> None:
    path = tmp_path / "bad.jsonl"
    for line, complaint in (
        ('{"timestamp": 0, "input_length": 1000, "output_length": 1, "hash_ids": [1]}', "need 2 hashes"),
        ('{"hash_ids": 5}', ":1: not a row"),
    ):
        path.write_text(line + "\n")
        error = run(str(path), "--tokens", "1000").exception
        assert isinstance(error, InputError)
        assert complaint in str(error)
    error = run(trace, "--tokens", "1000", "--sessions", "4").exception
    assert isinstance(error, InputError)
    assert "says nothing of sessions" in str(error)


def test_windowed_models_are_marked(log: str) -> None:
    found = answer(log, "--model", "gemma-3-27b", "--memory", "1")
    assert found["runs"][0]["tokens"] == ((1 << 30) // (81920 * 16) - 1) * 16
    assert any("upper bound" in note for note in found["notes"])
