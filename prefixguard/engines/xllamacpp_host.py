"""Serves a model with `xllamacpp`, llama.cpp's own HTTP server inside a Python extension.

Runs by itself, in a process of its own: `python xllamacpp_host.py` takes the
few options of `llama-server` that `launch` uses, under the same names.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from pathlib import Path
from typing import Any


def parse(arguments: list[str]) -> argparse.Namespace:
    """The options; a wrong one ends the process with one line, as llama-server does."""
    parser = argparse.ArgumentParser(prog="xllamacpp", allow_abbrev=False)
    parser.add_argument("-m", "--model", required=True)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("-c", "--ctx-size", type=int, dest="n_ctx")
    parser.add_argument("-np", "--parallel", type=int, dest="n_parallel")
    parser.add_argument("-b", "--batch-size", type=int, dest="n_batch")
    parser.add_argument("-ub", "--ubatch-size", type=int, dest="n_ubatch")
    parser.add_argument("-t", "--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--poll", type=int, default=50)
    parser.add_argument("--cache-ram", type=int, dest="cache_ram_mib")
    parser.add_argument("--cache-reuse", type=int, dest="n_cache_reuse")
    parser.add_argument("--ctx-checkpoints", type=int, dest="n_ctx_checkpoints")
    parser.add_argument("-sps", "--slot-prompt-similarity", type=float, dest="slot_prompt_similarity")
    parser.add_argument("--slot-save-path", dest="slot_save_path")
    parser.add_argument("--swa-full", action="store_true", default=None, dest="swa_full")
    parser.add_argument("-ctk", "--cache-type-k", type=_kv_type, dest="cache_type_k")
    parser.add_argument("-ctv", "--cache-type-v", type=_kv_type, dest="cache_type_v")
    parser.add_argument("-fa", "--flash-attn", type=_flash, dest="flash_attn_type")
    parser.add_argument("-lv", "--log-verbosity", type=int, dest="verbosity")
    parser.add_argument("--metrics", action="store_true", default=None, dest="endpoint_metrics")
    parser.add_argument("--jinja", action="store_true", default=None, dest="use_jinja")
    parser.add_argument("--chat-template-file", type=Path)
    return parser.parse_args(arguments)


def _kv_type(name: str) -> Any:
    """A format of keys or values, as ggml numbers it."""
    import xllamacpp

    if name.lower() not in _KV_TYPES:
        raise argparse.ArgumentTypeError(f"unsupported cache type {name}")
    return getattr(xllamacpp.ggml_type, f"GGML_TYPE_{name.upper()}")


def _flash(word: str) -> Any:
    import xllamacpp

    if word not in _FLASH:
        raise argparse.ArgumentTypeError(f"expected on, off or auto, not {word}")
    return getattr(xllamacpp.llama_flash_attn_type, f"LLAMA_FLASH_ATTN_TYPE_{_FLASH[word]}")


# The server takes any number here, and dies of those that it cannot keep.
_KV_TYPES = ("f32", "f16", "bf16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl")
_FLASH = {"on": "ENABLED", "off": "DISABLED", "auto": "AUTO"}
_ELSEWHERE = ("model", "host", "threads", "poll", "chat_template_file")


def parameters(options: argparse.Namespace) -> Any:
    """The server's parameters: its defaults with what was asked for."""
    import xllamacpp

    wanted = xllamacpp.CommonParams()
    wanted.model.path = options.model
    wanted.hostnames = [options.host]
    for threads in (wanted.cpuparams, wanted.cpuparams_batch):
        threads.n_threads = options.threads
        threads.poll = options.poll
    if options.chat_template_file is not None:
        wanted.chat_template = options.chat_template_file.read_text("utf-8")
    for name, value in vars(options).items():
        if name not in _ELSEWHERE and value is not None:
            setattr(wanted, name, value)
    return wanted


def main(arguments: list[str]) -> None:
    """Serves until a signal ends the process."""
    import xllamacpp

    server = xllamacpp.Server(parameters(parse(arguments)))
    print(f"listening on {server.listening_address}", flush=True)
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    signal.pause() if hasattr(signal, "pause") else sys.stdin.read()


if __name__ == "__main__":
    main(sys.argv[1:])
