"""How exact the figures of KV memory and of the block pool are: ours beside those of the engines.

    python -m bench kv
    python -m bench.kv    Markdown tables; docs/kv.md has them

What vLLM and SGLang said was written down by `tests/oracle`, what llama.cpp's
log said stands below.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterable, Sequence
from pathlib import Path

from bench.rows import Row
from prefixguard.caches.blocks import Blocks
from prefixguard.caches.radix import Radix
from prefixguard.kv import ArchitectureTable, Formats, FormatTable, Model, Workload, size
from prefixguard.kv.llamacpp import buffers
from prefixguard.kv.named import NamedModel, find_model
from prefixguard.kv.vllm import admit
from prefixguard.rulebook import Rulebook
from prefixguard.simulate import Keys, Piece, Pool, Request
from tests.kv.shapes import from_config, from_runs
from tests.oracle.agent_requests import SEEDS, case

RULEBOOK = Rulebook()
VLLM = Path(__file__).parents[1] / "fixtures" / "vllm"
SGLANG = VLLM.with_name("sglang")
LOGGED = [
    ("SmolLM2-135M", "f16", "f16", 8192, ["180.00"]),
    ("SmolLM2-135M", "q8_0", "q8_0", 8192, ["95.62"]),
    ("SmolLM2-135M", "q8_0", "q4_0", 8192, ["73.12"]),
    ("SmolLM2-135M", "q4_0", "q4_0", 8192, ["50.62"]),
    ("Gemma-3-270M", "f16", "f16", 4096, ["12.00", "15.00"]),
]
"""(model, K, V, cells, MiB of its buffers) as llama.cpp b10434 logs them."""

SIXTY = {"num_hidden_layers": 60, "num_attention_heads": 32, "num_key_value_heads": 16, "head_dim": 256}


def known(name: str) -> Model:
    found = find_model(RULEBOOK.tables("models", NamedModel), name)
    assert found is not None, name
    return found.model(RULEBOOK.table("architectures", ArchitectureTable))


def formats(key: str, value: str | None = None) -> Formats:
    table = RULEBOOK.table("kv-formats", FormatTable)
    return Formats(table.find(key), table.find(value or key), {"convolution": 2, "recurrence": 4})


def worked_examples() -> list[tuple[str, int, int]]:
    """(what, ours, as published)"""
    llama, kinds = known("Llama-3.1-8B"), (["sliding_attention"] * 4 + ["full_attention"]) * 12
    windowed = from_config(
        model_type="gemma4_text", layer_types=kinds, sliding_window=1024, global_head_dim=256, **SIXTY
    )
    half, one, long = formats("fp16"), Workload(1), Workload(262_144)
    return [
        ("Llama-3.1-8B, 32 x 8,192, fp16", size(llama, half, Workload(8192, 32)).total, 34_359_738_368),
        (
            "Llama-3.1-8B, 32 x 8,192, fp8",
            size(llama, formats("fp8"), Workload(8192, 32)).total,
            17_179_869_184,
        ),
        ("GPT-3, a token", int(size(known("GPT-3"), half, one).bytes_per_token), 4_718_592),
        ("DeepSeek-V3, a token", int(size(known("DeepSeek-V3"), half, one).bytes_per_token), 70_272),
        (
            "60 x 16 x 256, all global",
            size(from_config(model_type="llama", **SIXTY), half, long).total,
            257_698_037_760,
        ),
        ("60 x 16 x 256, 48 of them with a window", size(windowed, half, long).total, 52_344_913_920),
    ]


def vllm_rows() -> Iterable[Sequence[str]]:
    for row in json.loads((VLLM / "rows.json").read_text())["rows"]:
        model = from_config(**row["config"]) if "config" in row else known(row["model"])
        kept = formats(row["dtype"])
        token = size(model, kept, Workload(1), row["tp"]).per_gpu_bytes_per_token
        admission = admit(
            model, kept, length=row["length"], block=row["block"], tp=row["tp"], memory=40 << 30
        )
        name = row["model"] if "config" in row else model.name
        ours = (int(token), admission.num_blocks, f"{admission.concurrency:.2f}")
        theirs = (row["bytes_per_token"], row["num_blocks"], row["concurrency"])
        yield (
            f"{name} tp {row['tp']}", row["dtype"], f"{row['length']:,}", f"{ours[0]:,}", f"{ours[1]:,}",
            f"{ours[2]}x", "yes" if ours == theirs else f"no: {theirs}",
        )  # fmt: skip


def llamacpp_rows() -> Iterable[Sequence[str]]:
    for name, key, value, cells, logged in LOGGED:
        found = buffers(known(name), formats(key, value), context=cells)
        ours = sorted((f"{b.bytes / (1 << 20):.2f}" for b in found), key=float)
        yield (
            name,
            f"{key}/{value}",
            f"{cells:,}",
            " + ".join(ours),
            "yes" if ours == logged else f"no: {logged}",
        )


def oracles() -> Iterable[Sequence[str]]:
    memory = json.loads((VLLM / "memory.json").read_text())
    agreed = 0
    for told in memory["cases"]:
        numbers = {name: told[name] for name in ("block", "length", "batched", "memory")}
        ours = admit(from_runs("", told["layers"]), formats(told["dtype"]), **numbers)
        agreed += (
            ours.num_blocks == told["num_blocks"]
            and abs((ours.concurrency or 0) - told["concurrency"]) < 1e-9
            and sorted(share.layers for share in ours.shares) == told["groups"]
        )
    yield "groups, blocks and concurrency of a model", memory["engine"], f"{agreed} of {len(memory['cases'])}"
    manager = json.loads((VLLM / "manager.json").read_text())
    same = total = 0
    for seed in range(SEEDS):
        for ours_cached, theirs in zip(pooled(seed), manager["seeds"][seed], strict=True):
            same += ours_cached == theirs
            total += 1
    yield "cached tokens of a request (KVCacheManager)", manager["engine"], f"{same:,} of {total:,}"
    radix = json.loads((SGLANG / "radix.json").read_text())
    same = total = 0
    for page in (1, 16):
        for seed in range(SEEDS):
            for ours_cached, theirs in zip(shared(seed, page), radix["pages"][str(page)][seed], strict=True):
                same += ours_cached == theirs
                total += 1
    yield "cached tokens of a request (RadixCache)", radix["engine"], f"{same:,} of {total:,}"


def pooled(seed: int) -> Iterable[int]:
    """Cached tokens of each request of one seed, by our pool."""
    asked = case(seed)
    pool, keys = Pool(asked.blocks, asked.block), Keys(asked.block)
    for one in asked.requests:
        prompt, reply = (tuple(Piece(token, 0, 1) for token in ids) for ids in (one.prompt, one.reply))
        request = Request(0, prompt, reply, len(one.reply), one.salt)
        lease = pool.start(keys(request), request.tokens, request.total)
        assert lease is not None
        pool.finish(lease)
        yield lease.cached


def shared(seed: int, page: int) -> Iterable[int]:
    """Cached tokens of each request of one seed, by our radix tree, or by blocks for larger pages."""
    caches: dict[str | None, Radix | Blocks] = {}
    for number, one in enumerate(case(seed).requests):
        cache = caches.setdefault(one.salt, Radix() if page == 1 else Blocks(page))
        prompt = array("i", one.prompt)
        yield cache.read(prompt)[0]
        cache.observe(number, prompt, array("i", one.reply[:-1]))


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    print("\n| " + " | ".join(columns) + " |")
    print("| " + " | ".join("---" for _ in columns) + " |")
    for row in rows:
        print("| " + " | ".join(row) + " |")


def run() -> list[Row]:
    """For `python -m bench`: how many figures of each table are the published or logged ones."""
    examples = worked_examples()
    counted = [("worked examples, bytes", sum(ours == told for _, ours, told in examples), len(examples))]
    for what, told in (("memory as vLLM says", vllm_rows()), ("buffers as llama.cpp logs", llamacpp_rows())):
        lines = list(told)
        counted.append((what, sum(line[-1] == "yes" for line in lines), len(lines)))
    rows = [Row(what, f"{good} of {of}", "100 %", good == of) for what, good, of in counted]
    for what, engine, agree in oracles():
        good, of = agree.split(" of ")
        rows.append(Row(what, f"{agree} ({engine})", "100 %", good == of))
    return rows


def main() -> None:
    table(
        ["worked example", "bytes", "exact"],
        [
            (what, f"{ours:,}", "yes" if ours == told else f"no: {told:,}")
            for what, ours, told in worked_examples()
        ],
    )
    table(
        ["model", "format", "length", "bytes/token, GPU", "blocks", "concurrency", "as vLLM 0.32"],
        vllm_rows(),
    )
    table(["model", "K/V", "cells", "MiB of buffers", "as llama.cpp logs"], llamacpp_rows())
    table(["held against", "engine", "agree"], oracles())


if __name__ == "__main__":
    main()
