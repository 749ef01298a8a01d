"""What a check-up says of llama.cpp: each remark appears when, and only when, its figure gives cause."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from prefixguard.checkup import LlamaCppState, Remark, examine_llamacpp
from prefixguard.kv import Formats, FormatTable
from prefixguard.kv.shape import Cache, Model
from prefixguard.rulebook import Rulebook

HALF = Rulebook().table("kv-formats", FormatTable).find("fp16")
FORMATS = Formats(HALF, HALF, {"convolution": 4, "recurrence": 4})
FULL = Model("m", ((Cache("full", 1, 64, 64),),), 1, 2, context=8192)
WINDOWED = replace(FULL, layers=(*FULL.layers, *((Cache("sliding", 1, 64, 64, window=128),),) * 5))

SOUND = LlamaCppState(
    slots=1, context=8192, trained=8192, held=(100,), evaluated=200, cached=1800, deferred=0, longest=900,
    speed=500, shape=FULL, formats=FORMATS, tools=True, kept=(99, 100), restored=(99, 100),
)  # fmt: skip


def remark(topic: str, **changes: Any) -> Remark | None:
    found = [r for r in examine_llamacpp(replace(SOUND, **changes)) if r.topic == topic]
    assert len(found) <= 1
    return found[0] if found else None


def test_a_sound_server_has_no_problem() -> None:
    remarks = examine_llamacpp(SOUND)
    assert {r.topic for r in remarks if r.severity != "ok"} == {"slots"}
    assert all(r.figure for r in remarks)


@pytest.mark.parametrize(
    ("topic", "severity", "changes", "figure"),
    [
        ("reuse", "problem", {"kept": (0, 100)}, "asked twice, read 0"),
        ("reuse", "unknown", {"kept": None}, "/props"),
        ("slot-choice", "advice", {"slots": 4}, "total_slots = 4"),
        ("slots-waiting", "problem", {"deferred": 3}, "llamacpp:requests_deferred = 3"),
        ("host-cache", "problem", {"restored": (0, 100)}, "read 0"),
        ("host-cache", "advice", {"restored": (0, 100), "slots": 4}, "read 0"),
        ("host-cache", "unknown", {"restored": None}, "--cache-ram"),
        ("windows", "unknown", {"shape": None}, "model_path"),
        ("windows", "advice", {"shape": WINDOWED}, "5 of 6 layers keep a window of 128 tokens"),
        ("context", "advice", {"trained": 131072}, "256 bytes a token"),
        ("context-full", "problem", {"held": (7700,)}, "7,700 of n_ctx = 8,192"),
        ("context-full", "problem", {"longest": 8000}, "8,000 of n_ctx = 8,192"),
        ("template", "advice", {"tools": False}, "supports_tools = false"),
        ("metrics", "advice", {"metrics": False}, "/metrics"),
        ("hit-rate", "advice", {"cached": 100}, "100 of 300 prompt tokens"),
        ("hit-rate", "unknown", {"cached": 0, "evaluated": 0}, "= 0"),
        ("hit-rate", "unknown", {"cached": None}, "no llamacpp"),
        ("slots-idle", "advice", {"slots": 4, "busy": 1.0}, "n_busy_slots_per_decode = 1"),
    ],
)
def test_each_cause_has_its_remark(topic: str, severity: str, changes: dict[str, Any], figure: str) -> None:
    before, after = remark(topic), remark(topic, **changes)
    assert before is None or before.severity == "ok"
    assert after is not None
    assert after.severity == severity
    assert figure in after.figure
    assert severity == "unknown" or after.todo


def test_the_price_of_whole_windows_is_that_of_the_buffers() -> None:
    found = remark("windows", shape=WINDOWED)
    assert found is not None
    # 8192 cells of 256 bytes a layer; windows of 128 and a batch of 512 take 768 cells.
    now, whole = (8192 + 5 * 768) * 256 / (1 << 20), 6 * 8192 * 256 / (1 << 20)
    assert f"in f16 {now:,.1f} MiB, with --swa-full {whole:,.1f} MiB" in found.figure
