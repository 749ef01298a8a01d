"""A recorded request, asked again: the prompt stays, what only concerns the answer is ours."""

from __future__ import annotations

import json
from typing import Any

import pytest

from prefixguard.engines.replay.bodies import NotReplayedError, asked_again
from prefixguard.exchange import Exchange

MESSAGES = [{"role": "user", "content": "häl\u2028lo"}]


def exchange(path: str, body: Any, **more: Any) -> Exchange:
    return Exchange(0.0, path, body if isinstance(body, bytes) else json.dumps(body).encode(), **more)


def again(path: str, body: Any, **more: Any) -> tuple[str, dict[str, Any]]:
    asked = asked_again(exchange(path, body), model="tiny", reply_tokens=2, **more)
    return asked.path, json.loads(asked.body)


@pytest.mark.parametrize(
    ("path", "now", "body", "limit"),
    [
        ("/openai/v1/chat/completions", "/v1/chat/completions", {"messages": MESSAGES}, "max_tokens"),
        ("/v1/responses", "/v1/responses", {"input": "x"}, "max_output_tokens"),
        ("/anthropic/v1/messages?beta=true", "/v1/messages", {"messages": MESSAGES}, "max_tokens"),
        ("/v1/completions", "/v1/completions", {"prompt": "x"}, "max_tokens"),
        ("/completion", "/completion", {"prompt": "x"}, "n_predict"),
    ],
)
def test_the_prompt_stays(path: str, now: str, body: dict[str, Any], limit: str) -> None:
    recorded = {"model": "big", **body, "max_completion_tokens": 9000, "n": 3, "tools": [{"b": 1, "a": 2}]}
    place, sent = again(path, recorded)
    assert place == now
    assert (sent["model"], sent[limit], sent["stream"]) == ("tiny", 2, True)
    assert {k: sent[k] for k in body} == body
    assert list(sent["tools"][0]) == ["b", "a"]
    assert not sent.keys() & {"max_completion_tokens", "n"}


def test_added_fields_and_forbidden_calls() -> None:
    body = {"messages": MESSAGES, "tools": [{"name": "x"}], "tool_choice": "auto"}
    _, chat = again("/v1/chat/completions", body, extra={"cache_salt": "s"}, no_calls=True)
    assert (chat["tool_choice"], chat["cache_salt"]) == ("none", "s")
    _, messages = again("/v1/messages", body, no_calls=True)
    assert messages["tool_choice"] == {"type": "none"}
    _, without = again("/v1/chat/completions", {"messages": MESSAGES}, no_calls=True)
    assert "tool_choice" not in without


@pytest.mark.parametrize(
    ("recorded", "why"),
    [
        (exchange("/v1/models", {}), "no prompt"),
        (exchange("/v1/messages/count_tokens", {"messages": MESSAGES}), "no prompt"),
        (exchange("/v1/chat/completions", {"messages": MESSAGES}, status=529), "status 529"),
        (exchange("/v1/chat/completions", b"\xff{"), "JSON"),
        (exchange("/v1/chat/completions", []), "JSON"),
        (exchange("/v1/responses", {"input": "x", "previous_response_id": "r"}), "earlier response"),
        (exchange("/v1beta/models/gemini:generateContent", {"contents": []}), "gemini"),
    ],
)
def test_what_cannot_be_asked_again_says_why(recorded: Exchange, why: str) -> None:
    with pytest.raises(NotReplayedError, match=why):
        asked_again(recorded, model="tiny", reply_tokens=1)
