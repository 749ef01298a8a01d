"""`bench.gpu` on a machine without a GPU: one line and exit code 2; and the tables that it writes."""

from __future__ import annotations

import datetime
import subprocess
import sys
from pathlib import Path

from bench.gpu.measuring import Memory, Served, Timed, tables, where
from prefixguard.trial import EngineFacts, MeasuredTurn, Trial

ROOT = Path(__file__).parents[1]


def test_without_a_gpu_it_says_so_and_measures_nothing(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "bench.gpu", "--output", str(tmp_path / "r.md")],
        cwd=ROOT, capture_output=True, text=True, env={"PATH": str(tmp_path)}, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert "no NVIDIA GPU" in done.stderr
    assert not (tmp_path / "r.md").exists()


def turn(index: int, ms: float, shape: str, *, broken: bool = False) -> MeasuredTurn:
    return MeasuredTurn(
        index, "s", 0, shape, 100, 0, 0, 0, (0,), "exact", None, "", ms, None, True, is_break=broken
    )


def test_tables_say_card_day_and_what_differs() -> None:
    turns = (
        turn(0, 50, "first"),
        turn(1, 10, "append"),
        turn(2, 30, "append"),
        turn(3, 60, "changed", broken=True),
    )
    trial = Trial(EngineFacts("vllm", "1", "m", "vllm:block=16"), turns, (), None, 1, 0)
    served = Served(
        "vllm 1", "m", "--flag", {"mended": trial}, (Timed(4000, 90.0, 15.0, 91.5),),
        (Memory("blocks", "7", "8", same=False),),
    )  # fmt: skip
    page = tables([served], "CARD 80 GiB", datetime.date(2026, 11, 30))
    assert page.startswith("# CARD 80 GiB, 2026-11-30\n")
    assert "| 4,000 | 90.0 ms | 15.0 ms | 91.5 ms | 6.1 |" in page
    assert "| mended | 4 | 4 of 4 | 50.0 ms | 20.0 ms | 60.0 ms | - |" in page
    assert "| blocks | 7 | 8 | **no** |" in page


def test_a_build_that_leaves_the_card_alone_is_said_to() -> None:
    line = "0.01 I llama_kv_cache:      {} KV buffer size =   {} MiB\n"
    assert where(line.format("CUDA0", "45.00")) == "keys and values on CUDA0"
    first_without_memory = line.format("CPU", "0.00") + line.format("CPU", "45.00")
    assert where("offloaded 31/31 layers to GPU\n" + first_without_memory) == "keys and values on CPU"
    assert where("") == "nobody knows on which device"
