"""docs/kv.md against the commands that it shows: transcripts and tables are what they print."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from bench import kv as bench
from prefixguard.cli.kv import command

PAGE = (Path(__file__).parents[2] / "docs/kv.md").read_text(encoding="utf-8")
TRANSCRIPTS = re.findall(r"```console\n\$ prefixguard kv ([^\n]*)\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize(("arguments", "output"), TRANSCRIPTS, ids=[a for a, _ in TRANSCRIPTS])
def test_a_transcript_is_what_the_command_prints(arguments: str, output: str) -> None:
    result = CliRunner().invoke(command, shlex.split(arguments), env={"COLUMNS": "100"})
    assert result.exit_code == 0
    assert [line.rstrip() for line in result.output.splitlines()] == output.splitlines()


def test_the_tables_are_those_of_the_bench(capsys: pytest.CaptureFixture[str]) -> None:
    bench.main()
    printed = capsys.readouterr().out
    assert printed.strip() in PAGE
    assert "no: " not in printed
