"""What vLLM reserves: its own answers, replayed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from prefixguard.kv import Workload, size
from prefixguard.kv.vllm import admit
from tests.kv.shapes import formats, from_config, from_runs, known

GIB_40 = 40 << 30
GOLDEN = json.loads((Path(__file__).parents[2] / "fixtures/vllm/memory.json").read_text())

ROWS = json.loads((Path(__file__).parents[2] / "fixtures/vllm/rows.json").read_text())["rows"]
"""Measured through vLLM's KVCacheSpec and get_kv_cache_configs, 40 GiB for KV on each GPU."""


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['model']} tp {row['tp']} {row['dtype']}")
def test_published_models_take_what_vllm_measures(row: dict[str, Any]) -> None:
    model = from_config(**row["config"]) if "config" in row else known(row["model"])
    kept = formats(row["dtype"])
    found = size(model, kept, Workload(row["length"]), row["tp"])
    admission = admit(model, kept, length=row["length"], block=row["block"], tp=row["tp"], memory=GIB_40)
    assert found.per_gpu_bytes_per_token == row["bytes_per_token"]
    assert row["page_bytes"] * len(model.caches) == row["bytes_per_token"] * row["block"]
    assert admission.num_blocks == row["num_blocks"]
    assert f"{admission.concurrency:.2f}" == row["concurrency"]


@pytest.mark.parametrize("case", GOLDEN["cases"], ids=lambda case: f"{case['name']} {case['dtype']}")
def test_groups_blocks_and_concurrency_are_those_of_vllm(case: dict[str, object]) -> None:
    runs, dtype = case["layers"], case["dtype"]
    assert isinstance(runs, list)
    assert isinstance(dtype, str)
    numbers = {name: case[name] for name in ("block", "length", "batched", "memory")}
    admission = admit(from_runs(str(case["name"]), runs), formats(dtype), **numbers)  # type: ignore[arg-type]
    assert sorted(share.layers for share in admission.shares) == case["groups"]
    assert admission.num_blocks == case["num_blocks"]
    assert admission.concurrency == pytest.approx(case["concurrency"], rel=1e-12)


def test_one_block_is_never_handed_out() -> None:
    admission = admit(known("llama-3.1-8b"), formats("fp8"), length=131072, block=16, tp=2, memory=GIB_40)
    assert admission.concurrency == 10
    assert admission.sequences == 9


def test_without_a_memory_size_nothing_is_said_of_concurrency() -> None:
    admission = admit(known("llama-3.1-8b"), formats(), length=1000, block=16)
    assert (admission.num_blocks, admission.concurrency, admission.sequences) == (None, None, None)
    assert admission.blocks_per_request == 63
    assert admission.bytes_per_request == 63 * 16 * 131072


def test_recurrent_models_reserve_a_state_and_its_checkpoint() -> None:
    # Sums that follow from vLLM 0.29's source for requests of 262,144 tokens, two batches of 8,192 in flight.
    for name, reserved in (
        ("qwen3.8-27b", 17_520_656_384),
        ("qwen3.6-35b-a3b", 5_514_854_400),
        ("nemotron-3-nano-30b-a3b", 1_725_628_416),
        ("gemma-4-31b", 13_637 * 2_621_440),
    ):
        admission = admit(known(name), formats(), length=262144, block=16, batched=16384)
        assert admission.bytes_per_request == reserved, name
