"""What a server showed beside its usage: the slot that it took, the blocks that it threw out. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from prefixguard.trial.ledger import Cleared, Event, Ledger


@dataclass(frozen=True, slots=True)
class Slot:
    """A slot of llama.cpp: the tokens that it holds, the number of the task that it had last."""

    tokens: int
    task: int


@dataclass(frozen=True, slots=True)
class Shown:
    """What a server showed since it was last asked.

    events: of its block cache. slots: by id, as they stand now; None where it
    shows none. lost: messages of events that did not arrive.
    """

    events: tuple[Event, ...] = ()
    slots: Mapping[int, Slot] | None = None
    lost: int = 0


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the server showed of one turn; None is what it did not show.

    slot: that answered; held: tokens that it held before; last: the turn whose
    prompt those were, from 0, None when none of ours. stored: tokens of the
    prompt's begin that the server had stored at some time before; left: those
    still there when it was asked, 0 when the cache had been emptied (cleared).
    """

    slot: int | None = None
    held: int | None = None
    last: int | None = None
    stored: int | None = None
    left: int | None = None
    cleared: bool = False

    @property
    def evicted(self) -> int:
        """Tokens of the prompt that had been stored and were no longer to be read."""
        return self.stored - self.left if self.stored is not None and self.left is not None else 0


@dataclass(slots=True)
class Witness:
    """Follows a run: call `see` with what was shown before it, then `turn` for each turn in order."""

    ledger: Ledger = field(default_factory=Ledger)
    lost: int = 0
    _slots: Mapping[int, Slot] | None = None
    _served: dict[int, int] = field(default_factory=dict)
    _turns: int = 0

    def see(self, shown: Shown) -> None:
        """Takes what happened before the run, or between turns."""
        self.ledger.take(shown.events)
        self.lost += shown.lost
        self._slots = shown.slots

    def turn(self, prompt: Sequence[int] | None, shown: Shown, salt: str | None = None) -> Evidence:
        """The evidence of the next turn.

        prompt: its ids, None where they are not known. shown: what the server
        showed behind its answer. salt: the cache salt that it carried.
        """
        standing = self.ledger.stands(prompt, salt) if prompt is not None else None
        # A cache that is emptied says so with the next batch, ahead of what that stores.
        cleared = bool(shown.events) and isinstance(shown.events[0], Cleared)
        slot = _served(self._slots, shown.slots)
        found = Evidence(
            slot=slot,
            held=None if slot is None or self._slots is None else self._tokens(slot),
            last=self._served.get(slot) if slot is not None else None,
            stored=standing.stored if standing else None,
            left=None if standing is None else 0 if cleared else standing.left,
            cleared=cleared,
        )
        self.see(shown)
        if slot is not None:
            self._served[slot] = self._turns
        self._turns += 1
        return found

    def _tokens(self, slot: int) -> int:
        held = (self._slots or {}).get(slot)
        return held.tokens if held is not None else 0


def _served(before: Mapping[int, Slot] | None, after: Mapping[int, Slot] | None) -> int | None:
    """The slot whose task is another one now; None when that is not one slot alone."""
    if before is None or after is None:
        return None
    changed = [i for i, slot in after.items() if i not in before or before[i].task != slot.task]
    return changed[0] if len(changed) == 1 else None
