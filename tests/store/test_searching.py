"""A text is found where it came into a session: not in every turn after, and in every spelling of JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from prefixguard.store import UNASSIGNED, Store

from .captures import KEY, OTHER, capture, conversation, words


@pytest.fixture
def store(target: str) -> Iterator[Store]:
    with Store.open(target) as store:
        yield store


def talk(*texts: str) -> dict[str, object]:
    return {"model": "m", "messages": [{"role": "user", "content": text} for text in texts]}


def test_a_text_is_found_once_in_a_session(store: Store) -> None:
    door = f"{words(1, 40)} Open it. {words(2, 40)}"
    window = f"{words(5, 40)} Close it. {words(6, 40)}"
    for turns in ([door], [door, words(9, 40)], [door, words(9, 40), window]):
        store.append(capture(talk(*turns)), KEY)
    store.append(capture(talk("close IT. But gently.")), OTHER)
    store.append(capture(talk("Close it.")), None)
    found = store.search("close it.")
    assert [(hit.session, hit.index) for hit in found] == [(UNASSIGNED, 0), ("ses_two", 0), ("ses_one", 2)]
    assert "Close it." in found[2].excerpt
    assert [hit.index for hit in store.search("open it")] == [0]
    assert store.search("a third thing") == []
    assert len(store.search("it.", most=2)) == 2


@pytest.mark.parametrize("ascii_only", [True, False])
def test_what_json_writes_otherwise_is_found(store: Store, ascii_only: bool) -> None:
    text = 'He said "Grüße"\nand left.'
    store.append(capture(json.dumps(talk(text), ensure_ascii=ascii_only).encode()), KEY)
    (hit,) = store.search('"Grüße"\nand')
    assert 'said "Grüße" and left' in hit.excerpt


def test_places_are_those_in_time(store: Store) -> None:
    bodies = [capture(body) for body in conversation(4)]
    for i in (0, 2, 1, 3):  # of two at a time, the first may end last
        store.append(bodies[i], KEY)
    read = [exchange.request for exchange in store.exchanges("ses_one")]
    text = json.loads(bodies[1].body)["messages"][-1]["content"][:40]
    found = store.search(text)
    assert found
    assert all(text in read[hit.index].decode() for hit in found)
