"""What a model keeps for each sequence: its caches, layer by layer.

Everything that reads a model (a config.json, a GGUF file, a named model) ends
here; everything that counts bytes begins here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

type CacheKind = Literal["full", "sliding", "chunked", "mla", "index", "linear"]
type AttentionKind = Literal["mha", "mqa", "gqa", "mla", "hybrid", "linear"]
type StateRole = Literal["convolution", "recurrence"]


@dataclass(frozen=True, slots=True)
class StatePart:
    """A block of numbers of fixed size that a linear or recurrent layer keeps per sequence.

    values: how many. role: convolution inputs are kept in the model's own
    type, the recurrence usually in 32 bits. splits: whether tensor
    parallelism divides it.
    """

    values: int
    role: StateRole
    splits: bool = True


@dataclass(frozen=True, slots=True)
class Cache:
    """What one layer keeps for a sequence.

    heads: key-value heads. key, value: numbers per head and entry; `value` is
    0 where values are read from the keys (latent attention). window: the
    tokens that stay visible, None for all. stride: tokens per entry, above 1
    where several tokens are compressed into one. splits: whether tensor
    parallelism divides the heads. latent: the part of `key` that is the
    compressed latent, for formats that pack it in its own way. twins: K and V
    come from one projection, although engines keep both. state: of a layer
    that keeps no entry per token.
    """

    kind: CacheKind
    heads: int = 0
    key: int = 0
    value: int = 0
    window: int | None = None
    stride: int = 1
    splits: bool = True
    latent: int = 0
    twins: bool = False
    state: tuple[StatePart, ...] = ()


@dataclass(frozen=True, slots=True)
class Model:
    """A model as its KV memory sees it.

    layers: one tuple of caches per layer that keeps anything of its own; a
    layer that reads another layer's cache, or keeps none, is left out.
    layer_count: all layers. query_heads: for the name of the attention.
    context: the longest sequence that the model says it takes. weights: bytes
    of the weights, None when nobody said. weights_from: who said so. notes:
    what a reader has to know of the figures.
    """

    name: str
    layers: tuple[tuple[Cache, ...], ...]
    layer_count: int
    query_heads: int
    context: int | None = None
    weights: int | None = None
    weights_from: str = ""
    notes: tuple[str, ...] = ()

    def weighing(self, weights: int | None, source: str) -> Model:
        """The same model with the bytes of its weights, and who says so."""
        return replace(self, weights=weights, weights_from=source)

    @property
    def caches(self) -> tuple[Cache, ...]:
        """Every cache of every layer, in order."""
        return tuple(cache for layer in self.layers for cache in layer)

    @property
    def attention(self) -> AttentionKind:
        """One word for the kind of attention; "hybrid" where layers differ in what they keep."""
        kinds = {cache.kind for cache in self.caches} - {"index"}
        if kinds == {"linear"}:
            return "linear"
        if len(kinds) > 1:
            return "hybrid"
        if kinds == {"mla"}:
            return "mla"
        heads = {cache.heads for cache in self.caches}
        if heads == {1} and self.query_heads != 1:
            return "mqa"
        return "mha" if heads == {self.query_heads} else "gqa"
