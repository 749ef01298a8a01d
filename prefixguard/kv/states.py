"""The state of a linear or recurrent layer: its size, from the fields of whichever kind the model has."""

from __future__ import annotations

from prefixguard.errors import InputError
from prefixguard.kv.fields import Fields
from prefixguard.kv.shape import Cache, StatePart


def state_cache(fields: Fields) -> Cache:
    """The cache of one linear layer. Raises InputError when the fields fit no kind that is known."""
    for read in (_gated_delta, _kimi_delta, _mamba2, _mamba1, _recurrent_unit, _lightning):
        parts = read(fields)
        if parts is not None:
            return Cache("linear", state=tuple(part for part in parts if part.values))
    raise InputError(f"{fields.source}: the state of its linear layers is of a kind that is not known")


def convolution_cache(fields: Fields) -> Cache:
    """The cache of a short convolution: the last inputs of each channel."""
    kept = fields.needed("conv_L_cache", "shortconv.l_cache") - 1
    width = fields.needed("hidden_size", "embedding_length")
    return Cache("linear", state=(StatePart(kept * width, "convolution"),))


def _gated_delta(fields: Fields) -> tuple[StatePart, ...] | None:
    """Gated delta net (Qwen3-Next and later): one matrix of key width by value width for each value head."""
    value_heads = fields.integer("linear_num_value_heads")
    if not value_heads:
        return None
    key_heads = fields.needed("linear_num_key_heads")
    key, value = fields.needed("linear_key_head_dim"), fields.needed("linear_value_head_dim")
    inputs = 2 * key * key_heads + value * value_heads
    kept = fields.needed("linear_conv_kernel_dim") - 1
    return StatePart(inputs * kept, "convolution"), StatePart(value_heads * key * value, "recurrence")


def _kimi_delta(fields: Fields) -> tuple[StatePart, ...] | None:
    """Kimi delta attention: a square matrix per head, and the inputs of q, k and v."""
    inner = fields.inner("linear_attn_config")
    heads = inner.integer("num_heads") or fields.integer("linear_num_heads")
    if not heads:
        return None
    width = inner.integer("head_dim") or fields.needed("linear_head_dim")
    kernel = inner.integer("short_conv_kernel_size") or fields.integer("linear_conv_kernel_dim") or 4
    return (
        StatePart(3 * heads * width * (kernel - 1), "convolution"),
        StatePart(heads * width * width, "recurrence"),
    )


def _mamba2(fields: Fields) -> tuple[StatePart, ...] | None:
    heads = fields.integer("mamba_num_heads", "mamba_n_heads") or _plain_mamba2_heads(fields)
    state = fields.integer("ssm_state_size", "mamba_d_state", "state_size")
    if not heads or not state:
        return None
    width = fields.get("mamba_head_dim", "mamba_d_head")
    if not isinstance(width, int):
        inner = fields.integer("mamba_d_ssm") or _inner(fields)
        width = inner // heads
    groups = fields.integer("mamba_n_groups", "n_groups") or 1
    kept = fields.needed("conv_kernel", "mamba_d_conv") - 1
    inputs = heads * width + 2 * groups * state
    return StatePart(inputs * kept, "convolution"), StatePart(heads * width * state, "recurrence")


def _plain_mamba2_heads(fields: Fields) -> int | None:
    """A pure Mamba-2 model calls its heads just heads."""
    return fields.integer("num_heads") if fields.get("model_type") == "mamba2" else None


def _mamba1(fields: Fields) -> tuple[StatePart, ...] | None:
    state = fields.integer("mamba_d_state", "state_size")
    if not state:
        return None
    inner = _inner(fields)
    kept = fields.needed("mamba_d_conv", "conv_kernel") - 1
    return StatePart(inner * kept, "convolution"), StatePart(inner * state, "recurrence")


def _inner(fields: Fields) -> int:
    expand = fields.integer("mamba_expand", "expand") or 2
    return fields.integer("intermediate_size_mamba") or expand * fields.needed("hidden_size", "d_model")


def _recurrent_unit(fields: Fields) -> tuple[StatePart, ...] | None:
    """The gated linear recurrent unit of Griffin: one number per channel."""
    kernel = fields.integer("conv1d_width")
    if not kernel:
        return None
    width = fields.integer("lru_width") or fields.needed("hidden_size")
    return StatePart(width * (kernel - 1), "convolution"), StatePart(width, "recurrence")


def _lightning(fields: Fields) -> tuple[StatePart, ...] | None:
    """Lightning attention (MiniMax-01, Bailing): a square matrix per query head, no convolution."""
    heads = fields.integer("num_attention_heads")
    if not heads:
        return None
    width = fields.integer("head_dim") or fields.needed("hidden_size") // heads
    return (StatePart(heads * width * width, "recurrence"),)
