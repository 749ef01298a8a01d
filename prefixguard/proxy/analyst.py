"""The live analysis: one step of the fold per exchange, and the event that the terminal shows.

Runs in the recorder. The fold is the same that reports use; here it is fed one
exchange at a time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import msgspec

from prefixguard.exchange import Exchange
from prefixguard.proxy.frames import Cause, TurnSeen

if TYPE_CHECKING:
    from prefixguard.turn import Turn

_SHOWN_CAUSES = 5


class Fold(Protocol):
    """What the live analysis needs of `analysis.Fold`."""

    def step(self, exchange: Exchange) -> Turn: ...


class Analyst:
    """Folds exchanges into turns."""

    def __init__(self, fold: Fold) -> None:
        self._fold = fold
        self._encoder = msgspec.json.Encoder()

    def step(self, exchange_id: str, session: str, exchange: Exchange) -> tuple[TurnSeen, bytes]:
        """The event for the terminal, and the turn as JSON for the store. Raises whatever the fold does."""
        turn = self._fold.step(exchange)
        return event_of(exchange_id, session, turn), self._encoder.encode(turn)


def event_of(exchange_id: str, session: str, turn: Turn) -> TurnSeen:
    """The part of a turn that a live line shows."""
    cache = turn.cache
    causes = sorted(turn.findings, key=lambda finding: not finding.primary)
    return TurnSeen(
        id=exchange_id,
        session=turn.session or session,
        index=turn.index,
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


def make_analyst() -> Analyst:
    """The analysis with the packaged rules. Raises ImportError where there is none."""
    from prefixguard.analysis import Fold as RealFold
    from prefixguard.rulebook import Rulebook

    return Analyst(RealFold(Rulebook()))
