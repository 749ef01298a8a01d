"""One request, told twice: an SDK's own span inside that of a framework. The one that says more counts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from prefixguard.exchange import Capture
from prefixguard.importers.told import Told
from prefixguard.partial import PROMPT

_HELD = 1024
_HELD_BYTES = 128 * 2**20


@dataclass(slots=True)
class _Call:
    capture: Capture
    lost: tuple[str, ...]
    parent: str

    @property
    def weight(self) -> tuple[bool, int]:
        return PROMPT not in self.lost, -len(self.lost)


class Nested:
    """Holds the latest calls back until their parents, which end later, must have come."""

    def __init__(self, told: Told) -> None:
        self._told = told
        self._held: dict[str, _Call] = {}
        self._children: dict[str, str] = {}
        self._size = 0

    def add(self, name: str, parent: str, capture: Capture, lost: tuple[str, ...]) -> Iterator[Capture]:
        """Takes a call; gives those that nothing can be nested in any more.

        name, parent: ids of its span and of the span around it, "" where there is none.
        """
        call = _Call(capture, lost, parent)
        other = parent if parent in self._held else self._children.get(name)
        if other is not None and other in self._held:
            self._told.aside["spans that tell a call a second time"] += 1
            if self._held[other].weight >= call.weight:
                return
            del self._held[other]
        self._held[name] = call
        if parent:
            self._children[parent] = name
        self._size += len(capture.body)
        while len(self._held) > _HELD or self._size > _HELD_BYTES:
            yield self._let_go(next(iter(self._held)))

    def rest(self) -> Iterator[Capture]:
        """Gives those that are left."""
        while self._held:
            yield self._let_go(next(iter(self._held)))

    def _let_go(self, name: str) -> Capture:
        call = self._held.pop(name)
        self._children.pop(call.parent, None)
        self._size -= len(call.capture.body)
        self._told.took(call.lost)
        return call.capture
