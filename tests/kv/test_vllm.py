"""What vLLM reserves: its own answers, replayed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from prefixguard.kv import Workload, size
from prefixguard.kv.vllm import admit
from tests.kv.shapes import formats, from_runs, known

GIB_40 = 40 << 30
GOLDEN = json.loads((Path(__file__).parents[2] / "fixtures/vllm/memory.json").read_text())

# Measured through vLLM's KVCacheSpec with 40 GiB for KV on each GPU: page bytes of a layer,
# bytes per token and GPU, blocks of the pool, maximum concurrency as it logs it.
ROWS = [
    ("llama-3.1-8b", 1, "bf16", 16, 131072, 65536, 131072, 20480, "2.50"),
    ("llama-3.1-8b", 1, "fp8", 16, 131072, 32768, 65536, 40960, "5.00"),
    ("llama-3.1-8b", 2, "bf16", 16, 131072, 32768, 65536, 40960, "5.00"),
    ("llama-3.1-8b", 2, "fp8", 16, 131072, 16384, 32768, 81920, "10.00"),
    ("llama-3.1-70b", 2, "bf16", 16, 131072, 32768, 163840, 16384, "2.00"),
    ("llama-3.1-70b", 2, "fp8", 16, 131072, 16384, 81920, 32768, "4.00"),
    ("llama-3.1-70b", 16, "bf16", 16, 131072, 8192, 40960, 65536, "8.00"),
    ("llama-3.1-70b", 16, "fp8", 16, 131072, 4096, 20480, 131072, "16.00"),
    ("llama-2-7b", 1, "bf16", 16, 4096, 262144, 524288, 5120, "20.00"),
    ("llama-2-7b", 1, "fp8", 16, 4096, 131072, 262144, 10240, "40.00"),
    ("deepseek-v3", 1, "bf16", 64, 131072, 73728, 70272, 9549, "4.66"),
    ("deepseek-v3", 8, "bf16", 64, 131072, 73728, 70272, 9549, "4.66"),
    ("deepseek-v3", 1, "fp8", 64, 131072, 36864, 35136, 19099, "9.33"),
    ("deepseek-v3", 1, "fp8_ds_mla", 64, 131072, 41984, 40016, 16770, "8.19"),
    ("gemma-3-27b", 1, "bf16", 16, 131072, 131072, 507904, 32768, "2.81"),
    ("gemma-3-27b", 1, "fp8", 16, 131072, 65536, 253952, 65536, "5.62"),
    ("gemma-2-9b", 1, "bf16", 16, 8192, 131072, 344064, 15603, "15.22"),
    ("gemma-2-9b", 1, "fp8", 16, 8192, 65536, 172032, 31207, "30.45"),
    ("gpt-oss-20b", 1, "bf16", 16, 131072, 32768, 49152, 109226, "12.54"),
    ("gpt-oss-20b", 1, "fp8", 16, 131072, 16384, 24576, 218453, "25.07"),
    ("mistral-7b-v0.1", 1, "bf16", 16, 32768, 65536, 131072, 20480, "26.63"),
    ("mistral-7b-v0.1", 1, "fp8", 16, 32768, 32768, 65536, 40960, "53.26"),
]


@pytest.mark.parametrize(
    ("name", "tp", "dtype", "block", "length", "page", "token", "blocks", "logged"), ROWS
)
def test_published_models_take_what_vllm_measures(
    name: str, tp: int, dtype: str, block: int, length: int, page: int, token: int, blocks: int, logged: str
) -> None:
    model, kept = known(name), formats(dtype)
    found = size(model, kept, Workload(length), tp)
    admission = admit(model, kept, length=length, block=block, tp=tp, memory=GIB_40)
    assert found.per_gpu_bytes_per_token == token
    assert page * len(model.caches) == token * block
    assert admission.num_blocks == blocks
    assert f"{admission.concurrency:.2f}" == logged


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
