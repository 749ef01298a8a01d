"""What llama.cpp allocates at start: the KV buffers that its log names.

Measured on builds 10434 and 11434: cells in multiples of 256, a windowed
cache of window and micro-batch beside the full one, recurrent states in 32
bits per slot.
"""

from __future__ import annotations

from dataclasses import dataclass

from prefixguard.kv.formats import Formats
from prefixguard.kv.shape import CacheKind, Model
from prefixguard.kv.sizing import per_token, state_bytes

_PAD = 256


@dataclass(frozen=True, slots=True)
class Buffer:
    """One cache of llama.cpp. cells: tokens that it has room for, of all slots together."""

    kind: CacheKind
    layers: int
    cells: int
    bytes: int


def buffers(
    model: Model, formats: Formats, *, context: int, slots: int = 1, micro_batch: int = 512,
    whole_windows: bool = False,
) -> tuple[Buffer, ...]:  # fmt: skip
    """The buffers for `context` cells (`-c`), shared by `slots` slots as the unified cache does.

    micro_batch: `-ub`. whole_windows: `--swa-full`.
    """
    cells = -(-context // _PAD) * _PAD
    found: dict[tuple[CacheKind, int], list[int]] = {}
    for cache in model.caches:
        if cache.kind == "linear":
            have, size = slots, slots * state_bytes(cache, formats, 1)
        else:
            have = cells
            if cache.window is not None and not whole_windows:
                have = -(-min(cells, cache.window * slots + micro_batch) // _PAD) * _PAD
            size = int(have * per_token(cache, formats, 1))
        found.setdefault((cache.kind, have), []).append(size)
    return tuple(Buffer(kind, len(sizes), have, sum(sizes)) for (kind, have), sizes in found.items())
