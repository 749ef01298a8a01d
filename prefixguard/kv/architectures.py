"""What configurations leave unsaid: defaults and layer patterns by architecture, as data.

`rules/architectures.toml` says, for the model types of Hugging Face and of
GGUF, which layers see a window and what a missing field means.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from prefixguard.rulebook import Dated

type LayerWord = Literal["full", "sliding", "chunked", "linear", "convolution", "both", "indexed", "none"]


class Architecture(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One family of models.

    types: values of `model_type`. gguf: values of `general.architecture`.
    defaults: fields that the published configurations leave out. every: each
    so-many-th layer sees everything (the first of each group with `first`),
    the others are `between`; every_key names the field that overrides it.
    window: whether a `sliding_window` in the configuration holds for all
    layers, or none; "said" follows `use_sliding_window`. chunk: the window of
    chunked layers where the file does not say. note: printed with the result.
    """

    types: tuple[str, ...] = ()
    gguf: tuple[str, ...] = ()
    defaults: Mapping[str, Any] = {}
    every: int | None = None
    first: bool = False
    every_key: str = ""
    between: LayerWord = "sliding"
    window: Literal["all", "never", "said"] = "said"
    chunk: int | None = None
    note: str = ""


class ArchitectureTable(Dated, frozen=True, forbid_unknown_fields=True):
    """`rules/architectures.toml`. words: the names that configurations use for kinds of layers."""

    words: Mapping[LayerWord, tuple[str, ...]]
    architecture: tuple[Architecture, ...]

    def by_type(self, model_type: str) -> Architecture | None:
        """The row for a Hugging Face `model_type`."""
        return next((row for row in self.architecture if model_type in row.types), None)

    def by_gguf(self, name: str) -> Architecture | None:
        """The row for a GGUF `general.architecture`."""
        return next((row for row in self.architecture if name in row.gguf), None)

    def word(self, name: str) -> LayerWord | None:
        """What a configuration's name for a layer means."""
        return next((word for word, names in self.words.items() if name in names), None)


def pattern(row: Architecture, count: int, every: int | None = None) -> list[LayerWord]:
    """The kinds of `count` layers as the row has them; all full where it has no pattern."""
    step = every if every is not None else row.every
    if not step:
        return ["full"] * count
    full = 0 if row.first else step - 1
    return ["full" if i % step == full else row.between for i in range(count)]
