"""Puts captures in the order of their times, as far as they are out of it, without holding a whole file.

Exporters write a request when it ends, or in batches; the analysis wants them
as they were sent.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator

from prefixguard.exchange import Capture

_MOST = 2048
_MOST_BYTES = 256 * 2**20


def in_time_order(
    captures: Iterable[Capture], most: int = _MOST, most_bytes: int = _MOST_BYTES
) -> Iterator[Capture]:
    """The captures by time. At most `most` of them, or `most_bytes` bytes of bodies, are held back."""
    waiting: list[tuple[float, int, Capture]] = []
    size = 0
    for number, capture in enumerate(captures):
        heapq.heappush(waiting, (capture.t, number, capture))
        size += _size(capture)
        while len(waiting) > most or (size > most_bytes and len(waiting) > 1):
            _, _, first = heapq.heappop(waiting)
            size -= _size(first)
            yield first
    while waiting:
        yield heapq.heappop(waiting)[2]


def _size(capture: Capture) -> int:
    return len(capture.body) + len(capture.response_body)
