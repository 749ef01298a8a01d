"""Formats of keys and values on a real server: its log's buffers, its replies, its distributions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from prefixguard.cli.measure_kv import command
from prefixguard.engines.kv_types import pairs
from prefixguard.errors import InputError
from prefixguard.importers import write_log
from tests.real.conftest import TEMPLATES, Servers
from tests.real.recorded import recorded


def test_names_become_pairs() -> None:
    assert pairs(["q8_0", "Q4_0/q8_0", "f16", "q8_0"]) == [
        ("q8_0", "f16"), ("f16", "q8_0"), ("q8_0", "q8_0"), ("q4_0", "q8_0"),
    ]  # fmt: skip
    with pytest.raises(InputError, match=r"'q3'.*q8_0"):
        pairs(["q3"])


@pytest.fixture(scope="module")
def told(servers: Servers, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, object]]:
    """Two recorded prompts, 6 tokens of each reply, all of the tiny vocabulary."""
    log = tmp_path_factory.mktemp("log") / "log.jsonl"
    with log.open("wb") as file:
        write_log(recorded(2), file)
    done = CliRunner().invoke(
        command,
        [
            str(servers.model), "--types", "f32/f32,q8_0,q4_0/f16", "--prompts", str(log),
            "--reply-tokens", "6", "--probabilities", "0", "--context", "1024", "--threads", "1",
            "--chat-template", str(TEMPLATES["tools"]), "--format", "json",
        ],
        catch_exceptions=False,
    )  # fmt: skip
    found = json.loads(done.stdout)
    assert found["schema"] == "prefixguard-measure-kv/1"
    assert len(found["prompts"]) == 2
    assert found["positions"] == sum(p["reply_tokens"] for p in found["prompts"]) > 0
    assert [c["format"] for c in found["keys_against_values"]] == ["q8_0"]
    return {f"{row['key']}/{row['value']}": row for row in [found["reference"], *found["formats"]]}


def test_buffers_are_those_that_kv_computes(told: dict[str, dict[str, object]]) -> None:
    """Two layers of one head of 32, 1,024 cells: 0.25 MiB of keys and values in 16 bits."""
    assert all(row["as_computed"] is True for row in told.values())
    sizes = {name: (row["logged_key_mib"], row["logged_value_mib"]) for name, row in told.items()}
    assert sizes["f16/f16"] == (0.12, 0.12)
    assert sizes["f32/f32"] == (0.25, 0.25)
    assert sizes["q8_0/f16"] == (0.07, 0.12)


def test_fewer_bits_move_the_answers_further(told: dict[str, dict[str, object]]) -> None:
    means = {name: row["kl"]["mean"] for name, row in told.items() if "kl" in row}  # type: ignore[index]
    # What 32 and 8 bits do is as small as rounding; four bits stand far above it.
    assert means["q4_0/f16"] > 3 * max(means["f32/f32"], means["q8_0/f16"]) >= 0
    assert all(row["covered"] == pytest.approx(1.0, abs=1e-3) for row in told.values() if "kl" in row)


def test_what_cannot_be_tried_is_said_in_one_line(servers: Servers, tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    with log.open("wb") as file:
        write_log(recorded(1), file)
    done = CliRunner().invoke(
        command, [str(servers.model), "--prompts", str(log), "--context", "256", "--threads", "1"]
    )
    assert isinstance(done.exception, InputError)
    assert "raise --context" in str(done.exception)
    assert "\n" not in str(done.exception)
