"""A trace of hashes says who shares what with whom: simulations find the same hits in it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from prefixguard.analysis import Fold, Options
from prefixguard.cli import root
from prefixguard.exporters.hash_trace import to_rows
from prefixguard.importers import write_log
from prefixguard.importers.hash_trace import read_trace
from prefixguard.rulebook import Rulebook
from prefixguard.simulate import Keys, Piece, Request, Workload, from_hashes, from_sessions
from prefixguard.simulate.play import play
from tests.simulate.agent import exchanges

IMPORTS = Path(__file__).parent.parent.parent / "fixtures" / "imports"


def export(source: Path, target: Path, *options: object) -> list[dict[str, Any]]:
    command = ["export", str(source), "--format", "hash-trace", "-o", str(target), *map(str, options)]
    result = CliRunner().invoke(root, command)
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in target.read_text().splitlines()]


def simulated(source: Path, blocks: str) -> list[dict[str, Any]]:
    result = CliRunner().invoke(
        root,
        [
            "simulate",
            str(source),
            "--tokens",
            "2000,8000,1000000",
            "--block-size",
            blocks,
            "--format",
            "json",
        ],
    )
    assert result.exit_code == 0, result.output
    runs: list[dict[str, Any]] = json.loads(result.stdout)["runs"]
    return runs


FIGURES = ("requests", "prompt_tokens", "cached_tokens", "possible_tokens", "evictions", "hit_rate")


@pytest.mark.parametrize("clock", [False, True])
def test_a_simulation_finds_the_same_hits_in_the_trace(clock: bool, tmp_path: Path) -> None:
    log, trace = tmp_path / "log.jsonl", tmp_path / "trace.jsonl"
    with log.open("wb") as file:
        write_log(exchanges(6, clock=clock), file)
    export(log, trace)
    ours, theirs = simulated(log, "16,32,64"), simulated(trace, "16,32,64")
    assert any(run["cached_tokens"] for run in ours)
    for one, other in zip(ours, theirs, strict=True):
        assert {name: one.get(name) for name in FIGURES} == {name: other.get(name) for name in FIGURES}


def test_mooncakes_own_block_size_makes_rows_of_its_format(tmp_path: Path) -> None:
    rows = export(IMPORTS / "mitmproxy.flow.gz", tmp_path / "t.jsonl", "--block-size", 512)
    for row in rows:
        assert len(row["hash_ids"]) == -(-row["input_length"] // 512)
        assert all(0 <= identity < 2**53 for identity in row["hash_ids"])
    assert [row["timestamp"] for row in rows] == sorted(row["timestamp"] for row in rows)
    assert rows[0]["timestamp"] == 0
    # The second turn shares what the first one filled.
    assert rows[0]["hash_ids"][:2] == rows[1]["hash_ids"][:2]


def test_ids_are_salted(tmp_path: Path) -> None:
    def ids(name: str, *options: object) -> set[int]:
        rows = export(IMPORTS / "langfuse-api.json", tmp_path / name, *options)
        return {identity for row in rows for identity in row["hash_ids"]}

    known = ids("a", "--salt", "s")
    assert known == ids("b", "--salt", "s")
    assert not known & ids("c", "--salt", "t")
    assert not known & ids("d")
    assert not ids("e") & ids("f")


pieces = st.lists(st.tuples(st.integers(0, 4), st.integers(1, 40)), min_size=1, max_size=6)


@given(
    st.lists(st.tuples(pieces, pieces, st.integers(0, 60)), min_size=1, max_size=8),
    st.sampled_from([1, 4, 16]),
)
@settings(max_examples=60, deadline=None)
def test_blocks_are_named_as_the_workload_names_them(
    drawn: list[tuple[list[tuple[int, int]], list[tuple[int, int]], int]], block: int
) -> None:
    def chain(rows: list[tuple[int, int]]) -> tuple[Piece, ...]:
        return tuple(Piece((name, size), 0, size) for name, size in rows)

    requests = [Request(i, chain(p), chain(r), output) for i, (p, r, output) in enumerate(drawn)]
    rows = list(to_rows(requests, [float(i) for i in range(len(requests))], block, b"salt"))
    back = from_hashes(
        "t",
        (
            (
                (*row["hash_ids"], *row["output_hash_ids"]),
                row["input_length"],
                row["reply_length"],
                row["output_length"],
            )
            for row in rows
        ),
        block,
    )
    for size in (block, 2 * block):
        for pool in (8, 64, 4096):
            one = play(Workload("a", tuple(requests), True), pool, Keys(size))
            other = play(back, pool, Keys(size))
            assert (one.prompt, one.cached, one.possible, one.evictions, one.refused) == (
                other.prompt, other.cached, other.possible, other.evictions, other.refused,
            )  # fmt: skip


def test_rows_that_contradict_themselves_are_named(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    rows = export(IMPORTS / "langfuse-api.json", path)
    for change, message in (
        ({"reply_length": 900}, "tokens need .* hashes of 16"),
        ({"block_size": 0}, "a block has one token or more"),
        ({"block_size": 8}, "tokens need"),
    ):
        path.write_text(json.dumps(rows[0]) + "\n" + json.dumps({**rows[1], **change}) + "\n")
        with pytest.raises(Exception, match=rf"t.jsonl:2: .*{message}|t.jsonl:2: {message}"):
            read_trace(path)


def test_only_what_a_server_would_have_cached_is_in_the_trace() -> None:
    fold = Fold(Rulebook(), Options(server="vllm"))
    recorded = from_sessions("x", exchanges(3, clock=False), fold)
    rows = list(to_rows(recorded.sent.requests, [0.0] * len(recorded.sent.requests), 16, b"s"))
    assert sum(row["input_length"] for row in rows) == sum(r.tokens for r in recorded.sent.requests)
