"""Bodies of every API are read as the server reads them: the same text, the same number of tokens.

The oracle is the server itself: it shows the text that its slot holds, and it
counts the tokens of the prompt. Neither knows of our conversion.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from prefixguard.engines import LaunchedServer
from prefixguard.engines.client import JsonClient
from prefixguard.engines.llamacpp import LlamaCpp
from prefixguard.exchange import Exchange
from tests.real.conftest import Servers

type Body = dict[str, Any]

# Letters in and out of merges, marks that templates and JSON care about, other scripts.
TEXT = st.text(st.sampled_from("the weather ABC 019 \n\t\"\\{}[]<>&'/éß漢😀"), max_size=24)
WORDS = TEXT.filter(str.strip)
NAME = st.sampled_from(["read", "search", "weather"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | TEXT | st.floats(-1e6, 1e6, width=32),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
ARGUMENTS = st.dictionaries(TEXT, JSON, max_size=3)
SCHEMA = st.dictionaries(
    st.sampled_from(["path", "city", "text"]), st.just({"type": "string"}), max_size=3
).map(lambda properties: {"type": "object", "properties": properties})


@st.composite
def anthropic_bodies(draw: st.DrawFn) -> Body:
    body: Body = {"model": "tiny", "messages": []}
    block = TEXT.map(lambda text: {"type": "text", "text": text})
    system = draw(st.none() | TEXT | st.lists(block, max_size=3))
    if system is not None:
        body["system"] = system
    stamp = draw(
        st.sampled_from(
            ["", "x-anthropic-billing-header: v=1; cch=a51c5; ", "x-anthropic-billing-header: cch"]
        )
    )
    if stamp and isinstance(system, str):
        body["system"] = stamp + system
    tool = st.fixed_dictionaries({"name": NAME, "description": TEXT, "input_schema": SCHEMA})
    if tools := draw(st.lists(tool, max_size=2, unique_by=lambda t: t["name"])):
        body["tools"] = tools
    for turn in range(draw(st.integers(1, 3))):
        asked = draw(WORDS | st.lists(block, min_size=1, max_size=3))
        body["messages"].append({"role": "user", "content": asked})
        if draw(st.booleans()):
            continue
        call = {"type": "tool_use", "id": f"t{turn}", "name": draw(NAME), "input": draw(ARGUMENTS)}
        thought = (
            [{"type": "thinking", "thinking": draw(WORDS), "signature": ""}] if draw(st.booleans()) else []
        )
        said = [draw(block)] if draw(st.booleans()) else []
        body["messages"].append({"role": "assistant", "content": [*thought, *said, call]})
        result = draw(st.none() | TEXT | st.lists(block, max_size=2))
        answer: Body = {"type": "tool_result", "tool_use_id": f"t{turn}"}
        if result is not None:
            answer["content"] = result
        after = [draw(block)] if draw(st.booleans()) else []
        body["messages"].append({"role": "user", "content": [answer, *after]})
    return body


@st.composite
def responses_bodies(draw: st.DrawFn) -> Body:
    items: list[Body] = []
    part = TEXT.map(lambda text: {"type": "input_text", "text": text})
    for turn in range(draw(st.integers(1, 3))):
        role = draw(st.sampled_from(["user", "user", "developer"]))
        asked = draw(WORDS | st.lists(part, min_size=1, max_size=2))
        items.append({"role": role, "content": asked} | draw(st.sampled_from([{}, {"type": "message"}])))
        if draw(st.booleans()):
            continue
        if draw(st.booleans()):
            text = {"type": "reasoning_text", "text": draw(WORDS)}
            items.append({"type": "reasoning", "id": "r", "summary": [], "content": [text]})
        if draw(st.booleans()):
            said = {"type": "output_text", "text": draw(TEXT), "annotations": []}
            items.append({"type": "message", "role": "assistant", "status": "completed", "content": [said]})
        for n in range(draw(st.integers(1, 2))):
            arguments = json.dumps(draw(ARGUMENTS))
            call = {
                "type": "function_call",
                "call_id": f"c{turn}{n}",
                "name": draw(NAME),
                "arguments": arguments,
            }
            items += [call, {"type": "function_call_output", "call_id": f"c{turn}{n}", "output": draw(TEXT)}]
    body: Body = {"model": "tiny", "input": items}
    if draw(st.booleans()):
        body["instructions"] = draw(TEXT)
    tool = st.builds(
        lambda name, what, schema: {
            "type": "function", "name": name, "description": what, "parameters": schema,
        },
        NAME, TEXT, SCHEMA,
    )  # fmt: skip
    if tools := draw(st.lists(tool, max_size=2, unique_by=lambda t: t["name"])):
        body["tools"] = tools
    return body


@st.composite
def chat_bodies(draw: st.DrawFn) -> Body:
    messages: list[Body] = [{"role": "system", "content": draw(TEXT)}] if draw(st.booleans()) else []
    part = TEXT.map(lambda text: {"type": "text", "text": text})
    for turn in range(draw(st.integers(1, 3))):
        messages.append({"role": "user", "content": draw(WORDS | st.lists(part, min_size=1, max_size=2))})
        if draw(st.booleans()):
            continue
        function = {"name": draw(NAME), "arguments": json.dumps(draw(ARGUMENTS))}
        call = {"id": f"c{turn}", "type": "function", "function": function}
        said: Body = {"role": "assistant", "content": draw(st.none() | TEXT), "tool_calls": [call]}
        if draw(st.booleans()):
            said["reasoning_content"] = draw(WORDS)
        messages += [said, {"role": "tool", "tool_call_id": f"c{turn}", "content": draw(TEXT)}]
    body: Body = {"model": "tiny", "messages": messages}
    function = st.fixed_dictionaries({"name": NAME, "description": TEXT, "parameters": SCHEMA})
    if tools := draw(st.lists(function, max_size=2, unique_by=lambda t: t["name"])):
        body["tools"] = [{"type": "function", "function": tool} for tool in tools]
    if draw(st.booleans()):
        body["chat_template_kwargs"] = {"enable_thinking": draw(st.booleans())}
    return body


SENT: dict[str, tuple[st.SearchStrategy[Body], str, Callable[[Body], int]]] = {
    "/v1/chat/completions": (chat_bodies(), "max_tokens", lambda u: u["prompt_tokens"]),
    "/v1/responses": (responses_bodies(), "max_output_tokens", lambda u: u["input_tokens"]),
    "/v1/messages": (
        anthropic_bodies(),
        "max_tokens",
        lambda u: u["input_tokens"] + u["cache_read_input_tokens"],
    ),
}


@pytest.mark.parametrize("path", SENT)
@pytest.mark.parametrize("template", ["tools", "thinking"])
def test_the_server_holds_the_text_that_we_render(servers: Servers, template: str, path: str) -> None:
    server = servers.any(template)
    bodies, limit, counted = SENT[path]
    client = JsonClient(server.url)

    @settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
    @given(bodies)
    def every_body(body: Body) -> None:
        request = {**body, limit: 1, "temperature": 0}
        response = client.post(path, request)
        # A usage that contradicts the rendering would give None: so it is left out here and compared below.
        exchange = Exchange(0.0, path, json.dumps(request, ensure_ascii=False).encode())
        rendered = server.engine.render(exchange)
        assert rendered is not None, server.engine.problem
        assert len(rendered.prompt) == counted(response["usage"])
        assert client.post("/detokenize", {"tokens": rendered.prompt.tolist()})["content"] == held(client)
        assert server.engine.render(
            Exchange(0.0, path, exchange.request, response=json.dumps(response).encode())
        )

    every_body()


def held(client: JsonClient) -> str:
    """The text of the prompt that the server's slot evaluated last."""
    slot = client.get("/slots")[0]
    prompt: str = slot["prompt"]
    return prompt


def completed(server: LaunchedServer, path: str, body: Body) -> Exchange:
    """Posts a body and gives the exchange."""
    response = JsonClient(server.url).post(path, body)
    return Exchange(0.0, path, json.dumps(body).encode(), response=json.dumps(response).encode())


@pytest.mark.parametrize("path", ["/completion", "/v1/completions"])
@pytest.mark.parametrize(
    "prompt",
    ["the weather<|im_end|> ABC", [70, 71, 72, 300], ["the weather"], ["the weather", 70, 71, "and now"]],
    ids=["text", "ids", "a list of one", "mixed"],
)
def test_raw_prompts(servers: Servers, path: str, prompt: object) -> None:
    server = servers.any()
    exchange = completed(server, path, {"prompt": prompt, "n_predict": 9, "max_tokens": 9, "temperature": 0})
    rendered = server.engine.render(exchange)
    assert rendered is not None, server.engine.problem
    assert rendered.reply is not None
    if isinstance(prompt, list) and len(prompt) > 1 and isinstance(prompt[0], int):
        assert rendered.prompt.tolist() == prompt
    again = completed(
        server, "/completion", {"prompt": [*rendered.prompt, *rendered.reply, 5, 6], "n_predict": 1}
    )
    assert again.response is not None
    assert json.loads(again.response)["timings"]["cache_n"] == len(rendered.prompt) + len(rendered.reply)


def test_sampled_ids_are_taken_where_the_server_gives_them(servers: Servers) -> None:
    server = servers.any()
    body = {"prompt": "the weather", "n_predict": 7, "temperature": 0, "return_tokens": True}
    exchange = completed(server, "/completion", body)
    assert exchange.response is not None
    rendered = server.engine.render(exchange)
    assert rendered is not None
    assert rendered.reply == array("i", json.loads(exchange.response)["tokens"][:-1])


@pytest.mark.parametrize("path", SENT)
def test_a_reply_of_reasoning_only_is_read_as_what_was_sampled(servers: Servers, path: str) -> None:
    """The thinking template opens the reasoning itself, and this model never closes it."""
    server = servers.any("thinking")
    question = (
        {"input": "a question"} if "responses" in path else {"messages": [{"role": "user", "content": "q"}]}
    )
    exchange = completed(server, path, {"model": "tiny", **question, SENT[path][1]: 12, "temperature": 0})
    rendered = server.engine.render(exchange)
    assert rendered is not None
    assert rendered.reply is not None
    follow = [*rendered.prompt, *rendered.reply, 5]
    again = completed(server, "/completion", {"prompt": follow, "n_predict": 1})
    assert again.response is not None
    assert json.loads(again.response)["timings"]["cache_n"] == len(follow) - 1


@pytest.mark.parametrize(
    ("path", "body", "why"),
    [
        ("/v1/chat/completions", {"messages": [], "n": 2}, "several choices"),
        ("/v1/chat/completions", {"messages": "hi"}, "no list of messages"),
        ("/v1/messages", {"messages": [{"role": "user", "content": [{"type": "image"}]}]}, "image"),
        ("/v1/responses", {"input": "hi", "previous_response_id": "r1"}, "earlier responses"),
        ("/v1/responses", {"input": [{"type": "computer_call"}]}, "computer_call"),
        ("/v1/embeddings", {"input": "hi"}, "no path"),
        ("/completion", {"prompt": ["one", "two"]}, "several prompts"),
        ("/completion", {"prompt": {"a": 1}}, "neither text nor token ids"),
        ("/completion", [1, 2], "no JSON object"),
    ],
)
def test_what_cannot_be_rendered_is_none_and_says_why(
    servers: Servers, path: str, body: object, why: str
) -> None:
    engine = servers.any().engine
    assert engine.render(Exchange(0.0, path, json.dumps(body).encode())) is None
    assert why in (engine.problem or "")


def test_a_count_that_contradicts_the_rendering_is_believed(servers: Servers) -> None:
    """Another model behind the same address: the ids would be wrong, so there are none."""
    engine = servers.any().engine
    request = b'{"model": "m", "messages": [{"role": "user", "content": "hi"}]}'
    usage = b'{"usage": {"prompt_tokens": 999, "prompt_tokens_details": {"cached_tokens": 0}}}'
    assert engine.render(Exchange(0.0, "/v1/chat/completions", request, response=usage)) is None
    assert "999" in (engine.problem or "")


def test_a_server_that_is_gone_renders_nothing(servers: Servers) -> None:
    engine = LlamaCpp(servers.any().url)
    engine._client.url = "http://127.0.0.1:9"
    request = b'{"messages": [{"role": "user", "content": "hi"}]}'
    assert engine.render(Exchange(0.0, "/v1/chat/completions", request)) is None
    assert "does not answer" in (engine.problem or "")
