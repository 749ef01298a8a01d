"""A body read on from a bookmark gives what reading it whole gives, whatever was changed in it."""

from __future__ import annotations

import json
import random
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prefixguard.exchange import Exchange
from prefixguard.wire import decoder as decoder_module
from prefixguard.wire.decoder import Decoder, UnreadableError

from .any_json import bodies, encoded, values
from .reading import PARAMETERS

PATH = "/v1/messages"


def fresh() -> Decoder:
    return Decoder({"*": PARAMETERS})


def same(decoder: Decoder, raw: bytes, path: str = PATH) -> None:
    """The decoder that has seen other bodies says what one says that has seen none."""
    exchange = Exchange(0.0, path, raw)
    try:
        expected = fresh().prompt(exchange)
    except UnreadableError as error:
        why = str(error)
        with pytest.raises(UnreadableError, match=re.escape(why) + "$"):
            decoder.prompt(exchange)
        return
    prompt = decoder.prompt(exchange)
    assert [(p, s.pointer, s.exact, s.alike, s.mark, s.shape) for p, s in prompt.entries] == [
        (p, s.pointer, s.exact, s.alike, s.mark, s.shape) for p, s in expected.entries
    ]
    assert (prompt.parameters, prompt.model, prompt.stream, prompt.link, prompt.automatic_mark) == (
        expected.parameters,
        expected.model,
        expected.stream,
        expected.link,
        expected.automatic_mark,
    )
    assert [len(g) for g in (prompt.tools, prompt.head, prompt.history)] == [
        len(g) for g in (expected.tools, expected.head, expected.history)
    ]


def scanned(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many bytes each whole scan of a body reads, from now on."""
    sizes: list[int] = []

    class Body(decoder_module.Body):
        __slots__ = ()

        def __init__(self, raw: bytes) -> None:
            sizes.append(len(raw))
            super().__init__(raw)

    monkeypatch.setattr(decoder_module, "Body", Body)
    return sizes


def body(messages: list[Any], **more: Any) -> bytes:
    return json.dumps({"model": "m", "system": "Be brief.", "messages": messages, **more}).encode()


def said(n: int, **more: Any) -> dict[str, Any]:
    text = {"type": "text", "text": f"message {n} " * 20, **more}
    return {"role": "user" if n % 2 == 0 else "assistant", "content": [text]}


def test_history_that_grows_is_scanned_once(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = scanned(monkeypatch)
    decoder = fresh()
    for n in range(1, 30):
        decoder.prompt(Exchange(0.0, PATH, body([said(i) for i in range(n)], stream=True)))
    assert len(sizes) == 1
    for n in range(1, 30):
        same(decoder, body([said(i) for i in range(n)], stream=True))


def test_breakpoint_that_moves_on_is_no_reason_to_scan_again(monkeypatch: pytest.MonkeyPatch) -> None:
    marked = {"cache_control": {"type": "ephemeral"}}

    def turn(n: int) -> bytes:
        return body([said(i, **(marked if i >= n - 1 or i == n - 3 else {})) for i in range(n)])

    decoder, seen = fresh(), fresh()
    for n in range(1, 30, 2):
        same(seen, turn(n))
    sizes = scanned(monkeypatch)
    for n in range(1, 30, 2):
        decoder.prompt(Exchange(0.0, PATH, turn(n)))
    assert len(sizes) <= 3


MUTATIONS = 400


def test_bodies_with_anything_changed_in_them() -> None:
    chance = random.Random(7)
    decoder = fresh()
    messages: list[Any] = [said(0)]
    fields: dict[str, Any] = {"tool_choice": {"type": "auto"}, "stream": False}
    for n in range(1, MUTATIONS):
        match chance.randrange(10):
            case 0:
                messages[chance.randrange(len(messages))] = said(chance.randrange(1000))
            case 1:
                del messages[chance.randrange(len(messages)) :]
            case 2:
                messages.insert(chance.randrange(len(messages) + 1), said(n))
            case 3:
                fields["stream"] = not fields["stream"]
            case 4:
                fields = dict(chance.sample(list(fields.items()), len(fields)))
        messages.append(said(n))
        del messages[:-25]
        spaces = chance.choice([(",", ":"), (", ", ": "), (" ,\n", " :\t")])
        before = {"model": "m", "system": f"System {chance.randrange(2)}."}
        made = {**before, "messages": messages, **fields}
        if chance.random() < 0.2:
            made = dict(chance.sample(list(made.items()), len(made)))
        same(decoder, json.dumps(made, separators=spaces).encode())


@settings(max_examples=120, deadline=None)
@given(
    first=bodies,
    second=bodies | values,
    path=st.sampled_from([PATH, "/v1/responses", "/v1/chat/completions"]),
)
def test_any_two_bodies(first: Any, second: Any, path: str) -> None:
    decoder = fresh()
    for one in (first, second, first):
        same(decoder, encoded(one), path)


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_damaged_behind_the_bookmark(data: st.DataObject) -> None:
    whole = body([said(i) for i in range(4)], stream=True, metadata={"messages": [1]})
    longer = body([said(i) for i in range(6)], stream=True, metadata={"messages": [1]})
    decoder = fresh()
    same(decoder, whole)
    damaged = bytearray(longer)
    for _ in range(data.draw(st.integers(0, 2))):
        at = data.draw(st.integers(len(whole) - 120, len(longer) - 1))
        damaged[at] = data.draw(st.sampled_from(list(b'",:[]{} \\0a')))
    cut = data.draw(st.integers(len(whole) - 60, len(longer)))
    same(decoder, bytes(damaged))
    same(decoder, bytes(damaged[:cut]))


RESTS = """
], "messages": []}
], "messages": [{"role": "user", "content": "other"}]}
], "model": "other"}
,]}
]
]} x
, {"role": "user", "content": "more"}]}
], "\\u0000": [1]}
], "system": "late"}
  ]  }
""".strip("\n").split("\n")


@pytest.mark.parametrize("rest", RESTS)
def test_rests_that_are_odd(rest: str) -> None:
    start = (
        b'{"model": "m", "system": "Be brief.", "messages": [{"role": "user", "content": "Hello, all of you"}'
    )
    decoder = fresh()
    same(decoder, start + b"]}")
    same(decoder, start + rest.encode())
    same(decoder, start + rest.encode())


def test_history_named_inside_another_field_first() -> None:
    decoder = fresh()
    for n in range(1, 6):
        inner = {"messages": [said(i) for i in range(n)]}
        same(decoder, json.dumps({"metadata": inner, "messages": [said(i) for i in range(n)]}).encode())
        same(decoder, json.dumps({"note": '"messages": [', "messages": [said(i) for i in range(n)]}).encode())


def test_the_same_bytes_on_another_path_are_read_in_that_format() -> None:
    decoder = fresh()
    raw = body([said(0), said(1)])
    same(decoder, raw, "/v1/messages")
    same(decoder, raw, "/v1/chat/completions")
    same(decoder, raw, "/v1/messages")
