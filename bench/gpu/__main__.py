"""What cached and broken prefixes cost on this machine's GPU, and whether its memory is what `kv` computes.

    python -m bench.gpu                              on a machine with an NVIDIA GPU
    python -m bench.gpu --allow-cpu --engine vllm    the same on the processor, to try the script itself

Finds vLLM and llama.cpp, or installs vLLM into an environment of its own
(--install FOLDER), replays sessions on them, and writes Markdown tables with
date and card. vLLM serves a model of --shape with random weights: times and
memory are those of the shape, no weights are downloaded.
"""

from __future__ import annotations

import argparse
import datetime
import os
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

from bench.gpu.measuring import SHAPES, Served, on_llamacpp, on_vllm, tables
from prefixguard.errors import PrefixGuardError

_PROCESSOR = {
    "VLLM_CPU_OMP_THREADS_BIND": "nobind", "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_ENGINE_READY_TIMEOUT_S": "1800",
}  # fmt: skip
"""What vLLM wants of a machine without a GPU, and with other work."""


def card() -> str | None:
    """The machine's NVIDIA GPUs as their driver names them; None without one."""
    if shutil.which("nvidia-smi") is None:
        return None
    asked = ["nvidia-smi", "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader"]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    found = [" ".join(line.split()) for line in done.stdout.splitlines() if line.strip()]
    return "; ".join(found) if done.returncode == 0 and found else None


def processor() -> str:
    """The machine's processor, for tables that were made without a GPU."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"no GPU; {len(named) or os.cpu_count()} x {named[0] if named else 'processor'}"


def vllm_program(asked: str | None, install: Path | None) -> str | None:
    """vLLM's command: the one named, the one on PATH, the one in `install`, which is made if it has none."""
    if asked is not None or install is None:
        return asked or shutil.which("vllm")
    program = install / "bin" / "vllm"
    if not program.is_file():
        print(f"installing vLLM into {install}", file=sys.stderr)
        venv.create(install, with_pip=True)
        subprocess.run([install / "bin" / "pip", "install", "--quiet", "vllm"], check=True)
    return str(program)


def main() -> int:
    """Prints the tables. Returns the exit status: 2 where nothing could be measured."""
    parser = argparse.ArgumentParser(prog="python -m bench.gpu", description=__doc__.splitlines()[0])
    parser.add_argument("--allow-cpu", action="store_true", help="go on without a GPU")
    parser.add_argument("--engine", choices=["vllm", "llama.cpp"], action="append", help="default: both")
    parser.add_argument("--vllm", metavar="PROGRAM", help="vLLM's command; by default one is found")
    parser.add_argument("--install", type=Path, metavar="FOLDER", help="install vLLM there if need be")
    parser.add_argument("--shape", choices=list(SHAPES), help="8b; tiny without a GPU")
    parser.add_argument("--gguf", type=Path, metavar="FILE", help="for llama.cpp; default: a small model")
    parser.add_argument("--lengths", default=None, metavar="N,N", help="tokens of the prompts that are timed")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--output", type=Path, metavar="FILE", help="write the tables there, too")
    asked = parser.parse_args()
    gpu = card()
    if gpu is None and not asked.allow_cpu:
        print(
            "bench.gpu: no NVIDIA GPU on this machine, nothing was measured (--allow-cpu tries the script)",
            file=sys.stderr,
        )
        return 2
    if gpu is None:
        for name, value in _PROCESSOR.items():
            os.environ.setdefault(name, value)
    shape = asked.shape or ("8b" if gpu else "tiny")
    default = "1000,4000,16000" if gpu else "500,1500"
    lengths = [int(word) for word in (asked.lengths or default).split(",")]
    served: list[Served] = []
    failed = []
    with tempfile.TemporaryDirectory(prefix="bench-gpu-") as folder:
        for engine in asked.engine or ["vllm", "llama.cpp"]:
            try:
                if engine == "llama.cpp":
                    served.append(
                        on_llamacpp(Path(folder), asked.gguf, lengths, asked.repeat, gpu is not None)
                    )
                    continue
                program = vllm_program(asked.vllm, asked.install)
                if program is None:
                    failed.append("vllm: not installed (--install FOLDER)")
                    continue
                served.append(on_vllm(Path(folder), program, shape, lengths, asked.repeat, gpu is not None))
            except (PrefixGuardError, subprocess.CalledProcessError) as error:
                failed.append(f"{engine}: {error}")
    for line in failed:
        print(f"bench.gpu: not measured: {line}", file=sys.stderr)
    if not served:
        return 2
    page = tables(served, gpu or processor(), datetime.date.today())
    print(page, end="")
    if asked.output is not None:
        asked.output.parent.mkdir(parents=True, exist_ok=True)
        asked.output.write_text(page, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
