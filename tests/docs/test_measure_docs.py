"""docs/measure.md and docs/kv-quantisation.md name commands, codes and topics that exist."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from prefixguard.checkup import (
    LlamaCppState,
    SglangState,
    VllmState,
    examine_llamacpp,
    examine_sglang,
    examine_vllm,
)
from prefixguard.cli.doctor import command as doctor
from prefixguard.cli.measure import command as measure
from prefixguard.cli.measure_kv import command as measure_kv
from prefixguard.rulebook import Rulebook

DOCS = Path(__file__).parents[2] / "docs"
TEXT = (DOCS / "measure.md").read_text(encoding="utf-8")
BOTH = TEXT + (DOCS / "kv-quantisation.md").read_text(encoding="utf-8")
LINES = re.findall(r"^\$ prefixguard (.+)$", BOTH, re.MULTILINE)


@pytest.mark.parametrize("line", LINES)
def test_every_command_line_is_understood(line: str) -> None:
    name, *arguments = shlex.split(line)
    command = {"measure": measure, "doctor": doctor, "measure-kv": measure_kv}[name]
    command.make_context(name, arguments)


def test_every_code_is_in_the_catalogue() -> None:
    known = set(Rulebook().findings)
    named = set(re.findall(r"PG\d{3}", TEXT))
    assert len(named) > 5
    assert named <= known


def test_what_is_shown_nowhere_is_never_claimed() -> None:
    """A server that says nothing gets remarks that call it unknown, and no problem."""
    remarks = (
        *examine_llamacpp(LlamaCppState(slots=1, context=0)),
        *examine_vllm(VllmState(16, True)),
        *examine_sglang(SglangState(1, True, True)),
    )
    assert not [remark for remark in remarks if remark.severity == "problem"]
    assert sum(remark.severity == "unknown" for remark in remarks) >= 7
