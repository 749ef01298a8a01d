"""A plan of KV memory for readers and for programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import msgspec
from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from prefixguard.kv import Group as LayerGroup
from prefixguard.kv import Model
from prefixguard.kv.named import NamedModel
from prefixguard.kv.plan import Plan
from prefixguard.kv.vllm import Admission
from prefixguard.reports import figures

_ATTENTION = {
    "mha": "multi-head attention",
    "mqa": "multi-query attention",
    "gqa": "grouped-query attention",
    "mla": "latent attention",
    "hybrid": "layers of several kinds",
    "linear": "recurrent layers only",
}
_UNITS = ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


def size_words(count: Fraction | int) -> str:
    """Bytes in the largest unit that leaves at least one: "1.50 GiB"."""
    for unit, name in _UNITS:
        if count >= unit or -count >= unit:
            return f"{float(Fraction(count) / unit):,.2f} {name}"
    return f"{_number(count)} bytes"


def _number(value: int | Fraction) -> str:
    whole = Fraction(value)
    return f"{int(whole):,}" if whole.denominator == 1 else f"{float(whole):,.3f}"


# -- for programs ------------------------------------------------------------------------------


def kv_to_json(plan: Plan) -> bytes:
    """`prefixguard-kv/1`: byte counts are exact whole numbers."""
    return msgspec.json.format(msgspec.json.encode(_fields(plan)), indent=2) + b"\n"


def _fields(plan: Plan) -> dict[str, Any]:
    sizes, work = plan.sizes, plan.work
    fields: dict[str, Any] = {
        "schema": "prefixguard-kv/1",
        "model": plan.model.name,
        "attention": plan.model.attention,
        "layers": plan.model.layer_count,
        "kv_dtype": {"k": plan.formats.key.name, "v": plan.formats.value.name},
        "context": work.context,
        "batch": work.batch,
        "shared_prefix": work.shared,
        "block_size": work.block,
        "tp": plan.tp,
        "bytes_per_token": _plain(sizes.bytes_per_token),
        "growing_bytes_per_token": _plain(sizes.growing),
        "total_bytes": sizes.total,
        "per_gpu_bytes": sizes.per_gpu,
        "per_gpu_bytes_per_token": _plain(sizes.per_gpu_bytes_per_token),
        "per_gpu_sequence_bytes": sizes.sequence,
        "groups": [_group(group) for group in sizes.groups],
        "waste": {
            "rounding_bytes": sizes.rounding,
            "contiguous_length": plan.longest,
            "contiguous_bytes": plan.contiguous,
            "contiguous_waste_bytes": None if plan.contiguous is None else plan.contiguous - sizes.total,
        },
        "sharing_saves_bytes": sizes.unshared - sizes.total,
        "memory": _memory(plan),
        "max_sequences": plan.max_sequences,
        "engine": _engine(plan),
        "notes": list(plan.model.notes),
    }
    return fields


def _plain(value: Fraction) -> int | float:
    return int(value) if value.denominator == 1 else float(value)


def _group(group: LayerGroup) -> dict[str, Any]:
    return {
        "kind": group.kind,
        "layers": group.layers,
        "bytes": group.bytes,
        "bytes_per_token": _plain(group.bytes_per_token),
        "tokens": group.tokens,
        "window": group.window,
        "kv_heads": group.heads,
        "k_width": group.key,
        "v_width": group.value,
        "tokens_per_entry": group.stride,
    }


def _memory(plan: Plan) -> dict[str, Any] | None:
    memory = plan.memory
    if memory is None:
        return None
    return {
        "gpu_bytes": memory.total,
        "utilization": float(memory.utilization),
        "weights_bytes": memory.weights,
        "reserve_bytes": memory.reserve,
        "for_kv_bytes": memory.for_kv,
    }


def _engine(plan: Plan) -> dict[str, Any] | None:
    if plan.vllm is not None:
        return {"name": "vllm", **_admission(plan.vllm)}
    if plan.llamacpp:
        return {
            "name": "llama.cpp",
            "buffers": [
                {"kind": b.kind, "layers": b.layers, "cells": b.cells, "bytes": b.bytes}
                for b in plan.llamacpp
            ],
            "bytes": sum(b.bytes for b in plan.llamacpp),
        }
    return None


def _admission(admission: Admission) -> dict[str, Any]:
    return {
        "block_bytes": admission.block_bytes,
        "groups": [
            {"kind": s.kind, "layers": s.layers, "block_size": s.block, "blocks": s.blocks}
            for s in admission.shares
        ],
        "blocks_per_request": admission.blocks_per_request,
        "bytes_per_request": admission.bytes_per_request,
        "num_blocks": admission.num_blocks,
        "max_concurrency": None if admission.concurrency is None else round(admission.concurrency, 4),
        "by_layout": admission.by_layout,
    }


# -- for readers -------------------------------------------------------------------------------


def kv_page(plan: Plan) -> RenderableType:
    """A plan as a page of text."""
    model = plan.model
    heading = Text(model.name, "bold")
    heading.append(
        f": {_ATTENTION[model.attention]}, {model.layer_count} layers, {plan.formats.name}", "not bold"
    )
    parts: list[RenderableType] = [heading, Text(), _groups_table(plan), Text(), _amounts(plan)]
    if plan.vllm is not None:
        parts += [Text(), _vllm_page(plan.vllm, plan)]
    if plan.llamacpp:
        parts += [Text(), _llamacpp_table(plan)]
    if model.notes:
        parts += [Text(), *(Text(f"Note: {note}.", "dim") for note in model.notes)]
    return Group(*parts)


def _table() -> Table:
    return Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)


def _groups_table(plan: Plan) -> Table:
    table = _table()
    table.add_column("kind", style="bold")
    for name in ("layers", "KV heads", "K + V width", "window", "bytes/token", "tokens kept", "bytes"):
        table.add_column(name, justify="right", no_wrap=True)
    for group in plan.sizes.groups:
        state = group.kind == "linear"
        table.add_row(
            group.kind,
            f"{group.layers:,}",
            figures.NONE if state else f"{group.heads:,}",
            figures.NONE if state else f"{group.key} + {group.value}",
            figures.NONE if group.window is None else f"{group.window:,}",
            figures.NONE if state else _number(group.bytes_per_token),
            "a state" if state else f"{group.tokens:,}",
            f"{group.bytes:,}",
        )
    return table


def _amounts(plan: Plan) -> Table:
    sizes, work = plan.sizes, plan.work
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(justify="right", no_wrap=True)
    grid.add_column(style="dim", overflow="fold")

    def row(label: str, count: int | Fraction, note: str = "") -> None:
        told = [size_words(count)] if count >= 1024 else []
        grid.add_row(label, f"{_number(count)} bytes", "; ".join([*told, *([note] if note else [])]))

    windowed = sizes.growing != sizes.bytes_per_token
    row("One token", sizes.bytes_per_token, "windows counted as if full" if windowed else "")
    if windowed:
        row("One token more", sizes.growing, f"at {work.context:,} tokens, where windows no longer grow")
    label = "One sequence" if work.batch == 1 else f"{work.batch:,} sequences"
    row(f"{label} of {work.context:,}", sizes.total, _shared_words(plan))
    if plan.tp > 1:
        row(f"On each of {plan.tp} GPUs", sizes.per_gpu, _split_words(plan))
    if sizes.rounding:
        row("Of it, block rounding", sizes.rounding, f"blocks of {work.block}")
    if plan.contiguous is not None and plan.longest is not None and plan.longest > work.context:
        without = "what an allocator without pages or windows would take"
        row(f"Reserved at {plan.longest:,}", plan.contiguous, without)
    if plan.memory is not None:
        row("For KV on each GPU", max(plan.memory.for_kv, 0), _memory_words(plan))
        fits = Text(f"{plan.max_sequences:,}", "bold")
        grid.add_row("Sequences that fit", fits, f"of {work.context:,} tokens")
    return grid


def _shared_words(plan: Plan) -> str:
    saved = plan.sizes.unshared - plan.sizes.total
    if not plan.work.shared:
        return ""
    return f"{plan.work.shared:,} tokens shared by all save {size_words(saved)}"


def _split_words(plan: Plan) -> str:
    if plan.sizes.per_gpu * plan.tp > plan.sizes.total:
        return "heads or latents are replicated"
    return ""


def _memory_words(plan: Plan) -> str:
    memory = plan.memory
    assert memory is not None
    share = f"{size_words(memory.total)} x {float(memory.utilization):g}"
    words = f"{share}, less {size_words(memory.weights)} of weights"
    if plan.model.weights_from and memory.weights:
        words += f" ({plan.model.weights_from})"
    if memory.reserve:
        words += f" and {size_words(memory.reserve)} of reserve"
    return words if memory.for_kv > 0 else words + ": the weights do not fit"


def _vllm_page(admission: Admission, plan: Plan) -> RenderableType:
    table = _table()
    table.add_column("vLLM", style="bold")
    for name in ("groups", "layers of each", "block size", "blocks of each for one request"):
        table.add_column(name, justify="right")
    for share, count in Counter(admission.shares).items():
        table.add_row(share.kind, f"{count}", f"{share.layers}", f"{share.block:,}", f"{share.blocks:,}")
    lines = [
        f"vLLM admits a request of {plan.work.context:,} tokens with {admission.blocks_per_request:,} blocks "
        f"of {admission.block_bytes:,} bytes: {admission.bytes_per_request:,} bytes "
        f"({size_words(admission.bytes_per_request)})."
    ]
    if admission.concurrency is not None:
        runs = figures.plural(admission.sequences or 0, "request")
        lines.append(
            f"It has {admission.num_blocks:,} blocks, and logs a maximum concurrency of "
            f"{admission.concurrency:.2f}x; {runs} of that length run at once."
        )
    if admission.by_layout:
        lines.append("Pages differ in size: so vLLM packs them with layers outermost; other layouts differ.")
    return Group(table, Text(), *(Text(line) for line in lines))


def _llamacpp_table(plan: Plan) -> RenderableType:
    table = _table()
    table.add_column("llama.cpp buffers", style="bold")
    for name in ("layers", "cells", "bytes", "MiB"):
        table.add_column(name, justify="right")
    for buffer in plan.llamacpp:
        mib = f"{buffer.bytes / (1 << 20):,.2f}"
        table.add_row(buffer.kind, f"{buffer.layers}", f"{buffer.cells:,}", f"{buffer.bytes:,}", mib)
    return table


def models_table(rows: Iterable[tuple[NamedModel, Model, Fraction]]) -> Table:
    """A line per named model: attention, bytes per token at 16 bits, source."""
    table = _table()
    table.add_column("model", style="bold", no_wrap=True)
    table.add_column("attention", no_wrap=True)
    for name in ("layers", "context", "bytes/token", "weights"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("checked", no_wrap=True)
    table.add_column("source", style="dim", overflow="fold", ratio=1)
    for named, model, per_token in rows:
        table.add_row(
            named.name,
            model.attention,
            str(model.layer_count),
            figures.UNKNOWN if model.context is None else f"{model.context:,}",
            _number(per_token),
            figures.UNKNOWN if model.weights is None else size_words(model.weights),
            Text("yes", "green") if named.verified else Text("no", "yellow"),
            f"{named.source} ({named.date.isoformat()})",
        )
    return table
