"""The link to the recorder: never waits, adds up, and gets over a recorder that misbehaves.

The recorders here are small real processes that speak the real frames.
"""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prefixguard.proxy import link as link_module
from prefixguard.proxy.frames import (
    Event,
    Frame,
    Ready,
    Stored,
    TurnSeen,
    pack_event,
    pack_frame,
    read_events,
    read_frames,
)
from prefixguard.proxy.link import DIED, QUEUE_FULL, STALLED, UNWRITABLE, Link
from prefixguard.proxy.repeats import Sent

from .captures import capture, framed

START = """
import os, sys, time
from prefixguard.proxy.frames import Lost, Ready, Stored, pack_event, read_frames
def send(event): sys.stdout.buffer.write(pack_event(event)); sys.stdout.buffer.flush()
send(Ready(os.getpid()))
frames = read_frames(sys.stdin.buffer)
"""
GOOD = "for frame in frames: send(Stored(frame.capture.id, 's'))"
DIES_ON_POISON = """
for frame in frames:
    if frame.capture.id == "poison": os._exit(1)
    send(Stored(frame.capture.id, 's'))
"""
DIES_ONCE = """
import pathlib
for frame in frames:
    if not frame.again and frame.capture.id == "3": os._exit(1)
    send(Stored(frame.capture.id, 's'))
"""
SILENT = "time.sleep(60)"
GARBAGE = "sys.stdout.buffer.write(b'\\xff' * 64); sys.stdout.buffer.flush(); time.sleep(60)"
ABSENT = "os._exit(3)"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link_module, "_FIRST_DELAY", 0.01)
    monkeypatch.setattr(link_module, "_BREATH", 0.01)


def linked(script: str, **options: int) -> tuple[Link, list[Event]]:
    events: list[Event] = []
    link = Link([sys.executable, "-c", START + script], events.append, **options)  # type: ignore[arg-type]
    link.start()
    return link, events


def wait(link: Link, stored: int) -> None:
    end = time.monotonic() + 30
    while link.state().stored < stored:
        assert time.monotonic() < end, link.state()
        time.sleep(0.01)


def adds_up(link: Link, offered: int) -> None:
    state = link.state()
    assert state.stored + sum(state.lost.values()) == offered
    assert (state.queued, state.queued_bytes) == (0, 0)


def test_everything_arrives_and_is_answered() -> None:
    link, events = linked(GOOD)
    assert isinstance(link.wait_ready(30), Ready)
    for n in range(300):
        assert link.offer(framed(capture(str(n), response_body=b"x" * n * 100)))
    link.close()
    adds_up(link, 300)
    assert link.state().stored == 300
    assert [event.id for event in events if isinstance(event, Stored)] == [str(n) for n in range(300)]


def test_a_poisonous_exchange_is_lost_and_the_rest_is_not() -> None:
    link, _ = linked(DIES_ON_POISON)
    for n in range(5):
        link.offer(framed(capture(str(n))))
    wait(link, 5)
    link.offer(framed(capture("poison")))
    end = time.monotonic() + 30
    while not link.state().lost:
        assert time.monotonic() < end
        time.sleep(0.01)
    for n in range(5, 10):
        link.offer(framed(capture(str(n))))
    wait(link, 10)
    link.close()
    adds_up(link, 11)
    assert link.state().lost == {DIED: 1}


def test_what_was_not_acknowledged_is_sent_again() -> None:
    link, _ = linked(DIES_ONCE)
    for n in range(6):
        link.offer(framed(capture(str(n))))
    wait(link, 6)
    link.close()
    adds_up(link, 6)
    assert link.state().lost == {}
    assert link.state().restarts == 1


@pytest.mark.parametrize("options", [{"max_frames": 3}, {"max_bytes": 3 * 4400}])
def test_a_full_queue_loses_the_newest_and_never_waits(options: dict[str, int]) -> None:
    link, _ = linked(SILENT, **options)
    taken = [link.offer(framed(capture(str(n)))) for n in range(10)]
    assert taken == [True] * 3 + [False] * 7
    assert link.state().lost == {QUEUE_FULL: 7}
    link.close(stall_s=0.1)
    adds_up(link, 10)
    assert link.state().lost == {QUEUE_FULL: 7, STALLED: 3}


def test_an_unreadable_answer_ends_the_recorder_not_the_link() -> None:
    link, _ = linked(GARBAGE)
    link.offer(framed(capture("1")))
    end = time.monotonic() + 30
    while link.state().restarts < 2:
        assert time.monotonic() < end
        time.sleep(0.01)
    link.close(stall_s=0.1)
    adds_up(link, 1)
    assert sum(link.state().lost.values()) == 1


def test_a_recorder_that_cannot_start_loses_all_and_says_so() -> None:
    link, _ = linked(ABSENT)
    link.offer(framed(capture("1")))
    link.close(stall_s=5)
    adds_up(link, 1)


def test_an_exchange_that_cannot_be_encoded_is_lost_alone() -> None:
    link, _ = linked(GOOD)
    link.offer(framed(capture("1", path="\udcff")))
    link.offer(framed(capture("2")))
    link.close()
    adds_up(link, 2)
    assert link.state().lost == {UNWRITABLE: 1}


def test_an_error_in_the_listener_changes_nothing() -> None:
    def listener(_: Event) -> None:
        raise RuntimeError("on purpose")

    link = Link([sys.executable, "-c", START + GOOD], listener)
    link.start()
    link.offer(framed(capture("1")))
    link.close()
    adds_up(link, 1)
    assert link.state().stored == 1


BODIES = st.binary(max_size=64)


@given(st.lists(st.tuples(BODIES, BODIES, st.booleans()), max_size=5), st.integers(0, 40))
def test_frames_survive_the_pipe(parts: list[tuple[bytes, bytes, bool]], cut: int) -> None:
    """What the recorder reads is what was written, the bodies joined."""
    captures = [capture(str(n), body=body, response_body=answer) for n, (body, answer, _) in enumerate(parts)]
    flags = [again for _, _, again in parts]
    sent = [framed(one, marks=((1, 2.5),), again=again) for one, again in zip(captures, flags, strict=True)]
    expected = [Frame(one, ((1, 2.5),), again=again) for one, again in zip(captures, flags, strict=True)]
    memory = Sent()
    data = b"".join(b"".join(pack_frame(frame, memory)) for frame in sent)
    assert list(read_frames(io.BytesIO(data))) == expected
    # A pipe that ends in the middle of a frame gives all the frames before it.
    if cut and sent:
        torn = list(read_frames(io.BytesIO(data[:-cut])))
        assert torn == expected[: len(torn)]
        assert len(torn) < len(expected)


def events() -> Iterator[Event]:
    yield Ready(7, "store", b"salt")
    yield Stored("1", "s")
    yield TurnSeen("1", "s", 0, model="m", note="")


def test_events_survive_the_pipe() -> None:
    sent = list(events())
    data = b"".join(bytes(pack_event(event)) for event in sent)
    assert list(read_events(io.BytesIO(data))) == sent
    assert list(read_events(io.BytesIO(data[:-1]))) == sent[:-1]
    with pytest.raises(ValueError, match="out of step"):
        list(read_events(io.BytesIO(b"\xff" * 8)))
