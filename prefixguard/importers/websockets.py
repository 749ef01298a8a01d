"""The request and response pairs inside a recorded WebSocket, found by the proxy's own rule."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from prefixguard.exchange import Timing
from prefixguard.proxy.copies import Pairs


@dataclass(frozen=True, slots=True)
class Message:
    """One text message. t: seconds since the epoch."""

    content: bytes
    from_client: bool
    t: float


@dataclass(frozen=True, slots=True)
class Pair:
    """A request and the messages that answer it, one a line. aborted: the last one never came."""

    t: float
    request: bytes
    response: bytes
    timing: Timing
    aborted: bool


def pairs(messages: Iterable[Message]) -> Iterator[Pair]:
    """The pairs in the order of their requests. Messages that open none and answer none are passed over."""
    known = Pairs()
    opening: Message | None = None
    answers: list[Message] = []
    for message in messages:
        if message.from_client:
            if known.opens(message.content):
                if opening is not None:
                    yield _pair(opening, answers, aborted=True)
                known.begin(message.content)
                opening, answers = message, []
        elif opening is not None:
            answers.append(message)
            if known.answer(message.content):
                yield _pair(opening, answers, aborted=False)
                opening, answers = None, []
    if opening is not None:
        yield _pair(opening, answers, aborted=True)


def _pair(opening: Message, answers: list[Message], *, aborted: bool) -> Pair:
    timing = Timing()
    if answers and opening.t:
        timing = Timing((answers[0].t - opening.t) * 1000, (answers[-1].t - opening.t) * 1000)
    response = b"".join(answer.content + b"\n" for answer in answers)
    return Pair(opening.t, opening.content, response, timing, aborted)
