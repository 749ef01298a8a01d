"""Pools for a model: how many blocks an amount of memory gives in each format and block size."""

from __future__ import annotations

from collections.abc import Iterable

from prefixguard.errors import InputError
from prefixguard.kv import Formats, Model
from prefixguard.kv.sizing import per_token
from prefixguard.simulate.capacity import Setting

HYBRID = (
    "windows and recurrent states are not simulated: their layers keep less than this and can be resumed "
    "in fewer places, so the hit rate is an upper bound"
)


def pools_by_memory(
    model: Model, formats: Iterable[Formats], memories: Iterable[int], blocks: Iterable[int], tp: int = 1
) -> list[Setting]:
    """A pool for each format, amount of memory (bytes on each GPU) and block size. Raises InputError."""
    sizes = list(memories)
    lengths = list(blocks)
    found = []
    for kind in formats:
        # A windowed layer needs next to nothing for a further token of a long prompt.
        kept = [cache for cache in model.caches if cache.window is None and cache.kind != "linear"]
        token = sum(per_token(cache, kind, tp) for cache in kept)
        if not token:
            raise InputError(f"{model.name} has no layer that keeps every token: nothing to simulate")
        found += [
            Setting(block, int(memory // (block * token)), memory, kind.name)
            for memory in sizes
            for block in lengths
        ]
    return found


def pools_by_tokens(tokens: Iterable[int], blocks: Iterable[int]) -> list[Setting]:
    """A pool for each number of tokens and block size; the null block comes on top."""
    lengths = list(blocks)
    return [Setting(block, count // block + 1) for count in tokens for block in lengths]
