"""docs/measure.md names commands, codes and topics that exist."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from prefixguard.checkup import LlamaCppState, VllmState, examine_llamacpp, examine_vllm
from prefixguard.cli.doctor import command as doctor
from prefixguard.cli.measure import command as measure
from prefixguard.rulebook import Rulebook

TEXT = (Path(__file__).parents[2] / "docs/measure.md").read_text(encoding="utf-8")
LINES = re.findall(r"^\$ prefixguard (.+)$", TEXT, re.MULTILINE)


@pytest.mark.parametrize("line", LINES)
def test_every_command_line_is_understood(line: str) -> None:
    name, *arguments = shlex.split(line)
    command = {"measure": measure, "doctor": doctor}[name]
    command.make_context(name, arguments)


def test_every_code_is_in_the_catalogue() -> None:
    known = set(Rulebook().findings)
    named = set(re.findall(r"PG\d{3}", TEXT))
    assert len(named) > 5
    assert named <= known


def test_what_is_shown_nowhere_is_never_claimed() -> None:
    """A server that says nothing gets remarks that call it unknown, and no problem."""
    remarks = (*examine_llamacpp(LlamaCppState(slots=1, context=0)), *examine_vllm(VllmState(16, True)))
    assert not [remark for remark in remarks if remark.severity == "problem"]
    assert sum(remark.severity == "unknown" for remark in remarks) >= 7
