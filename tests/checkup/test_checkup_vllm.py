"""What a check-up says of vLLM."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from prefixguard.checkup import VllmState, examine_vllm
from prefixguard.kv.shape import Cache, Model

FULL = Model("m", ((Cache("full", 1, 64, 64),),), 1, 2)
WINDOWED = replace(FULL, layers=((Cache("sliding", 1, 64, 64, window=128),),))
SOUND = VllmState(
    block=16, caching=True, blocks=10001, longest=8192, retention="None", kv_dtype="fp8", prompts=10,
    prompt_tokens=10000, queries=10000, hits=9000, usage=0.1, preemptions=0, details=True, chunked=True,
)  # fmt: skip


def test_a_sound_server_has_nothing_to_consider() -> None:
    assert {remark.severity for remark in examine_vllm(SOUND)} == {"ok"}


@pytest.mark.parametrize(
    ("topic", "severity", "changes", "figure"),
    [
        ("caching", "problem", {"caching": False}, 'enable_prefix_caching="False"'),
        ("hit-rate", "advice", {"hits": 1000}, "1,000 of 10,000"),
        ("retention", "unknown", {"retention": "0"}, 'retention_interval="0"'),
        ("retention", "advice", {"retention": "0", "shape": WINDOWED}, 'retention_interval="0"'),
        ("retention", "ok", {"retention": "0", "shape": FULL}, 'retention_interval="0"'),
        ("block-size", "problem", {"block": 1024}, "1,000 tokens in a prompt"),
        ("block-size", "advice", {"block": 128}, 'block_size="128"'),
        ("block-size", "unknown", {"prompts": 0}, 'block_size="16"'),
        ("memory", "advice", {"blocks": 600}, "num_gpu_blocks=600"),
        ("preemptions", "problem", {"preemptions": 2}, "num_preemptions_total = 2"),
        ("crowded", "advice", {"usage": 0.95}, "kv_cache_usage_perc = 0.95"),
        ("kv-dtype", "advice", {"kv_dtype": "auto"}, 'cache_dtype="auto"'),
        ("chunked-prefill", "advice", {"chunked": False}, "enable_chunked_prefill=False"),
        ("chunked-prefill", "unknown", {"chunked": None}, "/server_info"),
        ("usage-details", "problem", {"details": False}, "prompt_tokens_details"),
        ("usage-details", "unknown", {"details": None}, "/metrics"),
    ],
)
def test_each_cause_has_its_remark(topic: str, severity: str, changes: dict[str, Any], figure: str) -> None:
    (found,) = [r for r in examine_vllm(replace(SOUND, **changes)) if r.topic == topic]
    assert found.severity == severity
    assert figure in found.figure
