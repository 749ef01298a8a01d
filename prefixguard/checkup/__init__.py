"""A check-up of a running server: what of its settings wastes cache, each with the figure it rests on.

Pure: what a server says of itself in, remarks out. `engines` asks the server.
"""

from prefixguard.checkup.llamacpp import LlamaCppState, examine_llamacpp
from prefixguard.checkup.remark import Checkup, Remark, Severity
from prefixguard.checkup.sglang import SglangState, examine_sglang
from prefixguard.checkup.vllm import VllmState, examine_vllm

__all__ = [
    "Checkup",
    "LlamaCppState",
    "Remark",
    "Severity",
    "SglangState",
    "VllmState",
    "examine_llamacpp",
    "examine_sglang",
    "examine_vllm",
]
