"""What the recorder has already is not sent again, and every body arrives whole."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prefixguard.proxy import repeats
from prefixguard.proxy.repeats import Received, Repeat, Sent

PIECE = 64
"""Small pieces, so that small bodies have many."""


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repeats, "PIECE", PIECE)


def send(sent: Sent, received: Received, body: bytes) -> int:
    """Send a body over; how many bytes that took."""
    repeat, rest = sent.cut(body)
    data = bytes(rest)
    assert received.whole(repeat, data) == body
    return len(data)


EDITS = st.lists(
    st.tuples(st.sampled_from(["append", "cut", "edit", "new", "again", "switch"]), st.integers(0, 2**32)),
    max_size=40,
)


@settings(max_examples=60)
@given(EDITS)
def test_every_body_arrives_whole(edits: list[tuple[str, int]]) -> None:
    sent, received = Sent(), Received()
    bodies = [b"start" * 100, b"other" * 90]
    for kind, seed in edits:
        noise = random.Random(seed)
        body = bodies[0]
        if kind == "append":
            body += noise.randbytes(seed % 500)
        elif kind == "cut":
            body = body[: seed % (len(body) + 1)]
        elif kind == "edit" and body:
            at = seed % len(body)
            body = body[:at] + noise.randbytes(1) + body[at + 1 :]
        elif kind == "new":
            body = noise.randbytes(seed % 2000)
        elif kind == "switch":
            bodies.reverse()
            body = bodies[0]
        bodies[0] = body
        send(sent, received, body)
        assert set(received._bodies) == set(sent._bodies)


def test_a_growing_history_costs_what_is_new() -> None:
    sent, received = Sent(), Received()
    body = random.Random(1).randbytes(PIECE * 50)
    assert send(sent, received, body) == len(body)
    for n in range(20):
        body += random.Random(n).randbytes(PIECE)
        assert send(sent, received, body) <= 2 * PIECE


def test_conversations_side_by_side_keep_their_own_history() -> None:
    sent, received = Sent(), Received()
    bodies = [random.Random(n).randbytes(PIECE * 20) for n in range(8)]
    for body in bodies:
        send(sent, received, body)
    assert all(send(sent, received, body + b"more") <= PIECE + 4 for body in bodies)


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repeats, "_MOST_BYTES", PIECE * 100)
    sent, received = Sent(), Received()
    for n in range(100):
        send(sent, received, random.Random(n).randbytes(PIECE * 30))
        assert len(sent._bodies) <= 3
        assert set(received._bodies) == set(sent._bodies)
    # One body that is larger than all that may be remembered still arrives.
    send(sent, received, random.Random(0).randbytes(PIECE * 200))


def test_lost_step_is_an_error() -> None:
    with pytest.raises(ValueError, match="out of step"):
        Received().whole(Repeat(base=3, kept=10, number=4), b"rest")
