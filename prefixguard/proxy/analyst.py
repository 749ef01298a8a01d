"""The live analysis: one step of the fold per exchange, and the event that the terminal shows.

Runs in the recorder. The fold is the same that reports use; here it is fed one
exchange at a time.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Protocol

import msgspec

from prefixguard.exchange import Exchange
from prefixguard.proxy.frames import Cause, TurnSeen
from prefixguard.store import UNASSIGNED

if TYPE_CHECKING:
    from prefixguard.turn import Turn

_SHOWN_CAUSES: Final = 5
_TAKEN_UP: Final = 200
"""How many earlier exchanges of a session are folded before its first live one."""
_OF_OTHERS: Final = 50
"""How many of each other session that was active lately."""
_OTHERS: Final = 4
_CACHED_SECONDS: Final = 3600.0
"""How long a server may still have what another session sent."""
_UNNAMED_SECONDS: Final = 24 * 3600.0
"""How long a session without a key may pause and still be known again."""
_MOST_STEPS: Final = 2000
"""After so many steps a fold is given up for a fresh one: it remembers all that it saw."""


class Fold(Protocol):
    """What the live analysis needs of `analysis.Fold`."""

    def step(self, exchange: Exchange) -> Turn: ...


class Recorded(Protocol):
    """What it needs to know of a session in the store."""

    @property
    def id(self) -> str: ...
    @property
    def key_kind(self) -> str: ...
    @property
    def last_t(self) -> float: ...


class Analyst:
    """Folds exchanges into turns.

    make: gives an empty fold. history: the stored exchanges of a session.
    sessions: the stored sessions, the one that was active last at the end.

    A fold begins with what the store holds of the last sessions: a run that is
    resumed, a recorder that had to be started again and a fold that had grown
    too large all go on where they stood. So a proxy may run for weeks.
    """

    def __init__(
        self,
        make: Callable[[], Fold],
        history: Callable[[str], Iterable[Exchange]],
        sessions: Callable[[], Sequence[Recorded]] = lambda: (),
        most_steps: int = _MOST_STEPS,
    ) -> None:
        self._make = make
        self._history = history
        self._sessions = sessions
        self._most_steps = most_steps
        self._encoder = msgspec.json.Encoder()
        self._turns: Counter[str] = Counter()
        self._begin()

    def _begin(self) -> None:
        self._fold = self._make()
        self._steps = 0
        self._fresh = True
        self._known: set[str] = set()
        """Sessions whose earlier exchanges this fold has seen."""
        self._names: dict[str, str] = {}
        """The store's names of sessions without a key, by the fold's, which depend on where it began."""

    def step(
        self, exchange_id: str, session: str, exchange: Exchange, waiting: Collection[str] = ()
    ) -> tuple[TurnSeen, bytes]:
        """The event for the terminal, and the turn as JSON for the store. Raises whatever the fold does.

        session: the store's name of it, "" where only the content can tell.
        waiting: ids of stored exchanges whose own step is still to come.
        """
        if self._steps >= self._most_steps:
            self._begin()
        later = {exchange_id, *waiting}
        if self._fresh:
            # Whatever the store cannot give is asked for once, not before every exchange.
            self._fresh = False
            self._take_up(self._lately(exchange.t, session), later)
        elif session and session not in self._known:
            self._take_up({session: _TAKEN_UP}, later)
        turn = self._fold.step(exchange)
        self._steps += 1
        if not session and self._names.get(turn.session, turn.session) != turn.session:
            turn = replace(turn, session=self._names[turn.session])
        name = session or turn.session
        self._known.add(name)
        index = self._turns[name]
        self._turns[name] += 1
        return event_of(exchange_id, name, index, turn), self._encoder.encode(turn)

    def _lately(self, now: float, session: str) -> dict[str, int]:
        """The sessions to begin with, and how many exchanges of each."""
        found = {session: _TAKEN_UP} if session else {}
        for row in reversed(self._sessions()):
            window = _UNNAMED_SECONDS if row.key_kind == "content" else _CACHED_SECONDS
            if row.id != UNASSIGNED and now - row.last_t <= window and len(found) <= _OTHERS:
                found.setdefault(row.id, _OF_OTHERS)
        return found

    def _take_up(self, sessions: Mapping[str, int], not_yet: set[str]) -> None:
        """Fold the last exchanges of some sessions, in order of time."""
        later = {msgspec.json.encode(identity) for identity in not_yet}
        earlier: list[tuple[str, Exchange]] = []
        for session, most in sessions.items():
            self._known.add(session)
            last: deque[Exchange] = deque(maxlen=most)
            count = 0
            for exchange in self._history(session):
                if exchange.extra.get("id") not in later:
                    last.append(exchange)
                    count += 1
            if session not in self._turns:
                self._turns[session] = count
            earlier += [(session, exchange) for exchange in last]
        for session, exchange in sorted(earlier, key=lambda pair: pair[1].t):
            turn = self._fold.step(exchange)
            self._steps += 1
            self._names.setdefault(turn.session, session)


def event_of(exchange_id: str, session: str, index: int, turn: Turn) -> TurnSeen:
    """The part of a turn that a live line shows. index: of the turn in its session."""
    cache, usage = turn.cache, turn.usage
    causes = sorted(turn.findings, key=lambda finding: not finding.primary)
    return TurnSeen(
        id=exchange_id,
        session=session,
        index=index,
        model=turn.model,
        api=turn.api,
        status=turn.status,
        aborted=turn.aborted,
        shape=turn.shape,
        is_break=turn.is_break,
        prompt_tokens=turn.tokens.prompt,
        tokens_exact=turn.tokens.exact,
        rebilled_tokens=turn.tokens.rebilled,
        reported_read=cache.reported_read if cache else turn.usage.read if turn.usage else None,
        read_low=cache.read_low if cache else None,
        read_high=cache.read_high if cache else None,
        verdict=cache.verdict if cache else "",
        first_token_ms=turn.timing.first_token_ms,
        total_ms=turn.timing.total_ms,
        causes=tuple(
            Cause(
                finding.code,
                finding.name,
                finding.message,
                finding.pointer,
                finding.severity,
                finding.primary,
                finding.deliberate,
            )
            for finding in causes[:_SHOWN_CAUSES]
        ),
        note=turn.note,
        upstream=turn.upstream,
        uncached_tokens=usage.uncached if usage else None,
        written_tokens=sum(usage.write.values()) if usage and usage.write else None,
        output_tokens=usage.output if usage else None,
        avoidable_usd=turn.cost.avoidable,
    )


def make_analyst(
    history: Callable[[str], Iterable[Exchange]], sessions: Callable[[], Sequence[Recorded]] = lambda: ()
) -> Analyst:
    """The analysis with the packaged rules. Raises RuleError."""
    from prefixguard.analysis import Fold as RealFold
    from prefixguard.analysis import Options
    from prefixguard.rulebook import Rulebook

    rulebook = Rulebook()
    options = Options.standard(rulebook)
    return Analyst(lambda: RealFold(rulebook, options), history, sessions)
