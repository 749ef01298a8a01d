"""Recorded sessions as a workload, as they were sent and as they would be without their breaks.

Positions are those of the analysis: tokens of segments, and for each turn the
tokens that it shares with the turn it continues. Where the log holds token ids
that the server rendered, these are taken, and the workload is exact.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, replace

from prefixguard.analysis import Fold
from prefixguard.exchange import Exchange, Rendered
from prefixguard.rendering.ids import common_prefix
from prefixguard.simulate.workload import Chain, Piece, Request, Workload, drop, join, length, take
from prefixguard.tokens.layout import Layout
from prefixguard.turn import Turn

_RUN = 256
"""Token ids of one piece, where the ids are known."""

_ALL = 1 << 60
"""More tokens than any piece has."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """sent: as it happened. mended: the same content, appended to what it continues."""

    sent: Workload
    mended: Workload


@dataclass(frozen=True, slots=True)
class _Kept:
    """A turn's prompts and reply, for those that continue it. ids: prompt and reply, where they are known."""

    sent: Chain
    mended: Chain
    reply: Chain
    ids: array[int] | None


def from_sessions(source: str, exchanges: Iterable[Exchange], fold: Fold) -> Recorded:
    """Folds the exchanges and turns each that a server would have cached into a request."""
    kept: dict[int, _Kept] = {}
    numbers: dict[str, int] = {}
    heads = _Heads()
    sent: list[Request] = []
    mended: list[Request] = []
    exact = True
    for exchange in exchanges:
        turn = fold.step(exchange)
        laid = fold.laid_out(turn.index)
        if laid is None:
            continue
        layout, segments, weights = laid
        rendered = exchange.rendered
        exact = exact and rendered is not None
        if rendered is None:
            own, reply = _by_segments(layout), _reply([s.exact for s in segments], weights, turn)
            ids = None
        else:
            own, reply = _by_ids(rendered)
            ids = rendered.prompt + rendered.reply if rendered.reply is not None else rendered.prompt
        parent = kept.get(turn.parent) if turn.parent is not None else None
        chain, without = _continued(own, rendered, parent, turn)
        heads.see(turn.session, own, chain, _head_tokens(own, layout))
        kept[turn.index] = _Kept(chain, without, reply, ids)
        told = turn.usage.output if turn.usage is not None else None
        request = Request(
            numbers.setdefault(turn.session, len(numbers)),
            chain,
            reply,
            told if told is not None else length(reply),
            layout.chain[0],
            turn.is_break,
        )
        sent.append(request)
        mended.append(replace(request, prompt=without, is_break=False))
    common = heads.common()
    return Recorded(
        Workload(source, tuple(sent), exact, common), Workload(source, tuple(mended), exact, common)
    )


class _Heads:
    """What runs of the same agent have in common: tools and system text that stay from turn to turn.

    A head that only one turn of a session has (a clock in it) would be another
    one in another run, but for what its successor still shares with it.
    """

    def __init__(self) -> None:
        self._turns: Counter[Hashable] = Counter()
        self._sessions: Counter[str] = Counter()
        self._only: dict[Hashable, str] = {}
        self._reach: dict[Hashable, int] = {}

    def see(self, session: str, own: Chain, chain: Chain, head: int) -> None:
        self._sessions[session] += 1
        mine = {piece.identity for piece in own}
        for piece in take(own, head):
            self._turns[piece.identity] += 1
            self._only[piece.identity] = session
        for piece in take(chain, head):
            if piece.identity not in mine:
                end = piece.offset + piece.tokens
                self._reach[piece.identity] = max(self._reach.get(piece.identity, 0), end)

    def common(self) -> dict[Hashable, int]:
        """For each identity, its tokens that are common, from its start."""
        found = dict(self._reach)
        for identity, turns in self._turns.items():
            if turns > 1 or self._sessions[self._only[identity]] == 1:
                found[identity] = _ALL
        return found


def _head_tokens(own: Chain, layout: Layout) -> int:
    """Tokens before the history; with token ids, in proportion."""
    return layout.ends[layout.prompt.head_length] * length(own) // max(layout.total, 1)


def _by_segments(layout: Layout) -> Chain:
    ends, exacts = layout.ends, layout.prompt.exacts
    return tuple(
        Piece(exact, 0, ends[i + 1] - ends[i]) for i, exact in enumerate(exacts) if ends[i + 1] > ends[i]
    )


def _by_ids(rendered: Rendered) -> tuple[Chain, Chain]:
    """(prompt, reply) as the server rendered them, in runs of ids."""
    ids = rendered.prompt
    runs = [ids[i : i + _RUN] for i in range(0, len(ids), _RUN)]
    chain = tuple(Piece(run.tobytes(), 0, len(run)) for run in runs)
    reply = rendered.reply
    return chain, (Piece(("reply", reply.tobytes()), 0, len(reply)),) if reply else ()


def _reply(names: list[bytes], weights: tuple[int, ...], turn: Turn) -> Chain:
    known = tuple(Piece(name, 0, weight) for name, weight in zip(names, weights, strict=True) if weight)
    if known or turn.usage is None or not turn.usage.output:
        return known
    return (Piece(("reply", turn.index), 0, turn.usage.output),)


def _continued(
    own: Chain, rendered: Rendered | None, parent: _Kept | None, turn: Turn
) -> tuple[Chain, Chain]:
    """(as sent, as it would be appended) of a turn that continues `parent`."""
    if parent is None:
        return own, own
    sent, mended = parent.sent, parent.mended
    shared = turn.tokens.shared
    if rendered is not None and parent.ids is not None:
        sent, mended = join(sent, parent.reply), join(mended, parent.reply)
        shared = common_prefix(parent.ids, rendered.prompt)
    shared = min(shared, length(own), length(sent))
    again = turn.tokens.rebilled if turn.is_break else 0
    kept = min(shared + again, length(own), length(mended))
    return join(take(sent, shared), drop(own, shared)), join(take(mended, kept), drop(own, kept))
