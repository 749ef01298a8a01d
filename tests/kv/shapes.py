"""Formats and models for the tests of KV memory."""

from __future__ import annotations

from typing import Any

from prefixguard.kv import ArchitectureTable, Cache, Formats, FormatTable, Model, StatePart, read_config
from prefixguard.kv.named import NamedModel, find_model
from prefixguard.rulebook import Rulebook

RULEBOOK = Rulebook()
TABLE = RULEBOOK.table("kv-formats", FormatTable)
ARCHITECTURES = RULEBOOK.table("architectures", ArchitectureTable)
NAMED = RULEBOOK.tables("models", NamedModel)


def formats(key: str = "bf16", value: str | None = None) -> Formats:
    return Formats(TABLE.find(key), TABLE.find(value or key), {"convolution": 2, "recurrence": 4})


def known(name: str) -> Model:
    found = find_model(NAMED, name)
    assert found is not None, name
    return found.model(ARCHITECTURES)


def from_config(**fields: Any) -> Model:
    return read_config("config.json", fields, ARCHITECTURES)


def plain(layers: int, heads: int, width: int, *, queries: int = 32) -> Model:
    """A model that keeps every token in every layer."""
    return Model("plain", ((Cache("full", heads, width, width),),) * layers, layers, queries)


def from_runs(name: str, runs: list[list[Any]]) -> Model:
    """A model from runs of equal layers, as `tests/oracle/memory.py` writes them."""
    layers: list[tuple[Cache, ...]] = []
    for count, one in runs:
        latent = 512 if one["kind"] == "mla" else 0
        state = (StatePart(one["state"], "recurrence"),) if one["state"] else ()
        cache = Cache(
            one["kind"], one["heads"], one["key"], one["value"], window=one["window"],
            splits=one["kind"] != "mla", latent=latent, state=state,
        )  # fmt: skip
        layers += [(cache,)] * count
    return Model(name, tuple(layers), len(layers), 1)
