"""What was derived of the exchanges in use lately; the rest is dropped, and derived again when asked for.

A fold keeps every exchange, since a conversation may be taken up again at any
turn. What it derives from one (identities, token positions) is many times as
large as the exchange itself, which shares its segments with its successors.
"""

from __future__ import annotations

from typing import Protocol


class Derived(Protocol):
    """Something that can drop what it derived. size: about how many values that is."""

    @property
    def size(self) -> int: ...

    def pack(self) -> None:
        """Drops what can be derived again."""
        ...


class WorkingSet:
    """The things touched last, up to `capacity` derived values; what falls out is packed."""

    def __init__(self, capacity: int = 500_000) -> None:
        self._capacity = capacity
        self._held = 0
        self._sizes: dict[Derived, int] = {}

    def touch(self, thing: Derived) -> None:
        """Marks a thing as in use."""
        size = self._sizes.pop(thing, None)
        if size is None:
            size = thing.size
            self._held += size
        self._sizes[thing] = size
        while self._held > self._capacity and len(self._sizes) > 1:
            oldest = next(iter(self._sizes))
            self._held -= self._sizes.pop(oldest)
            oldest.pack()
