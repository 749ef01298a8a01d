"""The live analysis: one step of the fold per exchange, and the event that the terminal shows.

Runs in the recorder. The fold is the same that reports use; here it is fed one
exchange at a time.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING, Final, Protocol

import msgspec

from prefixguard.exchange import Exchange
from prefixguard.proxy.frames import Cause, TurnSeen

if TYPE_CHECKING:
    from prefixguard.turn import Turn

_SHOWN_CAUSES: Final = 5
_TAKEN_UP: Final = 200
"""How many earlier exchanges of a session are folded before its first live one."""


class Fold(Protocol):
    """What the live analysis needs of `analysis.Fold`."""

    def step(self, exchange: Exchange) -> Turn: ...


class Analyst:
    """Folds exchanges into turns.

    history: the stored exchanges of a session. A session that was recorded
    before (a resumed run, or a recorder that had to be started again) is taken
    up where it stood.
    """

    def __init__(self, fold: Fold, history: Callable[[str], Iterable[Exchange]]) -> None:
        self._fold = fold
        self._history = history
        self._encoder = msgspec.json.Encoder()
        self._turns: Counter[str] = Counter()

    def step(
        self, exchange_id: str, session: str, exchange: Exchange, waiting: Collection[str] = ()
    ) -> tuple[TurnSeen, bytes]:
        """The event for the terminal, and the turn as JSON for the store. Raises whatever the fold does.

        session: the store's name of it, "" where only the content can tell.
        waiting: ids of stored exchanges whose own step is still to come.
        """
        if session and session not in self._turns:
            self._take_up(session, {exchange_id, *waiting})
        turn = self._fold.step(exchange)
        name = session or turn.session
        index = self._turns[name]
        self._turns[name] += 1
        return event_of(exchange_id, name, index, turn), self._encoder.encode(turn)

    def _take_up(self, session: str, not_yet: set[str]) -> None:
        later = {msgspec.json.encode(identity) for identity in not_yet}
        earlier = deque(
            (e for e in self._history(session) if e.extra.get("id") not in later), maxlen=_TAKEN_UP
        )
        for exchange in earlier:
            self._fold.step(exchange)
            self._turns[session] += 1


def event_of(exchange_id: str, session: str, index: int, turn: Turn) -> TurnSeen:
    """The part of a turn that a live line shows. index: of the turn in its session."""
    cache = turn.cache
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
    )


def make_analyst(history: Callable[[str], Iterable[Exchange]]) -> Analyst:
    """The analysis with the packaged rules. Raises RuleError."""
    from prefixguard.analysis import Fold as RealFold
    from prefixguard.analysis import Options
    from prefixguard.rulebook import Rulebook

    rulebook = Rulebook()
    return Analyst(RealFold(rulebook, Options.standard(rulebook)), history)
