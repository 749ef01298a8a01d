"""What a vLLM server's `/metrics` (its `cache_config_info` above all) says about its prefix cache."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from prefixguard.checkup.pool import block_size, keeps_less, kept_in, pressure, room
from prefixguard.checkup.remark import Remark, hit_rate
from prefixguard.kv import Model


@dataclass(frozen=True, slots=True)
class VllmState:
    """What the server said. None, and "" for texts, is what it did not say.

    block: tokens per block. blocks: how many it has. longest: tokens of the
    longest sequence that it takes. retention, kv_dtype: as `cache_config_info`
    shows them. prompts, prompt_tokens: requests so far and their tokens.
    queries, hits: tokens looked up and found. usage: share of the blocks in use
    now. preemptions: requests that were put off for want of blocks. details:
    whether usage names cached tokens, where we were allowed to ask. chunked:
    whether long prompts are evaluated in chunks.
    """

    block: int
    caching: bool
    blocks: int | None = None
    longest: int | None = None
    retention: str = ""
    kv_dtype: str = ""
    prompts: float | None = None
    prompt_tokens: float | None = None
    queries: float | None = None
    hits: float | None = None
    usage: float | None = None
    preemptions: float | None = None
    details: bool | None = None
    chunked: bool | None = None
    shape: Model | None = None


def examine_vllm(state: VllmState) -> tuple[Remark, ...]:
    """All remarks, in the order in which they matter."""
    return tuple(
        remark
        for part in (_caching, _retention, _blocks, _memory, _format, _prefill, _details)
        for remark in part(state)
    )


def _caching(state: VllmState) -> Iterator[Remark]:
    figure = f'cache_config_info: enable_prefix_caching="{state.caching}"'
    if not state.caching:
        yield Remark(
            "problem", "caching", "the prefix cache is off: every prompt is evaluated whole", figure,
            "start without --no-enable-prefix-caching",
        )  # fmt: skip
        return
    yield Remark("ok", "caching", "the prefix cache is on", figure)
    yield hit_rate(state.hits, state.queries, "vllm:prefix_cache_hits_total")


def _retention(state: VllmState) -> Iterator[Remark]:
    if state.retention != "0":
        return
    figure = 'cache_config_info: prefix_cache_retention_interval="0"'
    less = keeps_less(state.shape)
    if less is False:
        yield Remark("ok", "retention", "every layer keeps the whole prompt: reuse at any place", figure)
        return
    known = less is not None
    yield Remark(
        "advice" if known else "unknown", "retention",
        ("this model has" if known else "if this model has")
        + " windowed or recurrent layers"
        + (": " if known else ", then ")
        + "a change in the middle of a prompt costs the whole prompt",
        figure,
        "start with --prefix-cache-retention-interval None if the memory is there"
        + ("" if known else "; --model CONFIG.json says which layers it has"),
    )  # fmt: skip


def _blocks(state: VllmState) -> Iterator[Remark]:
    figure = f'cache_config_info: block_size="{state.block}"'
    yield block_size(state.block, state.prompts, state.prompt_tokens, figure, "--block-size")


def _memory(state: VllmState) -> Iterator[Remark]:
    if state.blocks is not None and state.longest:
        figure = f"num_gpu_blocks={state.blocks}, block_size={state.block}, max_model_len={state.longest}"
        todo = "raise --gpu-memory-utilization, use --kv-cache-dtype fp8, or lower --max-model-len"
        yield room((state.blocks - 1) * state.block, state.longest, figure, todo)
    yield from pressure(
        state.preemptions, "vllm:num_preemptions_total", state.usage, "vllm:kv_cache_usage_perc",
        "lower --max-num-seqs, or give the cache more memory",
    )  # fmt: skip


def _format(state: VllmState) -> Iterator[Remark]:
    tokens = (state.blocks - 1) * state.block if state.blocks else None
    figure = f'cache_config_info: cache_dtype="{state.kv_dtype}"'
    yield from kept_in(state.kv_dtype, tokens, figure, "--kv-cache-dtype fp8")


def _prefill(state: VllmState) -> Iterator[Remark]:
    if state.chunked is False:
        yield Remark(
            "advice", "chunked-prefill", "long prompts are evaluated in one piece, and others wait for them",
            "server_info: enable_chunked_prefill=False", "start with --enable-chunked-prefill",
        )  # fmt: skip
    elif state.chunked is None:
        yield Remark(
            "unknown", "chunked-prefill", "whether long prompts are evaluated in chunks is not shown",
            "/server_info answers in development mode only",
        )  # fmt: skip


def _details(state: VllmState) -> Iterator[Remark]:
    if state.details is None:
        yield Remark(
            "unknown", "usage-details", "whether answers name cached tokens was not tried", "not in /metrics",
            "allow it with --probe: one prompt of a few tokens",
        )  # fmt: skip
    elif not state.details:
        yield Remark(
            "problem", "usage-details", "answers do not say how many tokens were read from the cache",
            "usage.prompt_tokens_details is null", "start with --enable-prompt-tokens-details",
        )  # fmt: skip
    else:
        yield Remark(
            "ok", "usage-details", "answers name the cached tokens", "usage.prompt_tokens_details is there"
        )
