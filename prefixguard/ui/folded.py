"""One unit as far as it is folded: its prompts, its turns, and what the pages say of them.

Prompts are kept only while there is room (see `desk`); what a list of sessions
needs stays.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from hashlib import blake2b

from prefixguard.analysis import Fold
from prefixguard.exchange import Exchange
from prefixguard.reports.html import Listed
from prefixguard.reports.html.overview import Cause, Recording, SessionEntry, causes, session_entry
from prefixguard.reports.html.session import TurnEntry, turn_entry
from prefixguard.rulebook import FindingRule
from prefixguard.turn import Session, Turn
from prefixguard.ui.feed import Unit

_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,79}")
_A_TURN = 6_000
"""Bytes that a turn costs beside the text that is new in its prompt."""
_TEXT = 3
"""Bytes in memory to a byte of a body: its text, its identity, its tokens."""


class Told:
    """What was said of one session, and in which revision it changed last.

    listed, entries, changed: only while its unit is folded. entries: each turn
    with its entry; changed: by entry, the revision in which it became what it is.
    """

    __slots__ = ("causes", "changed", "entries", "entry", "listed", "revision")

    def __init__(self) -> None:
        self.entry: SessionEntry | None = None
        self.causes: list[Cause] = []
        self.revision = 0
        self.listed: Listed | None = None
        self.entries: list[tuple[Turn, TurnEntry]] = []
        self.changed: list[int] = []

    def pack(self) -> None:
        """Drops what can be folded again."""
        self.listed, self.entries, self.changed = None, [], []

    def update(self, listed: Listed, findings: Mapping[str, FindingRule], revision: int) -> bool:
        """Says what is known now; whether anything of it is new."""
        self.listed = listed
        start = listed.session.turns[0].t
        entries: list[tuple[Turn, TurnEntry]] = []
        changed: list[int] = []
        for i, turn in enumerate(listed.session.turns):
            was = self.entries[i] if i < len(self.entries) else None
            # A turn of which nothing new is known is often the very same object.
            entry = was[1] if was and was[0] is turn else turn_entry(turn, start)
            entries.append((turn, entry))
            changed.append(self.changed[i] if was and was[1] == entry else revision)
        shorter = len(entries) < len(self.entries)
        self.entries, self.changed = entries, changed
        entry_, causes_ = session_entry(listed), causes([listed], findings)
        if not shorter and revision not in changed and (entry_, causes_) == (self.entry, self.causes):
            return False
        self.entry, self.causes, self.revision = entry_, causes_, revision
        return True


class Folded:
    """A unit. fold: None while its prompts are not in memory.

    complete: everything of it is folded. disordered: not in the order of time.
    numbers: of the exchanges that are folded. weight: bytes that this takes,
    about. sessions: what is said of each of its sessions, by the page's key.
    """

    def __init__(self, unit: Unit) -> None:
        self.unit = unit
        self.fold: Fold | None = None
        self.numbers: dict[int, int] = {}
        self.weight = 0
        self.complete = False
        self.disordered = False
        self.sessions: dict[str, Told] = {}
        self.key = _key(unit.key)
        self._latest = float("-inf")
        self._sizes: list[int] = []

    def begin(self, fold: Fold) -> None:
        """Starts anew with an empty fold. What is said of its sessions stays until it is said anew."""
        self.pack()
        self.fold, self.disordered = fold, False
        self._latest = float("-inf")

    def step(self, number: int, exchange: Exchange) -> None:
        """Folds an exchange, unless it was folded before."""
        if number in self.numbers or self.fold is None:
            return
        if exchange.t < self._latest:
            # It ended later than one that began after it; a report would take it first.
            self.disordered = True
        self._latest = max(self._latest, exchange.t)
        turn = self.fold.step(exchange)
        self.numbers[number] = turn.index
        size = len(exchange.request) + len(exchange.response or b"")
        known = self._sizes[turn.parent] if turn.parent is not None else 0
        self._sizes.append(size)
        self.weight += _A_TURN + _TEXT * max(0, size - known)

    def pack(self) -> None:
        """Lets go of the prompts and turns."""
        self.fold, self.complete = None, False
        self.numbers, self._sizes, self.weight = {}, [], 0
        for told in self.sessions.values():
            told.pack()

    def session_of(self, index: int) -> str:
        """The key of the session that a turn belongs to; of the first one where that is not in memory."""
        for key, told in self.sessions.items():
            if any(turn.index == index for turn, _ in told.entries):
                return key
        return self.key

    def tell(self, findings: Mapping[str, FindingRule], revision: int) -> tuple[list[str], list[str]]:
        """Says what is known now: (keys of sessions that changed, of those that are no more)."""
        if self.fold is None:
            return [], []
        before, self.sessions = self.sessions, {}
        changed = []
        for place, session in enumerate(self.fold.result().sessions):
            key = self.key if place == 0 else f"{self.key}.{_digest(session.id)}"
            told = self.sessions[key] = before.get(key) or Told()
            if told.update(self._listed(key, session), findings, revision):
                changed.append(key)
        return changed, [key for key in before if key not in self.sessions]

    def _listed(self, key: str, session: Session) -> Listed:
        return Listed(key, session, self._recording, self.unit.agent, self.unit.source)

    @property
    def _recording(self) -> Recording:
        """The mode that shows least, of those in which exchanges of this unit were recorded."""
        modes = self.unit.recording
        return "hashes" if "hashes" in modes else "redacted" if "redacted" in modes else "full"


def _key(name: str) -> str:
    """A name that can stand in an address: itself, or a digest of it."""
    return name if _PLAIN.fullmatch(name) else f"x-{_digest(name)}"


def _digest(name: str) -> str:
    return blake2b(name.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()
