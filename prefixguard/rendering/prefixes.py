"""Lengths of common prefixes and suffixes of texts, by halving: long equal parts cost a comparison in C."""

from __future__ import annotations


def shared_characters(a: str, b: str) -> int:
    """How many characters two texts share from the start."""
    n = min(len(a), len(b))
    if a[:n] == b[:n]:
        return n
    low, high = 0, n
    while high - low > 1:
        middle = (low + high) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle
    return low


def shared_suffix(a: str, b: str) -> int:
    """How many characters two texts share at the end."""
    n = min(len(a), len(b))
    low, high = 0, n + 1
    while high - low > 1:
        middle = (low + high) // 2
        if a[len(a) - middle : len(a) - low] == b[len(b) - middle : len(b) - low]:
            low = middle
        else:
            high = middle
    return low
