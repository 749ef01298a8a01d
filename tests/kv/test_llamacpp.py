"""llama.cpp's KV buffers, as its log gave them (builds 10434 and 11434)."""

from __future__ import annotations

import pytest

from prefixguard.kv import Cache, Model, StatePart
from prefixguard.kv.llamacpp import buffers
from tests.kv.shapes import formats, known


@pytest.mark.parametrize(
    ("key", "value", "mib"),
    [
        ("f16", "f16", "180.00"),
        ("q8_0", "q8_0", "95.62"),
        ("q8_0", "q4_0", "73.12"),
        ("q4_0", "q4_0", "50.62"),
    ],
)
def test_a_plain_model(key: str, value: str, mib: str) -> None:
    (buffer,) = buffers(known("smollm2-135m"), formats(key, value), context=8192)
    assert f"{buffer.bytes / (1 << 20):.2f}" == mib
    assert (buffer.layers, buffer.cells) == (30, 8192)


def test_a_windowed_model() -> None:
    found = {b.kind: b for b in buffers(known("gemma-3-270m"), formats("f16"), context=4096)}
    assert (found["full"].layers, found["full"].cells, found["full"].bytes) == (3, 4096, 12 << 20)
    assert (found["sliding"].layers, found["sliding"].cells, found["sliding"].bytes) == (15, 1024, 15 << 20)
    (whole,) = {
        b.cells for b in buffers(known("gemma-3-270m"), formats("f16"), context=4096, whole_windows=True)
    }
    assert whole == 4096


def test_a_latent_is_kept_once() -> None:
    latent = Cache("mla", 1, 64 + 16, 0, splits=False, latent=64)
    (buffer,) = buffers(Model("tiny", ((latent,),) * 6, 6, 2), formats("f16"), context=4096)
    assert f"{buffer.bytes / (1 << 20):.2f}" == "3.75"


@pytest.mark.parametrize(
    ("window", "micro_batch", "slots", "cells"),
    [(128, 512, 1, 768), (128, 64, 1, 256), (128, 512, 4, 1024), (9000, 512, 1, 8192)],
)  # fmt: skip
def test_windows_in_multiples_of_256(window: int, micro_batch: int, slots: int, cells: int) -> None:
    model = Model("tiny", ((Cache("sliding", 1, 32, 32, window=window),),), 1, 2)
    (buffer,) = buffers(model, formats("f16"), context=8000, slots=slots, micro_batch=micro_batch)
    assert buffer.cells == cells


def test_each_slot_has_a_state() -> None:
    state = Cache("linear", state=(StatePart(100, "convolution"), StatePart(50, "recurrence")))
    (buffer,) = buffers(Model("tiny", ((state,),) * 2, 2, 2), formats("f16"), context=4096, slots=3)
    assert buffer.bytes == 2 * 3 * (100 * 2 + 50 * 4)
