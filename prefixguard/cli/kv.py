"""`prefixguard kv`: the KV memory of a model, and how many sequences fit a GPU."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import click

from prefixguard.cli import completing
from prefixguard.errors import InputError
from prefixguard.kv import (
    GIB,
    MIB,
    ArchitectureTable,
    Formats,
    FormatTable,
    GpuTable,
    Memory,
    Model,
    Workload,
    size,
)
from prefixguard.kv.named import NamedModel
from prefixguard.kv.plan import Engine, EngineOptions, plan
from prefixguard.modelfiles import open_model
from prefixguard.reports.kv import kv_page, kv_to_json, models_table
from prefixguard.reports.text import console
from prefixguard.rulebook import Rulebook

_VLLM_BLOCK = 16


class Exact(click.ParamType[Fraction]):
    """A number of at least 0, kept as it is written: 0.92 is 92/100, not the nearest binary fraction."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Fraction:
        try:
            number = Fraction(str(value))
        except (ValueError, ZeroDivisionError):
            self.fail(f"{value!r} is not a number", param, ctx)
        if number < 0:
            self.fail(f"{value} is below 0", param, ctx)
        return number


_COUNT = click.IntRange(min=1)


@click.command()
@click.argument(
    "model", required=False, shell_complete=completing.models, metavar="[MODEL|CONFIG.json|FILE.gguf]"
)
@click.option("--context", type=_COUNT, help="Tokens of each sequence (the model's own context).")
@click.option("--batch", type=_COUNT, default=1, help="Sequences at once.")
@click.option("--shared-prefix", type=click.IntRange(min=0), default=0, help="Tokens that all begin with.")
@click.option("--kv-dtype", default="fp16", help="fp16, fp8, int8, q8_0, q4_0, nvfp4, 2.5bit ...")
@click.option("--k-dtype", help="Format of the keys, where it differs.")
@click.option("--v-dtype", help="Format of the values, where it differs.")
@click.option("--state-dtype", type=click.Choice(["fp32", "fp16"]), default="fp32", help="Of states.")
@click.option("--tp", type=_COUNT, default=1, help="GPUs that share the model (tensor parallelism).")
@click.option("--block-size", type=_COUNT, help="Tokens per block (1; 16 with --engine vllm).")
@click.option(
    "--gpu", metavar="NAME", shell_complete=completing.cards, help="A card of the table, e.g. H100 or L4."
)
@click.option("--memory", type=Exact(), metavar="GiB", help="Memory of each GPU, not by name.")
@click.option("--utilization", type=Exact(), default="0.92", help="Share that the engine takes.")
@click.option("--weights", type=Exact(), metavar="GiB", help="All weights (the checkpoint).")
@click.option("--reserve", type=Exact(), default="0", metavar="GiB", help="Kept free on each GPU.")
@click.option("--engine", type=click.Choice(["vllm", "llama.cpp"]), help="Add what this engine reserves.")
@click.option(
    "--batched-tokens", type=_COUNT, default=8192,
    help="vLLM: tokens in flight (--max-num-batched-tokens; twice that with asynchronous scheduling).",
)  # fmt: skip
@click.option("--ubatch", type=_COUNT, default=512, help="llama.cpp: micro-batch (-ub).")
@click.option("--swa-full", is_flag=True, help="llama.cpp: whole caches for windowed layers (--swa-full).")
@click.option("--max-length", type=_COUNT, help="What a contiguous allocator would reserve.")
@click.option("--list", "list_", is_flag=True, help="List the known models.")
@click.option("--format", "format_", type=click.Choice(["text", "json"]), default="text")
def command(
    *,
    model: str | None,
    context: int | None,
    batch: int,
    shared_prefix: int,
    kv_dtype: str,
    k_dtype: str | None,
    v_dtype: str | None,
    state_dtype: str,
    tp: int,
    block_size: int | None,
    gpu: str | None,
    memory: Fraction | None,
    utilization: Fraction,
    weights: Fraction | None,
    reserve: Fraction,
    engine: Engine | None,
    batched_tokens: int,
    ubatch: int,
    swa_full: bool,
    max_length: int | None,
    list_: bool,
    format_: str,
) -> None:
    """Bytes of keys and values, exactly: per token, per sequence, and what fits a GPU.

    \b
    Examples:
      prefixguard kv llama-3.1-8b --context 8192 --batch 32
      prefixguard kv ./model/config.json --context 131072 --tp 2 --gpu H100 --engine vllm
      prefixguard kv model.gguf --context 8192 --k-dtype q8_0 --v-dtype q4_0 --engine llama.cpp
      prefixguard kv --list
    """
    rulebook = Rulebook()
    table = rulebook.table("kv-formats", FormatTable)
    if list_:
        _list(rulebook, table)
        return
    if model is None:
        raise InputError("kv: name a model, a config.json or a GGUF file; `prefixguard kv --list` names all")
    shape = open_model(model, rulebook)
    length = context or shape.context
    if length is None:
        raise InputError(f"{model}: says no context length; give one with --context")
    formats = Formats(
        table.find(k_dtype or kv_dtype), table.find(v_dtype or kv_dtype), state_bytes(state_dtype, engine)
    )
    block = block_size or (_VLLM_BLOCK if engine == "vllm" else 1)
    answer = plan(
        shape, formats, Workload(length, batch, shared_prefix, block), tp=tp,
        memory=_memory(rulebook, shape, gpu, memory, utilization, weights, reserve, tp),
        longest=max_length, engine=engine, options=EngineOptions(batched_tokens, ubatch, swa_full),
    )  # fmt: skip
    if format_ == "json":
        click.echo(kv_to_json(answer), nl=False)
    else:
        console().print(kv_page(answer))


def state_bytes(state_dtype: str, engine: Engine | None) -> dict[str, int]:
    if engine == "llama.cpp":  # keeps both parts of a state in 32 bits
        return {"convolution": 4, "recurrence": 4}
    return {"convolution": 2, "recurrence": 4 if state_dtype == "fp32" else 2}


def _memory(
    rulebook: Rulebook, model: Model, gpu: str | None, memory: Fraction | None, utilization: Fraction,
    weights: Fraction | None, reserve: Fraction, tp: int,
) -> Memory | None:  # fmt: skip
    if gpu is not None and memory is not None:
        raise InputError("kv: give --gpu or --memory, not both")
    if gpu is None and memory is None:
        return None
    if not 0 < utilization <= 1:
        raise InputError(f"kv: --utilization must lie above 0 and not above 1, not {float(utilization):g}")
    total = (
        int(memory * GIB)
        if memory is not None
        else rulebook.table("gpus", GpuTable).find(gpu or "").memory_mib * MIB
    )
    if weights is None and model.weights is None:
        raise InputError(
            f"kv: the size of the weights of {model.name} is not known; give it with --weights GiB"
        )
    all_weights = int(weights * GIB) if weights is not None else model.weights or 0
    return Memory(total, utilization, -(-all_weights // tp), int(reserve * GIB))


def _list(rulebook: Rulebook, table: FormatTable) -> None:
    half = table.find("fp16")
    formats = Formats(half, half, state_bytes("fp32", None))
    rows = []
    architectures = rulebook.table("architectures", ArchitectureTable)
    for named in rulebook.tables("models", NamedModel):
        model = named.model(architectures)
        rows.append((named, model, size(model, formats, Workload(1)).bytes_per_token))
    console().print(models_table(rows))
