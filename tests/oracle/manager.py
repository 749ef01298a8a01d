"""Asks vLLM's KVCacheManager for the cached tokens of random agent requests, and writes them down.

    python tests/oracle/manager.py fixtures/vllm/manager.json

Runs in an environment that has vLLM (see README.md); no model, no GPU.
"""

from __future__ import annotations

import json
import os
import sys
from importlib.metadata import version
from pathlib import Path

os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
sys.path.insert(0, str(Path(__file__).parent))

import torch
from agent_requests import SEEDS, Case, case  # type: ignore[attr-defined]
from vllm.sampling_params import SamplingParams
from vllm.utils.hashing import sha256
from vllm.v1.core.kv_cache_manager import KVCacheManager
from vllm.v1.core.kv_cache_utils import get_request_block_hasher, init_none_hash
from vllm.v1.kv_cache_interface import FullAttentionSpec, KVCacheConfig, KVCacheGroupSpec
from vllm.v1.request import Request


def cached(asked: Case) -> list[int]:
    """Cached tokens of each request of a case, one after the other."""
    spec = FullAttentionSpec(block_size=asked.block, num_kv_heads=1, head_size=8, dtype=torch.bfloat16)
    config = KVCacheConfig(
        num_blocks=asked.blocks, kv_cache_tensors=[], kv_cache_groups=[KVCacheGroupSpec(["layer"], spec)]
    )
    manager = KVCacheManager(
        config, max_model_len=1 << 20, scheduler_block_size=asked.block, hash_block_size=asked.block
    )
    hasher = get_request_block_hasher(asked.block, sha256)
    found = []
    for number, one in enumerate(asked.requests):
        request = Request(
            request_id=str(number),
            prompt_token_ids=list(one.prompt),
            sampling_params=SamplingParams(max_tokens=1 << 20),
            pooling_params=None,
            cache_salt=one.salt,
            block_hasher=hasher,
        )
        blocks, hit, *_ = manager.get_computed_blocks(request)
        found.append(hit)
        fresh = len(one.prompt) - hit
        if manager.allocate_slots(request, fresh, hit, blocks) is None:
            raise SystemExit(f"seed {asked.seed}, request {number}: the prompt does not fit")
        request.num_computed_tokens = len(one.prompt)
        for i, token in enumerate(one.reply):
            request.append_output_token_ids(token)
            if i == len(one.reply) - 1:
                break  # the last sampled token gets no keys and values
            if manager.allocate_slots(request, 1) is None:
                raise SystemExit(f"seed {asked.seed}, request {number}: the reply does not fit")
            request.num_computed_tokens += 1
        manager.free(request)
    return found


def main(path: str) -> None:
    init_none_hash(sha256)
    seeds = [cached(case(seed)) for seed in range(SEEDS)]
    told = {"engine": f"vllm {version('vllm')}", "seeds": seeds}
    Path(path).write_text(json.dumps(told, separators=(",", ":")) + "\n")
    print(f"{sum(map(len, seeds)):,} requests, {sum(map(sum, seeds)):,} cached tokens, {told['engine']}")


if __name__ == "__main__":
    main(sys.argv[1])
