"""Bodies that were built and never sent: which API, which reply, and whether they are stable."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from prefixguard.errors import InputError
from prefixguard.testing import Recording, UnstablePrefixError, assert_prefix_stable
from prefixguard.testing.bodies import guess_path

HEAD = "You sort parcels for a post office on an island. Be exact and short. "


def chat(*said: str, head: str = HEAD) -> dict[str, Any]:
    turns = [{"role": ("user", "assistant")[i % 2], "content": text} for i, text in enumerate(said)]
    return {"model": "gpt-5.1", "messages": [{"role": "system", "content": head}, *turns]}


def messages(*said: str, head: str = HEAD) -> dict[str, Any]:
    return {
        "model": "claude-sonnet-5-5",
        "max_tokens": 9,
        "system": head,
        "messages": chat(*said)["messages"][1:],
    }


def responses(*said: str, head: str = HEAD) -> dict[str, Any]:
    return {"model": "gpt-5.1", "instructions": head, "input": chat(*said)["messages"][1:]}


def gemini(*said: str, head: str = HEAD) -> dict[str, Any]:
    roles = ("user", "model")
    turns = [{"role": roles[i % 2], "parts": [{"text": text}]} for i, text in enumerate(said)]
    return {"systemInstruction": {"parts": [{"text": head}]}, "contents": turns}


def bedrock(*said: str, head: str = HEAD) -> dict[str, Any]:
    roles = ("user", "assistant")
    turns = [{"role": roles[i % 2], "content": [{"text": text}]} for i, text in enumerate(said)]
    return {"system": [{"text": head}], "messages": turns, "inferenceConfig": {"maxTokens": 9}}


APIS = [chat, messages, responses, gemini, bedrock]


@pytest.mark.parametrize("api", APIS)
def test_a_conversation_that_grows_is_stable_in_every_api(api: Any) -> None:
    said = ["Where does parcel 7 go?", "To the north.", "And 8?", "To the south.", "Thanks."]
    assert_prefix_stable([api(*said[:n]) for n in (1, 3, 5)], min_ratio=1.0)


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("size", [1, 12])
def test_a_clock_in_the_head_is_found_in_every_api_however_small_the_prompt(api: Any, size: int) -> None:
    said = ["Where does parcel 7 go?", "North.", "And 8?"]
    bodies = [api(*said[:n], head=f"It is 10:00:0{n}. {HEAD * size}") for n in (1, 3)]
    with pytest.raises(UnstablePrefixError, match="PG101"):
        assert_prefix_stable(bodies)


def test_two_requests_on_one_question_with_other_instructions_are_two_conversations() -> None:
    router = chat("Where does parcel 7 go?", head="Say which office handles this question: north or south.")
    clerk = chat("Where does parcel 7 go?", head="You answer questions on parcels in one sentence.")
    assert_prefix_stable([router, clerk])


def test_the_list_of_one_agent_may_grow_between_calls() -> None:
    """What is handed in is taken as it is at that moment."""
    history = chat("Where does parcel 7 go?")
    recording = Recording()
    recording.record(history)
    before = copy.deepcopy(history)
    history["messages"] += [{"role": "assistant", "content": "North."}, {"role": "user", "content": "8?"}]
    recording.record(history)
    assert json.loads(recording.exchanges()[0].request) == before
    recording.assert_prefix_stable()


def test_a_reply_can_be_handed_in_and_bodies_can_be_text() -> None:
    recording = Recording()
    reply = {"choices": [{"message": {"role": "assistant", "content": "To the north, by the ferry."}}]}
    recording.record(json.dumps(chat("Where?")), path="/v1/chat/completions", response=reply)
    recording.record(json.dumps(chat("Where?", "To the north, by the ferry.", "8?")).encode())
    recording.assert_prefix_stable()


@pytest.mark.parametrize(
    ("body", "path"),
    [
        (chat("x"), "/v1/chat/completions"),
        (messages("x"), "/v1/messages"),
        ({"messages": [], "tools": [{"name": "t", "input_schema": {}}]}, "/v1/messages"),
        (responses("x"), "/v1/responses"),
        (gemini("x"), "/v1beta/models/unknown:generateContent"),
        ({"model": "m", "prompt": "x"}, "/v1/completions"),
    ],
)
def test_the_api_is_told_by_the_fields(body: Any, path: str) -> None:
    assert guess_path(json.dumps(body).encode()) == path


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"model": "m"}, "cannot tell which API"),
        (b"{", "no JSON"),
        (b"[1]", "a JSON object"),
        ([1], "a dictionary"),
        ({"messages": [object()]}, "no JSON"),
    ],
)
def test_what_is_no_body_is_told_in_one_line(body: Any, words: str) -> None:
    with pytest.raises(InputError, match=words) as caught:
        Recording().record(body)
    assert "\n" not in str(caught.value)


def test_models_of_an_sdk_are_written_as_it_would() -> None:
    class Block:
        def model_dump(self, **_: Any) -> dict[str, str]:
            return {"type": "text", "text": "North."}

    body = messages("Where?")
    body["messages"].append({"role": "assistant", "content": [Block()]})
    recording = Recording()
    recording.record(body)
    assert b'{"type":"text","text":"North."}' in recording.exchanges()[0].request
