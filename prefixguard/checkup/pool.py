"""What vLLM and SGLang have in common: one pool of blocks for all sequences, of which idle ones lose some."""

from __future__ import annotations

from collections.abc import Iterator

from prefixguard.checkup.remark import Remark
from prefixguard.kv import Model

_CROWDED = 0.9
_SIXTEEN_BITS = ("auto", "bfloat16", "float16", "bf16", "fp16")


def keeps_less(shape: Model | None) -> bool | None:
    """Whether some layers keep less than the whole prompt; None when the layers are not known."""
    if shape is None:
        return None
    return bool({cache.kind for cache in shape.caches} & {"sliding", "chunked", "linear"})


def room(tokens: int, longest: int, figure: str, todo: str) -> Remark:
    """How many sequences of the longest kind the pool holds."""
    fits = tokens / longest
    said = f"the cache holds {tokens:,} tokens: {fits:,.1f} sequences of the longest kind"
    if fits < 2:
        return Remark("advice", "memory", said + "; a second session pushes the first one out", figure, todo)
    return Remark("ok", "memory", said, figure)


def pressure(
    put_off: float | None, put_off_figure: str, usage: float | None, usage_figure: str, todo: str
) -> Iterator[Remark]:
    """Requests put off for want of room, and how full the pool is. Figures: names without their values."""
    if put_off:
        yield Remark(
            "problem", "preemptions", f"{put_off:,.0f} requests were put off and evaluated again",
            f"{put_off_figure} = {put_off:g}", todo,
        )  # fmt: skip
    if usage is not None and usage > _CROWDED:
        yield Remark(
            "advice", "crowded", f"{usage:.0%} of the cache is in use by running requests",
            f"{usage_figure} = {usage:g}", "waiting sessions lose their blocks now",
        )  # fmt: skip


def kept_in(kind: str, tokens: int | None, figure: str, option: str) -> Iterator[Remark]:
    """That half the bits would hold twice the tokens. option: that asks for them."""
    if kind in _SIXTEEN_BITS:
        twice = f": fp8 would hold {2 * tokens:,} tokens" if tokens else ""
        yield Remark(
            "advice", "kv-dtype", f"keys and values are kept in 16 bits or more{twice}", figure,
            f"try {option} if sessions are pushed out, and check the answers",
        )  # fmt: skip


def block_size(
    block: int, prompts: float | None, prompt_tokens: float | None, figure: str, option: str
) -> Remark:
    """Half a block against a prompt of average length."""
    if not prompts or prompt_tokens is None:
        return Remark(
            "unknown", "block-size", "no prompt has come yet to compare the block size with", figure
        )
    mean = prompt_tokens / prompts
    lost = block / 2
    figure += f", {mean:,.0f} tokens in a prompt on average"
    todo = f"start with a smaller {option}, where the backend allows it"
    if mean <= block:
        said = "a prompt of average length fills no block, and is never read"
        return Remark("problem", "block-size", said, figure, todo)
    if lost > 0.05 * mean:
        said = f"rounding to blocks loses about {lost:,.0f} tokens a request, {lost / mean:.0%} of a prompt"
        return Remark("advice", "block-size", said, figure, todo)
    return Remark(
        "ok",
        "block-size",
        f"rounding to blocks loses {lost / mean:.1%} of a prompt of average length",
        figure,
    )
