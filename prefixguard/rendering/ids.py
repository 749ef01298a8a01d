"""Token ids of a prompt as int32 arrays: where two of them part.

A rendered prompt holds hundreds of thousands of ids, so nothing here looks at
them one by one: blocks of bytes are compared, and only the block that differs
is halved down to the id.
"""

from __future__ import annotations

from array import array

_BLOCK = 1 << 16
"""Bytes compared at once, a whole number of ids."""


def common_prefix(a: array[int], b: array[int]) -> int:
    """How many ids both arrays begin with. Both must have items of the same size."""
    left, right = memoryview(a).cast("B"), memoryview(b).cast("B")
    length = min(len(left), len(right))
    for start in range(0, length, _BLOCK):
        end = min(start + _BLOCK, length)
        block, other = bytes(left[start:end]), bytes(right[start:end])
        if block != other:
            return (start + _first_difference(block, other)) // a.itemsize
    return length // a.itemsize


def _first_difference(a: bytes, b: bytes) -> int:
    """Offset of the first byte that differs, of two unequal strings of one length."""
    low, high = 0, len(a)
    while high - low > 1:
        middle = (low + high) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle
    return low
