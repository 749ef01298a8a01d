"""Asks a running server what it says of itself, and hands that to the check-up.

Only looks, unless a probe is allowed: then a few short prompts are evaluated.
"""

from __future__ import annotations

import re
from typing import Any

from prefixguard.checkup import (
    Checkup,
    LlamaCppState,
    SglangState,
    VllmState,
    examine_llamacpp,
    examine_sglang,
    examine_vllm,
)
from prefixguard.engines import attach
from prefixguard.engines.client import JsonClient
from prefixguard.engines.llamacpp import LlamaCpp
from prefixguard.engines.metrics import Metrics
from prefixguard.engines.sglang import Sglang
from prefixguard.engines.vllm import Vllm
from prefixguard.errors import InputError, ServerError
from prefixguard.kv import Formats, FormatTable, Model
from prefixguard.modelfiles import open_model
from prefixguard.rulebook import Rulebook

_PROBE = "prefixguard asks whether this prompt is kept for the next request that begins like it. " * 4


def check_up(
    url: str, *, key: str | None = None, model: str | None = None, probe: bool = False,
    rulebook: Rulebook | None = None,
) -> Checkup:  # fmt: skip
    """The check-up of the server at `url`. Raises ServerError when none of a known kind answers.

    model: a file or name that tells the model's layers, where the server's own
    word leads nowhere. probe: evaluate short prompts to learn what the server
    does not show.
    """
    rules = rulebook or Rulebook()
    engine = attach(url, key=key)
    client = JsonClient(url, key=key, timeout=60.0)
    if isinstance(engine, LlamaCpp):
        shape = _shape(model, engine.properties.model, rules)
        remarks = examine_llamacpp(_llamacpp(engine, client, shape, rules, probe))
        return Checkup(engine.kind, engine.properties.build, engine.url, engine.properties.model, remarks)
    if isinstance(engine, Vllm):
        shape = _shape(model, engine.model, rules)
        remarks = examine_vllm(_vllm(engine, client, shape, probe))
        return Checkup(engine.kind, engine.version, engine.url, engine.model, remarks)
    if isinstance(engine, Sglang):
        shape = _shape(model, str(engine.info.get("model_path") or engine.model), rules)
        remarks = examine_sglang(_sglang(engine, shape))
        return Checkup(engine.kind, engine.version, engine.url, engine.model, remarks)
    raise ServerError(f"{engine.url}: nothing is known of {engine.kind} servers")


def _shape(named: str | None, told: str, rules: Rulebook) -> Model | None:
    if named:
        return open_model(named, rules)
    try:
        return open_model(told, rules) if told else None
    except InputError:
        return None


# llama.cpp -----------------------------------------------------------------------------------------


def _llamacpp(
    engine: LlamaCpp, client: JsonClient, shape: Model | None, rules: Rulebook, probe: bool
) -> LlamaCppState:
    try:
        metrics = Metrics(client.text("/metrics"))
    except ServerError:
        metrics = Metrics("")
    table = rules.table("kv-formats", FormatTable)
    half = table.find("fp16")
    kept, restored = _probed(engine, client) if probe else (None, None)
    return LlamaCppState(
        slots=engine.properties.slots,
        context=engine.properties.context,
        trained=_trained(client),
        held=_held(client),
        evaluated=metrics.sum("llamacpp:prompt_tokens_total"),
        cached=metrics.sum("llamacpp:prompt_tokens_cached_total"),
        deferred=metrics.sum("llamacpp:requests_deferred"),
        busy=metrics.sum("llamacpp:n_busy_slots_per_decode") or None,
        longest=metrics.sum("llamacpp:n_tokens_max"),
        speed=metrics.sum("llamacpp:prompt_tokens_seconds"),
        shape=shape,
        formats=Formats(half, half, {"convolution": 4, "recurrence": 4}),
        tools=engine.properties.capabilities.get("supports_tools"),
        metrics=bool(metrics.rows),
        kept=kept,
        restored=restored,
    )


def _trained(client: JsonClient) -> int | None:
    try:
        models = client.get("/v1/models")
        trained = models["data"][0]["meta"]["n_ctx_train"]
    except (ServerError, LookupError, TypeError):
        return None
    return trained if isinstance(trained, int) else None


def _held(client: JsonClient) -> tuple[int, ...] | None:
    try:
        slots = client.get("/slots")
    except ServerError:
        return None
    if not isinstance(slots, list):
        return None
    counts = [slot.get("n_prompt_tokens") for slot in slots if isinstance(slot, dict)]
    return tuple(count for count in counts if isinstance(count, int))


def _probed(engine: LlamaCpp, client: JsonClient) -> tuple[tuple[int, int] | None, tuple[int, int] | None]:
    """(cached, length) of a prompt asked twice, and of the same after another prompt took its slot."""
    mine = engine.tokenize(_PROBE, begin=False).tolist()
    others = engine.tokenize("~ 0 ", begin=False).tolist() * 40
    slot = engine.properties.slots - 1

    def read(ids: list[int]) -> tuple[int, int] | None:
        body = {"prompt": ids, "n_predict": 1, "id_slot": slot, "temperature": 0}
        before = _cached_so_far(client)
        try:
            answer: Any = client.post("/completion", body)
        except ServerError:
            # Some builds complain of what a model samples; the prompt was evaluated all the same.
            after = _cached_so_far(client)
            return (round(after - before), len(ids)) if before is not None and after is not None else None
        timings = answer.get("timings") if isinstance(answer, dict) else None
        cached = timings.get("cache_n") if isinstance(timings, dict) else None
        return (cached, len(ids)) if isinstance(cached, int) else None

    read(mine)
    kept = read(mine)
    read(others)
    return kept, read(mine)


def _cached_so_far(client: JsonClient) -> float | None:
    try:
        return Metrics(client.text("/metrics")).sum("llamacpp:prompt_tokens_cached_total")
    except ServerError:
        return None


# vLLM ----------------------------------------------------------------------------------------------


def _vllm(engine: Vllm, client: JsonClient, shape: Model | None, probe: bool) -> VllmState:
    metrics = engine.metrics()
    blocks = engine.cache.get("num_gpu_blocks", "")
    return VllmState(
        block=engine.block,
        caching=engine.caching,
        blocks=int(blocks) if blocks.isdecimal() else None,
        longest=engine.longest,
        retention=engine.retention,
        kv_dtype=engine.cache.get("cache_dtype", ""),
        prompts=metrics.sum("vllm:request_prompt_tokens_count"),
        prompt_tokens=metrics.sum("vllm:request_prompt_tokens_sum"),
        queries=metrics.sum("vllm:prefix_cache_queries_total"),
        hits=metrics.sum("vllm:prefix_cache_hits_total"),
        usage=metrics.sum("vllm:kv_cache_usage_perc"),
        preemptions=metrics.sum("vllm:num_preemptions_total"),
        details=_details(engine, client) if probe else None,
        chunked=_chunked(client),
        shape=shape,
    )


def _details(engine: Vllm, client: JsonClient) -> bool | None:
    body = {"model": engine.model, "prompt": "x", "max_tokens": 1}
    try:
        answer = client.post("/v1/completions", body)
    except ServerError:
        return None
    usage = answer.get("usage") if isinstance(answer, dict) else None
    return isinstance(usage, dict) and usage.get("prompt_tokens_details") is not None


def _chunked(client: JsonClient) -> bool | None:
    """What the server's configuration says, where it is in development mode and shows it."""
    try:
        told = client.text("/server_info")
    except ServerError:
        return None
    found = re.search(r"enable_chunked_prefill\W+(True|False|true|false)", told)
    return found[1].lower() == "true" if found else None


# SGLang --------------------------------------------------------------------------------------------


def _sglang(engine: Sglang, shape: Model | None) -> SglangState:
    try:
        metrics = engine.metrics()
    except ServerError:
        metrics = Metrics("")
    info = engine.info
    chunk, host = info.get("chunked_prefill_size"), info.get("enable_hierarchical_cache")
    return SglangState(
        page=engine.page,
        caching=engine.caching,
        reports=engine.reports,
        tokens=engine.tokens,
        longest=engine.longest,
        kv_dtype=str(info.get("kv_cache_dtype") or ""),
        policy=str(info.get("radix_eviction_policy") or ""),
        chunk=chunk if isinstance(chunk, int) else None,
        host=host if isinstance(host, bool) else None,
        metrics=bool(metrics.rows),
        prompts=metrics.sum("sglang:num_requests_total"),
        prompt_tokens=metrics.sum("sglang:prompt_tokens_total"),
        cached=metrics.sum("sglang:cached_tokens_total"),
        usage=metrics.sum("sglang:token_usage"),
        retracted=metrics.sum("sglang:num_retracted_reqs"),
        shape=shape,
    )
