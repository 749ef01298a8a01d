"""A Hugging Face `config.json` as a Model: which layers keep what.

Fields are those of the published configurations, under the names that the
families use; what they leave out comes from `rules/architectures.toml`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from prefixguard.errors import InputError
from prefixguard.kv.architectures import Architecture, ArchitectureTable, LayerWord, pattern
from prefixguard.kv.fields import Fields
from prefixguard.kv.shape import Cache, Model
from prefixguard.kv.states import convolution_cache, state_cache

_INNER = ("text_config", "llm_config", "language_config", "thinker_config")
_NEMOTRON: Mapping[str, LayerWord] = {"M": "linear", "*": "full", "-": "none", "E": "none"}
_TWINS = "K and V of some layers come from one projection; engines still keep both, because only K is rotated"


def read_config(
    source: str, config: Mapping[str, Any], table: ArchitectureTable, name: str | None = None
) -> Model:
    """The model that a configuration describes. `source` names it in complaints.

    Raises InputError naming the field that is missing, wrong or not known.
    """
    config = _language_part(config)
    row = table.by_type(str(config.get("model_type", ""))) or Architecture()
    fields = Fields(source, config, row.defaults)
    count = fields.layers("num_hidden_layers", "n_layer", "n_layers", "num_layers", "num_blocks")
    notes = [row.note] if row.note else []
    words = _layer_words(fields, row, table, count, notes)
    owners = _owners(fields, words)
    layers = tuple(_layer(fields, word, i) for i, word in enumerate(words) if word != "none" and owners[i])
    layers = tuple(layer for layer in layers if layer)
    if any(cache.twins for layer in layers for cache in layer):
        notes.append(_TWINS)
    if not all(owners):
        notes.append(f"{owners.count(False)} layers read another layer's cache and keep none of their own")
    if any(cache.kind == "index" for layer in layers for cache in layer):
        notes.append("the keys by which sparse attention picks its tokens are counted (kind index)")
    return Model(
        name=name or str(config.get("_name_or_path") or source),
        layers=layers,
        layer_count=count,
        query_heads=fields.integer("num_attention_heads", "n_head", "n_heads", "num_heads") or 0,
        context=fields.integer(
            "max_position_embeddings",
            "model_max_length",
            "n_positions",
            "n_ctx",
            "max_sequence_length",
            "seq_length",
        ),
        notes=tuple(notes),
    )


def _language_part(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """The part of a multimodal configuration that describes the language model."""
    for name in _INNER:
        inner = config.get(name)
        if isinstance(inner, dict) and not config.get("num_hidden_layers"):
            return _language_part({"model_type": config.get("model_type", ""), **inner})
    return config


# -- which layer is of which kind --------------------------------------------------------------


def _layer_words(
    fields: Fields, row: Architecture, table: ArchitectureTable, count: int, notes: list[str]
) -> list[LayerWord]:
    said = _said_layers(fields, row, table, count)
    if said is not None:
        if len(said) != count:
            raise InputError(f"{fields.source}: describes {len(said)} layers of {count}")
        return said
    period = fields.integer("attn_layer_period")
    if period:
        offset = fields.integer("attn_layer_offset") or 0
        return ["full" if i % period == offset else "linear" for i in range(count)]
    if row.every:
        every = fields.get(row.every_key) if row.every_key else None
        if isinstance(every, str):  # "LLLG": local and global layers in turn
            return [("full" if every[i % len(every)] == "G" else "sliding") for i in range(count)]
        return pattern(row, count, every if isinstance(every, int) else None)
    window = fields.integer("sliding_window", "sliding_window_size")
    if not window or row.window == "never" or fields.get("use_sliding_window") is False:
        return ["full"] * count
    first = fields.integer("max_window_layers") if fields.get("use_sliding_window") else None
    if first is None and row.window == "said" and fields.get("use_sliding_window") is None:
        notes.append("a window is given without saying for which layers: taken for all of them")
    return ["full" if first is not None and i < first else "sliding" for i in range(count)]


def _said_layers(
    fields: Fields, row: Architecture, table: ArchitectureTable, count: int
) -> list[LayerWord] | None:
    """The kinds of layers where the configuration gives them one by one."""
    names = fields.strings("layer_types", "layers_block_type")
    cycle = fields.strings("block_types", "_block_types")
    if names is None and cycle is not None:
        names = [cycle[i % len(cycle)] for i in range(count)]
    if names is not None:
        return [_word(fields, table, name) for name in names]
    letters = fields.get("hybrid_override_pattern")
    if isinstance(letters, str):
        return [_NEMOTRON.get(letter) or _unknown(fields, letter) for letter in letters]
    ratios = fields.numbers("compress_ratios")
    if ratios is not None:
        return ["sliding" if ratio == 0 else "full" for ratio in ratios[:count]]
    pictures = fields.numbers("hybrid_layer_pattern")
    if pictures is not None:
        return ["sliding" if windowed else "full" for windowed in pictures]
    kinds = fields.numbers("attn_type_list")
    if kinds is not None:
        return ["full" if softmax else "linear" for softmax in kinds]
    rotated = fields.numbers("no_rope_layers")
    if rotated and row.between == "chunked":
        return ["chunked" if turns else "full" for turns in rotated]
    inner = fields.inner("linear_attn_config").numbers("full_attn_layers")
    if inner is not None:
        return ["full" if i + 1 in inner else "linear" for i in range(count)]
    chosen = fields.numbers("attn_layer_indices", "full_attn_idxs")
    if chosen is not None:
        return ["full" if i in chosen else row.between for i in range(count)]
    return None


def _word(fields: Fields, table: ArchitectureTable, name: str) -> LayerWord:
    if name in ("compressed_sparse_attention", "heavily_compressed_attention"):
        return "full"
    return table.word(name) or _unknown(fields, name)


def _unknown(fields: Fields, name: str) -> LayerWord:
    raise InputError(f"{fields.source}: has layers of type {name!r}, whose memory is not known here")


def _owners(fields: Fields, words: list[LayerWord]) -> list[bool]:
    """Whether each layer keeps a cache of its own, or reads that of another."""
    count = len(words)
    shared = fields.integer("num_kv_shared_layers") or 0
    factor = fields.integer("cla_share_factor") or 1 if fields.get("use_cla") else 1
    return [i < count - shared and i % max(factor, 1) == 0 for i in range(count)]


# -- what a layer keeps ------------------------------------------------------------------------


def _layer(fields: Fields, word: LayerWord, i: int) -> tuple[Cache, ...]:
    if word == "linear":
        return (state_cache(fields),)
    if word == "convolution":
        return (convolution_cache(fields),)
    if word == "both":
        return (_attention(fields, "full", i), state_cache(fields))
    if fields.get("model_type") == "deepseek_v4" or fields.get("compress_ratios") is not None:
        return _compressed(fields, i)
    if fields.integer("kv_lora_rank") and fields.get("use_mla") is not False:
        return _latent(fields, word)
    cache = _attention(fields, word, i)
    return (cache,) if cache.heads else ()


def _attention(fields: Fields, word: LayerWord, i: int) -> Cache:
    queries = fields.needed("num_attention_heads", "n_head", "n_heads", "num_heads")
    heads = _kv_heads(fields, queries, i)
    width = fields.integer("head_dim", "head_size", "kv_channels")
    if not width:
        width = fields.needed("hidden_size", "n_embd", "d_model", "dim") // queries
    value = fields.integer("v_head_dim") or width
    twins = False
    if word == "sliding":
        heads = fields.integer("swa_num_key_value_heads") or heads
        width = fields.integer("swa_head_dim") or width
        value = fields.integer("swa_v_head_dim") or value
    elif fields.integer("global_head_dim"):
        width = value = fields.needed("global_head_dim")
        twins = fields.get("attention_k_eq_v") is True
        if twins:
            heads = fields.integer("num_global_key_value_heads") or heads
    if word == "sliding":
        window = fields.needed("sliding_window", "sliding_window_size", "attention_window_size")
        return Cache("sliding", heads, width, value, window=window)
    if word == "chunked":
        return Cache("chunked", heads, width, value, window=fields.needed("attention_chunk_size"))
    return Cache("full", heads, width, value, twins=twins)


def _kv_heads(fields: Fields, queries: int, i: int) -> int:
    by_layer = fields.numbers("num_key_value_heads", "num_kv_heads", "n_kv_heads")
    if by_layer is not None:
        if i >= len(by_layer):
            raise InputError(f"{fields.source}: gives key-value heads for {len(by_layer)} layers only")
        return by_layer[i]
    blocks = fields.get("block_configs")
    if isinstance(blocks, list) and i < len(blocks) and isinstance(blocks[i], dict):
        attention = Fields(fields.source, blocks[i]).inner("attention")
        group = attention.integer("n_heads_in_group")
        return queries // group if group else 0
    if fields.get("multi_query") is True and not fields.get("new_decoder_architecture"):
        return 1
    return (
        fields.integer(
            "num_key_value_heads", "num_kv_heads", "n_kv_heads", "n_head_kv", "multi_query_group_num"
        )
        or queries
    )


def _latent(fields: Fields, word: LayerWord) -> tuple[Cache, ...]:
    latent, rope = fields.needed("kv_lora_rank"), fields.needed("qk_rope_head_dim")
    window = fields.needed("sliding_window") if word == "sliding" else None
    cache = Cache("mla", 1, latent + rope, 0, window=window, splits=False, latent=latent)
    index = (
        fields.integer("index_head_dim") if word in ("indexed", "full") and fields.get("index_topk") else None
    )
    return (cache, Cache("index", 1, index, splits=False)) if index else (cache,)


def _compressed(fields: Fields, i: int) -> tuple[Cache, ...]:
    """DeepSeek V4: a window of whole entries in each layer, and in most of them entries for many tokens."""
    width = fields.needed("head_dim")
    near = Cache("sliding", 1, width, 0, window=fields.needed("sliding_window"), splits=False)
    stride = _stride(fields, i)
    if not stride:
        return (near,)
    far = Cache("full", 1, width, 0, stride=stride, splits=False)
    index = fields.integer("index_head_dim") if stride == 4 else None
    return (near, far, Cache("index", 1, index, stride=stride, splits=False)) if index else (near, far)


def _stride(fields: Fields, i: int) -> int:
    ratios = fields.numbers("compress_ratios")
    if ratios is not None:
        return ratios[i]
    names = fields.strings("layer_types")
    if names is None:
        raise InputError(f"{fields.source}: has no compress_ratios: its layers are not known")
    rates = {"compressed_sparse_attention": 4, "heavily_compressed_attention": 128}
    given = fields.get("compress_rates")
    rates |= given if isinstance(given, dict) else {}
    return rates.get(names[i], 0)
