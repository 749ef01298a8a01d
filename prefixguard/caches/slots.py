"""llama.cpp's slots, on exact token ids: a slot holds the last prompt and what was generated behind it.

Rule, measured on builds 10434 and 11549 with `--cache-ram 0`: of several slots
the idle one with the longest share of the new prompt is taken if that share
exceeds 0.1, else the one that was used least recently; cached tokens are
min(common prefix, prompt - 1).
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass

from prefixguard.rendering.ids import common_prefix

_SIMILARITY = 0.1


@dataclass(slots=True)
class _Slot:
    state: array[int]
    index: int | None = None
    used: int = -1
    unseen: int = 0
    """Generated tokens behind `state` whose ids nobody knows."""


class Slots:
    """The slots of one server."""

    def __init__(self, count: int = 1) -> None:
        self._slots = [_Slot(array("i")) for _ in range(max(count, 1))]
        self._clock = 0

    def read(self, prompt: array[int]) -> tuple[int, int | None]:
        """(cached tokens, the exchange whose slot it is) for a prompt that is evaluated next."""
        slot, shared = self._choose(prompt)
        return min(shared, len(prompt) - 1), slot.index

    def possible(self, prompt: array[int]) -> int:
        """Cached tokens if a reply whose ids are unknown comes back as it was generated."""
        slot, shared = self._choose(prompt)
        unseen = slot.unseen if shared == len(slot.state) else 0
        return min(shared + unseen, len(prompt) - 1)

    def _choose(self, prompt: array[int]) -> tuple[_Slot, int]:
        shares = [(common_prefix(slot.state, prompt), slot) for slot in self._slots]
        shared, best = max(shares, key=lambda pair: pair[0])
        if len(self._slots) > 1 and shared <= _SIMILARITY * len(prompt):
            best = min(self._slots, key=lambda slot: slot.used)
            shared = common_prefix(best.state, prompt)
        return best, shared

    def observe(
        self, index: int, prompt: array[int], reply: array[int] | None, generated: int | None = None
    ) -> None:
        """Takes a prompt and its reply into the slot that the server would choose.

        reply: the ids that were decoded, the very last sampled token left out;
        None when they are not known, of which `generated` then says how many.
        """
        slot, _ = self._choose(prompt)
        slot.state = prompt if not reply else prompt + reply
        slot.unseen = max(0, (generated or 0) - 1) if reply is None else 0
        slot.index = index
        self._clock += 1
        slot.used = self._clock
