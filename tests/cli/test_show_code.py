"""`show --code`: from a break on the wire to the line of code that made it."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner

from prefixguard.cli import root

SAMPLE = Path(__file__).parent.parent.parent / "fixtures" / "sample-agent"


def test_a_break_is_pointed_at_its_line() -> None:
    log = next((SAMPLE / "recordings" / "broken").glob("*.jsonl"))
    arguments = ["show", str(log), "--code", str(SAMPLE / "desk"), "--format", "json"]
    result = CliRunner().invoke(root, arguments)
    assert result.exit_code == 0, result.output
    turn = json.loads(result.output)["turn"]
    source = next(f["source"] for f in turn["findings"] if f["primary"])
    assert source is not None
    line = Path(source["filename"]).read_text().splitlines()[source["row"] - 1]
    assert "datetime.now()" in line


def test_code_that_is_not_there_is_said_in_a_line() -> None:
    result = CliRunner().invoke(root, ["show", "x.jsonl", "--code", "nowhere/"])
    assert result.exit_code == 2
    assert "nowhere/" in result.output
