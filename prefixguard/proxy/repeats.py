"""Does not send again what the recorder already has.

An agent sends its whole history each turn, and most of a body stood in an
earlier one. The sending side finds the longest start that a recent body shares
with a new one, in whole pieces, and sends the rest; the receiving side joins
them. Both sides remember the same bodies, because each frame says what to
remember and what to forget.
"""

from __future__ import annotations

from collections.abc import Buffer
from typing import Final

import msgspec

PIECE: Final = 32 * 1024
_MOST_BODIES: Final = 16
_MOST_BYTES: Final = 32 * 2**20


class Repeat(msgspec.Struct, frozen=True, array_like=True):
    """How a body is to be put together, and what to remember.

    base: number of the body that gives the start; 0 for none. kept: how many
    bytes of it. number: under which the whole body is remembered; 0 for not at
    all. forget: numbers of bodies that are not needed any more.
    """

    base: int
    kept: int
    number: int
    forget: tuple[int, ...] = ()


class Sent:
    """The sending side: the last bodies, in pieces, the least recent first."""

    def __init__(self) -> None:
        self._bodies: dict[int, list[bytes]] = {}
        self._size = 0
        self._last = 0

    def cut(self, body: bytes) -> tuple[Repeat | None, Buffer]:
        """What to say of a body, and the part of it to send. None: all of it, and nothing to say."""
        if len(body) < 2 * PIECE:
            return None, body
        base, shared = self._longest(body)
        kept = shared * PIECE
        whole = len(body) - len(body) % PIECE
        known = self._bodies[base][:shared] if base else []
        forget = []
        if base:
            # A body that continues another takes its place: the conversation has moved on.
            forget.append(self._drop(base))
        self._last += 1
        self._bodies[self._last] = known + [body[at : at + PIECE] for at in range(kept, whole, PIECE)]
        self._size += whole
        while len(self._bodies) > _MOST_BODIES or self._size > _MOST_BYTES:
            oldest = next(iter(self._bodies))
            if oldest == self._last:
                break
            forget.append(self._drop(oldest))
        return Repeat(base, kept, self._last, tuple(forget)), memoryview(body)[kept:]

    def _longest(self, body: bytes) -> tuple[int, int]:
        """The body that shares the longest start, and how many pieces it shares; (0, 0) for none."""
        best = (0, 0)
        for number, pieces in self._bodies.items():
            shared = 0
            # `startswith` compares in place; a slice of the body would be a copy.
            while shared < len(pieces) and body.startswith(pieces[shared], shared * PIECE):
                shared += 1
            if shared > best[1]:
                best = (number, shared)
        return best

    def _drop(self, number: int) -> int:
        self._size -= len(self._bodies.pop(number)) * PIECE
        return number


class Received:
    """The receiving side: the bodies that the sending side may still refer to."""

    def __init__(self) -> None:
        self._bodies: dict[int, bytes] = {}

    def whole(self, repeat: Repeat | None, rest: bytes) -> bytes:
        """The body. Raises ValueError when the two sides have lost step."""
        if repeat is None:
            return rest
        start = self._bodies.get(repeat.base, b"")[: repeat.kept]
        if len(start) != repeat.kept:
            raise ValueError(f"body {repeat.base} is not known: the pipe is out of step")
        body = start + rest
        for number in repeat.forget:
            self._bodies.pop(number, None)
        if repeat.number:
            self._bodies[repeat.number] = body
        return body
