"""Replies that are more than text: what the model sampled is found again from what the API made of it.

The model says one thing only, whatever it is asked: a tool call, or a thought
and an answer. Its words are laid out as the template would lay them out, or not.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from prefixguard.engines import LaunchedServer, launch
from prefixguard.engines.client import JsonClient
from prefixguard.exchange import Exchange
from tests.real.conftest import TEMPLATES, emptied
from tests.real.tiny_model import write_scripted_llama

type Body = dict[str, Any]

CALL = ("<tool_call>", '\n{"name": "read", "arguments": {"path": "notes.txt"}}\n', "</tool_call>")
TIGHT_CALL = ("<tool_call>", '\n{"name":"read",', '"arguments":{"path":"notes.txt"}}\n', "</tool_call>")
THOUGHT = ("I think of rain", "\n</think>\n\n", "It rains.")

SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
FUNCTION = {"name": "read", "description": "read a file", "parameters": SCHEMA}
ASKED: dict[str, Body] = {
    "/v1/chat/completions": {
        "messages": [{"role": "user", "content": "what is in my notes?"}],
        "tools": [{"type": "function", "function": FUNCTION}],
        "max_tokens": 20,
    },
    "/v1/responses": {
        "input": [{"role": "user", "content": "what is in my notes?"}],
        "tools": [{"type": "function", **FUNCTION}],
        "max_output_tokens": 20,
    },
    "/v1/messages": {
        "messages": [{"role": "user", "content": "what is in my notes?"}],
        "tools": [{"name": "read", "description": "read a file", "input_schema": SCHEMA}],
        "max_tokens": 20,
    },
}


def continued(path: str, request: Body, response: Body) -> Body:
    """The next request: the reply as its API wants it back, and its call's result or one more question."""
    if path == "/v1/chat/completions":
        said = response["choices"][0]["message"]
        calls = said.get("tool_calls") or []
        more = [said, *({"role": "tool", "tool_call_id": call["id"], "content": "rain"} for call in calls)]
        more += [] if calls else [{"role": "user", "content": "and then?"}]
        return {**request, "messages": [*request["messages"], *more]}
    if path == "/v1/responses":
        said = response["output"]
        calls = [item["call_id"] for item in said if item["type"] == "function_call"]
        more = [
            *said,
            *({"type": "function_call_output", "call_id": call, "output": "rain"} for call in calls),
        ]
        more += [] if calls else [{"role": "user", "content": "and then?"}]
        return {**request, "input": [*request["input"], *more]}
    said = response["content"]
    calls = [block["id"] for block in said if block["type"] == "tool_use"]
    results: list[Body] = [{"type": "tool_result", "tool_use_id": call, "content": "rain"} for call in calls]
    answer = results or [{"type": "text", "text": "and then?"}]
    more = [{"role": "assistant", "content": said}, {"role": "user", "content": answer}]
    return {**request, "messages": [*request["messages"], *more]}


def exchange(path: str, request: Body, response: Body) -> Exchange:
    return Exchange(0.0, path, json.dumps(request).encode(), response=json.dumps(response).encode())


def asked(server: LaunchedServer, path: str) -> tuple[Exchange, Exchange, int]:
    """Two turns, and the cached tokens that the server reports of the second."""
    client = JsonClient(server.url)
    emptied(server.url)
    request = {"model": "tiny", "temperature": 0, **ASKED[path]}
    response = client.post(path, request)
    following = continued(path, request, response)
    answer = client.post(path, following)
    usage = answer["usage"]
    details = usage.get("prompt_tokens_details") or usage.get("input_tokens_details") or {}
    cached = usage.get("cache_read_input_tokens", details.get("cached_tokens"))
    assert isinstance(cached, int)
    return exchange(path, request, response), exchange(path, following, answer), cached


@pytest.mark.parametrize("path", ASKED)
@pytest.mark.parametrize(
    ("template", "script"), [("tools", CALL), ("thinking", THOUGHT)], ids=["tool-call", "thought"]
)
def test_a_reply_that_the_template_repeats_is_known_exactly(
    tmp_path: Path, path: str, template: str, script: tuple[str, ...]
) -> None:
    model = write_scripted_llama(tmp_path / "scripted.gguf", "{{ messages[0].content }}", script)
    with launch(model, template=TEMPLATES[template], threads=1) as server:
        first, second, cached = asked(server, path)
        one, two = server.engine.render(first), server.engine.render(second)
    assert one is not None
    assert two is not None
    assert one.reply is not None
    assert len(one.reply) == len(script)
    state = one.prompt + one.reply
    shared = next((i for i, (a, b) in enumerate(zip(state, two.prompt, strict=False)) if a != b), len(state))
    assert min(shared, len(two.prompt) - 1) == cached
    if template == "tools":
        assert cached == len(state)


@pytest.mark.parametrize("path", ASKED)
def test_a_reply_that_the_template_lays_out_otherwise_is_unknown(tmp_path: Path, path: str) -> None:
    """The model wrote its JSON without blanks: nobody can tell from the parsed call."""
    model = write_scripted_llama(tmp_path / "scripted.gguf", "{{ messages[0].content }}", TIGHT_CALL)
    with launch(model, template=TEMPLATES["tools"], threads=1) as server:
        first, second, cached = asked(server, path)
        one, two = server.engine.render(first), server.engine.render(second)
    assert one is not None
    assert two is not None
    assert one.reply is None
    assert two.prompt[: len(one.prompt)] == one.prompt
    assert len(one.prompt) <= cached < len(one.prompt) + len(TIGHT_CALL)
