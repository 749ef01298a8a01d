"""Asks vLLM how it groups layers into pages and blocks, and how many requests it admits; writes that down.

    python tests/oracle/memory.py fixtures/vllm/memory.json

Runs in an environment that has vLLM (see README.md); no model, no GPU. The
layers are given as numbers, so that the tests can build the same model.
"""

from __future__ import annotations

import json
import os
import random
import sys
from importlib.metadata import version
from math import ceil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")

import torch
from vllm.v1.core.kv_cache_utils import (
    get_kv_cache_config_from_groups,
    get_kv_cache_groups,
    get_max_concurrency_for_kv_cache_config,
)
from vllm.v1.kv_cache_interface import (
    ChunkedLocalAttentionSpec,
    FullAttentionSpec,
    MambaSpec,
    MLAAttentionSpec,
    SlidingWindowSpec,
)
from vllm.v1.kv_cache_layout import KVCacheLayout

DTYPES = {"bf16": torch.bfloat16, "fp8": torch.float8_e4m3fn}
MEMORY = 40 << 30
RANDOM_CASES = 120


def layer(
    kind: str, heads: int = 1, key: int = 128, value: int = 128, window: int | None = None
) -> dict[str, Any]:
    return {"kind": kind, "heads": heads, "key": key, "value": value, "window": window, "state": 0}


def state(count: int) -> dict[str, Any]:
    """A recurrent layer whose state has so many 32-bit numbers."""
    return {"kind": "linear", "heads": 0, "key": 0, "value": 0, "window": None, "state": count}


def every(count: int, step: int, full: dict[str, Any], rest: dict[str, Any]) -> list[dict[str, Any]]:
    return [full if i % step == step - 1 else rest for i in range(count)]


def known() -> list[tuple[str, list[dict[str, Any]], int, int]]:
    """(name, layers, block size, length) of models that people serve."""
    gqa = layer("full", 8)
    return [
        ("llama-3.1-8b", [gqa] * 32, 16, 131072),
        ("llama-3.1-70b tp 16", [layer("full", 1)] * 80, 16, 131072),
        ("llama-2-7b", [layer("full", 32)] * 32, 16, 4096),
        ("mqa-7b", [layer("full", 1, 64, 64)] * 32, 16, 2048),
        ("deepseek-v3", [layer("mla", 1, 576, 0)] * 61, 64, 131072),
        ("gemma-3-27b", every(62, 6, layer("full", 16), layer("sliding", 16, window=1024)), 16, 131072),
        ("gemma-2-9b", every(42, 2, layer("full", 8, 256, 256), layer("sliding", 8, 256, 256, 4096)), 16,
         8192),
        ("gpt-oss-20b", every(24, 2, layer("full", 8, 64, 64), layer("sliding", 8, 64, 64, 128)), 16, 131072),
        ("mistral-7b-v0.1", [layer("sliding", 8, window=4096)] * 32, 16, 32768),
        ("llama-4-scout", every(48, 4, gqa, layer("chunked", 8, window=8192)), 16, 131072),
        (
            "gemma-4-31b",
            every(60, 6, layer("full", 4, 512, 512), layer("sliding", 16, 256, 256, 1024)),
            16,
            262144,
        ),
        ("mimo-v2-flash", [
            layer("full", 4, 192, 128) if i == 0 or i % 6 == 5 else layer("sliding", 8, 192, 128, 128)
            for i in range(48)
        ], 16, 131072),
    ]  # fmt: skip


def hybrid() -> list[tuple[str, list[dict[str, Any]], int, int]]:
    """Models with recurrent layers."""
    found = []
    for name, count, step, heads, numbers in (
        ("qwen3-next-80b", 48, 4, 2, 32 * 128 * 128),
        ("qwen3.8-27b", 64, 4, 4, 48 * 128 * 128),
    ):
        full = layer("full", heads, 256, 256)
        found.append((name, every(count, step, full, state(numbers)), 16, 262144))
    return found


def drawn(draw: random.Random) -> tuple[str, list[dict[str, Any]], int, int]:
    """A random model of full, windowed and chunked layers, all of one width or of two."""
    heads, width = draw.choice([1, 2, 4, 8]), draw.choice([64, 128, 256])
    windows = draw.sample([129, 513, 1024, 4096], draw.choice([1, 1, 1, 2]))
    wide = draw.choice([1, 1, 2])
    layers = [layer("full", heads * wide, width, width)] * draw.randint(0, 20)
    for window in windows:
        layers += [layer("sliding", heads, width, width, window)] * draw.randint(0, 40)
    if draw.random() < 0.3:
        layers += [layer("chunked", heads, width, width, 2048)] * draw.randint(1, 20)
    layers = layers or [layer("full", heads, width, width)]
    return "random", layers, draw.choice([16, 32, 128]), draw.choice([1000, 8192, 131072])


def spec(one: dict[str, Any], block: int, dtype: str, padded: int | None) -> Any:
    shared = {
        "block_size": block,
        "num_kv_heads": one["heads"],
        "head_size": one["key"],
        "dtype": DTYPES[dtype],
    }
    if one["kind"] == "linear":
        return MambaSpec(
            block_size=block, shapes=((one["state"],),), dtypes=(torch.float32,), page_size_padded=padded,
            mamba_cache_mode="align",
        )  # fmt: skip
    if one["kind"] == "mla":
        return MLAAttentionSpec(**shared)
    if one["kind"] == "sliding":
        return SlidingWindowSpec(
            **shared, head_size_v=one["value"], sliding_window=one["window"], dcp_sharded=False
        )
    if one["kind"] == "chunked":
        return ChunkedLocalAttentionSpec(
            **shared, head_size_v=one["value"], attention_chunk_size=one["window"], dcp_sharded=False
        )
    return FullAttentionSpec(**shared, head_size_v=one["value"], dcp_sharded=False)


def ask(
    name: str, layers: list[dict[str, Any]], block: int, length: int, dtype: str, batched: int
) -> dict[str, Any]:
    config = SimpleNamespace(
        model_config=SimpleNamespace(max_model_len=length, original_max_model_len=length),
        cache_config=SimpleNamespace(
            num_gpu_blocks_override=None, prefix_cache_retention_interval=None, mamba_cache_mode="align",
            get_resolved_kv_cache_layout=lambda: KVCacheLayout.LBNHC,
        ),
        scheduler_config=SimpleNamespace(disable_hybrid_kv_cache_manager=False),
        parallel_config=SimpleNamespace(decode_context_parallel_size=1, prefill_context_parallel_size=1),
        attention_config=SimpleNamespace(hisparse_config=None),
        speculative_config=None, max_in_flight_tokens=batched, num_prefill_lookahead_tokens=0,
    )  # fmt: skip
    asked = block
    padded = None
    states = [4 * one["state"] for one in layers if one["kind"] == "linear"]
    if states:
        # vLLM's platform makes blocks so long that a page holds a state, and pads the states to it.
        token = max(spec(one, 1, dtype, None).page_size_bytes for one in layers if one["kind"] != "linear")
        block *= ceil(max(states) / (block * token))
        padded = block * token
    specs = {f"layer.{i}": spec(one, block, dtype, padded) for i, one in enumerate(layers)}
    groups = get_kv_cache_groups(config, specs)
    made = get_kv_cache_config_from_groups(config, groups, MEMORY)
    return {
        "name": name,
        "dtype": dtype,
        "layers": packed(layers),
        "block": asked,
        "length": length,
        "batched": batched,
        "memory": MEMORY,
        "groups": sorted(len(group.layer_names) for group in groups),
        "num_blocks": made.num_blocks,
        "concurrency": get_max_concurrency_for_kv_cache_config(config, made),
    }


def packed(layers: list[dict[str, Any]]) -> list[list[Any]]:
    """Runs of equal layers: [count, layer]."""
    runs: list[list[Any]] = []
    for one in layers:
        if runs and runs[-1][1] == one:
            runs[-1][0] += 1
        else:
            runs.append([1, one])
    return runs


def main(path: str) -> None:
    found = []
    for name, layers, block, length in [*known(), *hybrid()]:
        found += [ask(name, layers, block, length, dtype, 8192) for dtype in ("bf16", "fp8")]
    draw = random.Random(1)
    while len(found) < RANDOM_CASES:
        name, layers, block, length = drawn(draw)
        found.append(
            ask(name, layers, block, length, draw.choice(["bf16", "fp8"]), draw.choice([2048, 16384]))
        )
    told = {"engine": f"vllm {version('vllm')}", "cases": found}
    Path(path).write_text(json.dumps(told, separators=(",", ":")) + "\n")
    print(f"{len(found)} models, {told['engine']}")


if __name__ == "__main__":
    main(sys.argv[1])
