"""The metadata of a GGUF file as a Model, the way llama.cpp reads it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from prefixguard.errors import InputError
from prefixguard.kv.architectures import Architecture, ArchitectureTable, LayerWord, pattern
from prefixguard.kv.fields import Fields
from prefixguard.kv.shape import Cache, Model, StatePart


def read_metadata(source: str, metadata: Mapping[str, Any], table: ArchitectureTable, weights: int) -> Model:
    """The model that a GGUF file holds. weights: the file's size in bytes.

    Raises InputError naming the field that is missing, wrong or not known.
    """
    name = metadata.get("general.architecture")
    if not isinstance(name, str):
        raise InputError(f"{source}: has no general.architecture: not a language model")
    prefix = name + "."
    inner = {key.removeprefix(prefix): value for key, value in metadata.items() if key.startswith(prefix)}
    fields = Fields(source, inner)
    row = table.by_gguf(name) or Architecture()
    count = fields.layers("block_count") - (fields.integer("nextn_predict_layers") or 0)
    words = _layer_words(fields, row, count)
    owners = count - (fields.integer("attention.shared_kv_layers") or 0)
    layers = tuple(_layer(fields, row, words[i], i) for i in range(count) if i < owners)
    notes = [row.note] if row.note else []
    if owners < count:
        notes.append(f"{count - owners} layers read another layer's cache and keep none of their own")
    return Model(
        name=str(metadata.get("general.name") or source),
        layers=tuple(layer for layer in layers if layer),
        layer_count=count,
        query_heads=max(_by_layer(fields, "attention.head_count", count) or [0]),
        context=fields.integer("context_length"),
        weights=weights,
        weights_from="size of the GGUF file",
        notes=tuple(notes),
    )


def _layer_words(fields: Fields, row: Architecture, count: int) -> list[LayerWord]:
    heads = _by_layer(fields, "attention.head_count_kv", count)
    recurrent = fields.integer("ssm.state_size", "wkv.head_size", "shortconv.l_cache")
    interval = fields.integer("full_attention_interval")
    if interval and recurrent:
        return pattern(Architecture(every=interval, between="linear"), count)
    if recurrent and heads is not None and 0 in heads:
        return ["full" if h else "linear" for h in heads]
    if recurrent and row.defaults.get("block_types") == ["hybrid"]:
        return ["both"] * count
    if recurrent and not heads:
        return ["linear"] * count
    if not fields.integer("attention.sliding_window") and row.chunk is None:
        return ["full"] * count
    said = fields.get("attention.sliding_window_pattern")
    windowed: LayerWord = "chunked" if row.chunk is not None else "sliding"
    if isinstance(said, list) and len(said) >= count:
        return [windowed if flag else "full" for flag in said[:count]]
    if isinstance(said, int) and not isinstance(said, bool) and said > 0:
        return pattern(Architecture(every=said, between=windowed), count)
    if row.every:
        return pattern(row, count)
    return [windowed if row.window == "all" else "full"] * count


def _layer(fields: Fields, row: Architecture, word: LayerWord, i: int) -> tuple[Cache, ...]:
    if word == "linear":
        return (_state(fields),)
    cache = _attention(fields, row, word, i)
    caches = (cache,) if cache.heads else ()
    return (*caches, _state(fields)) if word == "both" else caches


def _attention(fields: Fields, row: Architecture, word: LayerWord, i: int) -> Cache:
    latent = fields.integer("attention.kv_lora_rank")
    if latent:
        rope = fields.needed("rope.dimension_count")
        return Cache("mla", 1, latent + rope, 0, splits=False, latent=latent)
    queries = (_by_layer(fields, "attention.head_count", i + 1) or [0])[i]
    by_layer = _by_layer(fields, "attention.head_count_kv", i + 1)
    heads = by_layer[i] if by_layer else queries
    swa = "_swa" if word == "sliding" else ""
    width = fields.integer(f"attention.key_length{swa}", "attention.key_length")
    if not width:
        width = fields.needed("embedding_length") // max(queries, 1)
    value = fields.integer(f"attention.value_length{swa}", "attention.value_length") or width
    if word == "sliding":
        return Cache("sliding", heads, width, value, window=fields.needed("attention.sliding_window"))
    if word == "chunked":
        window = fields.integer("attention.chunk_size", "attention.sliding_window") or row.chunk
        return Cache("chunked", heads, width, value, window=window)
    return Cache("full", heads, width, value)


def _by_layer(fields: Fields, name: str, count: int) -> list[int] | None:
    """A number per layer: GGUF writes one number where all layers are alike."""
    numbers = fields.numbers(name)
    if numbers is not None:
        if len(numbers) < count:
            raise InputError(f"{fields.source}: {name} speaks of {len(numbers)} layers only")
        return numbers
    one = fields.integer(name)
    return None if one is None else [one] * count


def _state(fields: Fields) -> Cache:
    """The state of a recurrent layer, in llama.cpp's two tensors."""
    width = fields.integer("wkv.head_size")
    embedding = fields.needed("embedding_length")
    if width:
        shifts = fields.integer("token_shift_count") or 2
        parts = (StatePart(shifts * embedding, "convolution"), StatePart(embedding * width, "recurrence"))
        return Cache("linear", state=parts)
    short = fields.integer("shortconv.l_cache")
    if short:
        return Cache("linear", state=(StatePart(embedding * (short - 1), "convolution"),))
    inner, state = fields.needed("ssm.inner_size"), fields.needed("ssm.state_size")
    groups = fields.integer("ssm.group_count") or 0
    kept = max((fields.integer("ssm.conv_kernel") or 1) - 1, 0)
    return Cache(
        "linear",
        state=(
            StatePart(kept * (inner + 2 * groups * state), "convolution"),
            StatePart(inner * state, "recurrence"),
        ),
    )
