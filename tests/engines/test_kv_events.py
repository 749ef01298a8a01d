"""Listening to a publisher of cache events: both ways to meet it, lost messages, nobody there."""

from __future__ import annotations

import json
import threading
import time
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
import zmq

from prefixguard.engines.kv_events import KvEvents
from prefixguard.errors import ServerError
from prefixguard.trial.ledger import Cleared, Stored

TAPE = json.loads((Path(__file__).parents[2] / "fixtures/vllm/tape.json").read_text())["sessions"]
PAYLOADS = [b64decode(payload) for row in TAPE["append-only"] for payload in row["events"]]


@pytest.fixture
def publisher() -> Iterator[zmq.Socket[bytes]]:
    socket = zmq.Context.instance().socket(zmq.PUB)
    yield socket
    socket.close(0)


def send(socket: zmq.Socket[bytes], number: int, payload: bytes) -> None:
    socket.send_multipart([b"kv", number.to_bytes(8, "big"), payload])


@pytest.mark.parametrize("waits", [True, False], ids=["it waits for us", "it connects to us"])
def test_both_ways_to_meet(publisher: zmq.Socket[bytes], waits: bool) -> None:
    if waits:
        port = publisher.bind_to_random_port("tcp://127.0.0.1")
        events = KvEvents(f"tcp://*:{port}")
    else:
        free = zmq.Context.instance().socket(zmq.PUB)
        port = free.bind_to_random_port("tcp://127.0.0.1")
        free.close(0)
        time.sleep(0.05)
        publisher.connect(f"tcp://127.0.0.1:{port}")
        events = KvEvents(f"tcp://127.0.0.1:{port}")
    for number, payload in enumerate(PAYLOADS):
        send(publisher, number, payload)
    heard = events.heard()
    events.close()
    assert isinstance(heard[0], Cleared)
    assert len(heard[1:]) == len(PAYLOADS) > 3
    assert all(isinstance(event, Stored) and event.block == 32 for event in heard[1:])


def test_what_is_lost_is_counted(publisher: zmq.Socket[bytes]) -> None:
    events = KvEvents(f"tcp://*:{publisher.bind_to_random_port('tcp://127.0.0.1')}")
    send(publisher, 4, PAYLOADS[0])
    send(publisher, 7, PAYLOADS[1])  # two between
    send(publisher, 8, b"\xc1")
    publisher.send_multipart([b"kv", b"another shape"])
    send(publisher, 9, msgspec.msgpack.encode([0.0, [{"type": "BlockMoved"}]]))  # of a version to come
    assert len(events.heard()) == 3
    assert events.lost == 3
    assert events.heard(wait=False) == ()
    events.close()


def test_nobody_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("prefixguard.engines.kv_events._JOIN_MS", 50)
    with pytest.raises(ServerError, match="nobody publishes"):
        KvEvents("tcp://*:9")
    with pytest.raises(ServerError, match="cannot be heard"):
        KvEvents("no endpoint")
    with pytest.raises(ServerError, match="this machine alone"):
        KvEvents("tcp://192.0.2.7:5557")


def test_an_answer_is_not_waited_for_longer_than_its_events_take(publisher: zmq.Socket[bytes]) -> None:
    """Events may come a moment behind the answer: they still belong to it."""
    events = KvEvents(f"tcp://*:{publisher.bind_to_random_port('tcp://127.0.0.1')}")
    later = threading.Timer(0.03, send, (publisher, 0, PAYLOADS[0]))
    later.start()
    heard = events.heard()
    later.join()
    events.close()
    assert len(heard) == 2  # emptied, then stored, in one message
