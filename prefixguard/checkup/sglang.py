"""What an SGLang server's `/server_info` and `/metrics` say about its radix tree.

Written from its source (0.5.23); no running server has been examined.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from prefixguard.checkup.pool import block_size, keeps_less, kept_in, pressure, room
from prefixguard.checkup.remark import Remark, hit_rate
from prefixguard.kv import Model


@dataclass(frozen=True, slots=True)
class SglangState:
    """What the server said. None, and "" for texts, is what it did not say.

    page: tokens per page. reports: whether usage names cached tokens. tokens:
    that the cache holds. longest: tokens of the longest sequence. policy: whom
    it evicts. chunk: tokens of one prefill, below 0 for no limit. host: whether
    evicted pages go to host memory. metrics: whether `/metrics` answers.
    prompts, prompt_tokens, cached: requests so far, their tokens, those read.
    usage: share of the cache in use now. retracted: requests put off.
    """

    page: int
    caching: bool
    reports: bool
    tokens: int | None = None
    longest: int | None = None
    kv_dtype: str = ""
    policy: str = ""
    chunk: int | None = None
    host: bool | None = None
    metrics: bool = True
    prompts: float | None = None
    prompt_tokens: float | None = None
    cached: float | None = None
    usage: float | None = None
    retracted: float | None = None
    shape: Model | None = None


def examine_sglang(state: SglangState) -> tuple[Remark, ...]:
    """All remarks, in the order in which they matter."""
    return tuple(
        remark
        for part in (_caching, _layers, _pages, _memory, _policy, _prefill, _reports)
        for remark in part(state)
    )


def _caching(state: SglangState) -> Iterator[Remark]:
    figure = f"server_info: disable_radix_cache={not state.caching}"
    if not state.caching:
        yield Remark(
            "problem", "caching", "the prefix cache is off: every prompt is evaluated whole", figure,
            "start without --disable-radix-cache",
        )  # fmt: skip
        return
    yield Remark("ok", "caching", "the prefix cache is on", figure)
    if not state.metrics:
        yield Remark(
            "advice", "metrics", "the server counts nothing for others to see", "/metrics is switched off",
            "start with --enable-metrics",
        )  # fmt: skip
        return
    yield hit_rate(state.cached, state.prompt_tokens, "sglang:cached_tokens_total")


def _layers(state: SglangState) -> Iterator[Remark]:
    less = keeps_less(state.shape)
    if less:
        yield Remark(
            "unknown", "windows",
            "this model has windowed or recurrent layers: what a change in the middle costs was not measured",
            "the model's layers", "measure it: `prefixguard measure LOG --server URL`",
        )  # fmt: skip
    elif less is False:
        yield Remark("ok", "windows", "every layer keeps the whole prompt: reuse at any place", "its layers")


def _pages(state: SglangState) -> Iterator[Remark]:
    figure = f"server_info: page_size={state.page}"
    if state.page == 1:
        yield Remark("ok", "block-size", "prefixes are shared token by token", figure)
    else:
        yield block_size(state.page, state.prompts, state.prompt_tokens, figure, "--page-size")


def _memory(state: SglangState) -> Iterator[Remark]:
    if state.tokens and state.longest:
        figure = f"max_total_num_tokens={state.tokens}, the longest sequence {state.longest}"
        todo = "raise --mem-fraction-static, use --kv-cache-dtype fp8_e5m2, or lower --context-length"
        yield room(state.tokens, state.longest, figure, todo)
    yield from pressure(
        state.retracted, "sglang:num_retracted_reqs", state.usage, "sglang:token_usage",
        "lower --max-running-requests, or give the cache more memory",
    )  # fmt: skip
    if state.host is False and state.retracted:
        yield Remark(
            "advice", "host-cache", "what is evicted is lost", "server_info: enable_hierarchical_cache=False",
            "try --enable-hierarchical-cache",
        )  # fmt: skip
    yield from kept_in(
        state.kv_dtype, state.tokens, f"server_info: kv_cache_dtype={state.kv_dtype}",
        "--kv-cache-dtype fp8_e5m2",
    )  # fmt: skip


def _policy(state: SglangState) -> Iterator[Remark]:
    if state.policy and state.policy != "lru":
        yield Remark(
            "advice", "eviction", f"the cache evicts by {state.policy}, not what was used least recently",
            f"server_info: radix_eviction_policy={state.policy}",
            "sessions of agents come back: lru suits them",
        )  # fmt: skip


def _prefill(state: SglangState) -> Iterator[Remark]:
    if state.chunk is not None and state.chunk < 0:
        yield Remark(
            "advice", "chunked-prefill", "long prompts are evaluated in one piece, and others wait for them",
            f"server_info: chunked_prefill_size={state.chunk}", "start with --chunked-prefill-size 8192",
        )  # fmt: skip


def _reports(state: SglangState) -> Iterator[Remark]:
    figure = f"server_info: enable_cache_report={state.reports}"
    if state.reports:
        yield Remark("ok", "usage-details", "answers name the cached tokens", figure)
    else:
        yield Remark(
            "problem", "usage-details", "answers do not say how many tokens were read from the cache", figure,
            "start with --enable-cache-report",
        )  # fmt: skip
