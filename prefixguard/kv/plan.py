"""One question about KV memory answered whole: sizes, what fits, what an engine reserves."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from prefixguard.errors import InputError
from prefixguard.kv import llamacpp, vllm
from prefixguard.kv.fitting import Memory, fitting_sequences
from prefixguard.kv.formats import Formats
from prefixguard.kv.shape import Model
from prefixguard.kv.sizing import Sizes, Workload, size

type Engine = Literal["vllm", "llama.cpp"]


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """batched: tokens in flight in vLLM. micro_batch, whole_windows: llama.cpp's -ub and --swa-full."""

    batched: int = 8192
    micro_batch: int = 512
    whole_windows: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything that is known of a workload's KV memory.

    longest: the length that a contiguous allocator reserves for each sequence.
    contiguous: bytes of that reservation, on one copy; None without a length.
    max_sequences: that fit each GPU; None without a memory size.
    """

    model: Model
    formats: Formats
    work: Workload
    tp: int
    sizes: Sizes
    memory: Memory | None
    max_sequences: int | None
    longest: int | None
    contiguous: int | None
    vllm: vllm.Admission | None = None
    llamacpp: tuple[llamacpp.Buffer, ...] = ()

    @property
    def kept_tokens(self) -> int:
        """Tokens of all sequences, the shared prefix counted once."""
        return self.work.shared + (self.work.context - self.work.shared) * self.work.batch


def plan(
    model: Model, formats: Formats, work: Workload, *, tp: int = 1, memory: Memory | None = None,
    longest: int | None = None, engine: Engine | None = None, options: EngineOptions = EngineOptions(),
) -> Plan:  # fmt: skip
    """Answers a question. `longest` defaults to the model's own context. Raises InputError."""
    if tp < 1:
        raise InputError("--tp must be at least 1")
    sizes = size(model, formats, work, tp)
    for_kv = memory.for_kv if memory is not None else None
    fits = None if for_kv is None else fitting_sequences(sizes, for_kv)
    admission = None
    buffers: tuple[llamacpp.Buffer, ...] = ()
    if engine == "vllm":
        admission = vllm.admit(
            model,
            formats,
            length=work.context,
            block=work.block,
            tp=tp,
            batched=options.batched,
            memory=for_kv,
        )
        fits = admission.sequences
    elif engine == "llama.cpp":
        buffers = llamacpp.buffers(
            model, formats, context=work.context * work.batch, slots=work.batch,
            micro_batch=options.micro_batch, whole_windows=options.whole_windows,
        )  # fmt: skip
    longest = longest or model.context
    reserved = None
    if longest is not None and longest >= work.context:
        whole = replace(
            model, layers=tuple(tuple(replace(c, window=None) for c in layer) for layer in model.layers)
        )
        reserved = work.batch * size(whole, formats, Workload(longest), 1).total
    return Plan(model, formats, work, tp, sizes, memory, fits, longest, reserved, admission, buffers)
