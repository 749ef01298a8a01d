"""What is played against a pool: requests whose prompts are chains of pieces.

A piece is a stretch of content that is known to be the same wherever its
identity is the same: a segment of a prompt, a run of token ids, a hashed block
of a trace. Pieces can be cut, so that two prompts that part inside a segment
share it up to there.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple


class Piece(NamedTuple):
    """`tokens` tokens of the content `identity`, from its token `offset` on."""

    identity: Hashable
    offset: int
    tokens: int


type Chain = tuple[Piece, ...]


def length(chain: Chain) -> int:
    """Tokens of a chain."""
    return sum(piece.tokens for piece in chain)


def take(chain: Chain, tokens: int) -> Chain:
    """The first `tokens` tokens of a chain."""
    found = []
    for piece in chain:
        if tokens <= 0:
            break
        found.append(piece if piece.tokens <= tokens else piece._replace(tokens=tokens))
        tokens -= piece.tokens
    return tuple(found)


def drop(chain: Chain, tokens: int) -> Chain:
    """A chain without its first `tokens` tokens."""
    for i, piece in enumerate(chain):
        if tokens < piece.tokens:
            rest = Piece(piece.identity, piece.offset + tokens, piece.tokens - tokens)
            return (rest, *chain[i + 1 :])
        tokens -= piece.tokens
    return ()


def join(first: Chain, second: Chain) -> Chain:
    """Two chains in a row; a piece that was cut between them is whole again."""
    if first and second:
        left, right = first[-1], second[0]
        if left.identity == right.identity and left.offset + left.tokens == right.offset:
            return (*first[:-1], left._replace(tokens=left.tokens + right.tokens), *second[1:])
    return first + second


@dataclass(frozen=True, slots=True)
class Request:
    """One request.

    session: who sends it; a session sends one request at a time. salt: what
    keeps its cache apart from others. prompt, reply: chains. output: tokens
    generated, known or estimated.
    """

    session: int
    prompt: Chain
    reply: Chain = ()
    output: int = 0
    salt: Hashable = None
    is_break: bool = False

    @property
    def tokens(self) -> int:
        """Tokens of the prompt."""
        return length(self.prompt)

    @property
    def total(self) -> int:
        """Tokens that get keys and values: the last generated one does not."""
        return self.tokens + max(0, self.output - 1)


class _State(NamedTuple):
    """Where naming stands: the key of the last full block, and the pieces of the one begun since."""

    above: int
    begun: Chain
    room: int


class Keys:
    """Names the blocks of chains: equal numbers for equal content behind equal content.

    What was named once is looked up piece by piece, so that a turn of a long
    session costs its new pieces.
    """

    def __init__(self, block: int) -> None:
        self.block = block
        self._numbers: dict[Hashable, int] = {}
        self._named: dict[tuple[_State, Piece], tuple[list[int], _State]] = {}

    def __call__(self, request: Request) -> list[int]:
        """The key of every full block of a request's prompt and reply."""
        state = _State(self._number(("salt", request.salt)), (), self.block)
        found: list[int] = []
        for piece in join(request.prompt, request.reply):
            place = (state, piece)
            known = self._named.get(place)
            if known is None:
                known = self._named[place] = self._name(state, piece)
            keys, state = known
            found += keys
        return found[: request.total // self.block]

    def _name(self, state: _State, piece: Piece) -> tuple[list[int], _State]:
        """The keys of the blocks that end inside a piece, and where that leaves off."""
        above, begun, room = state
        identity, at, left = piece
        found = []
        while left >= room:
            part = Piece(identity, at, room)
            above = self._number((above, (*begun, part)) if begun else (above, part))
            found.append(above)
            at, left, room, begun = at + room, left - room, self.block, ()
        if left:
            begun, room = (*begun, Piece(identity, at, left)), room - left
        return found, _State(above, begun, room)

    def _number(self, content: Hashable) -> int:
        return self._numbers.setdefault(content, len(self._numbers))


@dataclass(frozen=True, slots=True)
class Workload:
    """Requests in the order in which they are sent.

    exact: whether the tokens are those of the server. common: of identities
    that all runs of the same agent share (tools, system prompt), how many
    tokens from their start.
    """

    source: str
    requests: tuple[Request, ...]
    exact: bool
    common: Mapping[Hashable, int] = field(default_factory=dict)

    @property
    def sessions(self) -> int:
        """How many sessions send them."""
        return len({request.session for request in self.requests})

    @property
    def breaks(self) -> int:
        """How many requests broke the prefix of an earlier one."""
        return sum(request.is_break for request in self.requests)


def at_once(workload: Workload, count: int) -> Workload:
    """`count` sessions side by side, a turn of each in turn.

    More sessions than were recorded are copies of them: runs of the same agent
    on other tasks, with the same tools and system prompt and another history.
    """
    recorded: dict[int, list[Request]] = {}
    for request in workload.requests:
        recorded.setdefault(request.session, []).append(request)
    sessions = list(recorded.values())
    runs = [
        [_copy(request, i, i // len(sessions), workload.common) for request in sessions[i % len(sessions)]]
        for i in range(count)
    ]
    rounds = max(map(len, runs), default=0)
    mixed = tuple(run[turn] for turn in range(rounds) for run in runs if turn < len(run))
    return replace(workload, requests=mixed)


def _copy(request: Request, session: int, copy: int, common: Mapping[Hashable, int]) -> Request:
    if not copy:
        return replace(request, session=session)
    prompt, reply = (_renamed(chain, copy, common) for chain in (request.prompt, request.reply))
    return replace(request, session=session, prompt=prompt, reply=reply)


def _renamed(chain: Chain, copy: int, common: Mapping[Hashable, int]) -> Chain:
    found = []
    for piece in chain:
        kept = min(max(common.get(piece.identity, 0) - piece.offset, 0), piece.tokens)
        if kept:
            found.append(piece._replace(tokens=kept))
        if kept < piece.tokens:
            found.append(Piece((copy, piece.identity), piece.offset + kept, piece.tokens - kept))
    return tuple(found)


def from_hashes(
    source: str, rows: Iterable[tuple[Sequence[Hashable], int, int, int]], block: int
) -> Workload:
    """A trace of hashed blocks: (hash ids, prompt tokens, reply tokens in them, generated).

    block: tokens that one hash stands for; the last one stands for the rest.
    The reply's ids follow the prompt's; of a reply without any nothing is known.
    """
    requests = []
    for number, (hashes, prompt, reply, output) in enumerate(rows):
        last = prompt + reply - block * (len(hashes) - 1)
        chain = tuple(Piece(name, 0, block if i < len(hashes) - 1 else last) for i, name in enumerate(hashes))
        known = drop(chain, prompt) or (Piece(("reply", number), 0, output),)
        requests.append(Request(number, take(chain, prompt), known, output))
    return Workload(source, tuple(requests), exact=True)
