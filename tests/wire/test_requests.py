"""Each API's request as segments: groups, order, pointers, kinds, marks, parameters, links."""

from __future__ import annotations

import json
from typing import Any

import pytest

from prefixguard.exchange import Exchange
from prefixguard.prompt import HEAD_FIRST, Mark, Prompt
from prefixguard.wire.decoder import Decoder, UnreadableError

from .reading import PARAMETERS, exchange, read, resolve

SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}}


def told(prompt: Prompt) -> list[tuple[str, str, str, str]]:
    """(group, kind, role, pointer) of each segment, in rendered order."""
    return [(prompt.group(i), s.kind.value, s.role, prompt.pointer(i)) for i, s in enumerate(prompt.segments)]


CHAT = {
    "model": "gpt-5.2",
    "messages": [
        {"role": "developer", "content": "Be brief."},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "What is this?"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA", "detail": "low"}},
            ],
        },
        {
            "role": "assistant",
            "reasoning_content": "I look.",
            "content": "Let me see.",
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "read", "arguments": '{"path": "a"}'}},
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "the file"},
        {"role": "system", "content": "A reminder."},
    ],
    "tools": [{"type": "function", "function": {"name": "read", "parameters": SCHEMA}}],
    "tool_choice": "auto",
    "stream": True,
    "temperature": 0,
}

RESPONSES = {
    "model": "gpt-5.2",
    "instructions": "Be brief.",
    "input": [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hello"}]},
        {
            "type": "reasoning",
            "id": "rs_1",
            "summary": [{"type": "summary_text", "text": "hm"}],
            "encrypted_content": "x",
        },
        {
            "type": "function_call",
            "id": "fc",
            "call_id": "c1",
            "name": "read",
            "arguments": "{}",
            "status": "completed",
        },
        {"type": "function_call_output", "call_id": "c1", "output": "the file"},
        {"role": "assistant", "content": "Done."},
    ],
    "tools": [{"type": "function", "name": "read", "parameters": SCHEMA}, {"type": "web_search"}],
    "reasoning": {"effort": "high"},
    "previous_response_id": "resp_0",
}

ANTHROPIC = {
    "model": "claude-opus-4-8",
    "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral", "ttl": "1h"}}],
    "tools": [{"name": "read", "input_schema": SCHEMA}],
    "messages": [
        {"role": "user", "content": "Hello"},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": "s"},
                {"type": "text", "text": "Let me see."},
                {"type": "tool_use", "id": "t1", "name": "read", "input": {"path": "a"}},
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "t1",
                    "is_error": True,
                    "content": [
                        {"type": "text", "text": "no such file"},
                        {
                            "type": "image",
                            "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"},
                        },
                    ],
                },
                {"type": "text", "text": "Go on.", "cache_control": {"type": "ephemeral"}},
            ],
        },
    ],
    "tool_choice": {"type": "auto"},
}

GEMINI = {
    "systemInstruction": {"parts": [{"text": "Be brief."}]},
    "tools": [{"functionDeclarations": [{"name": "read", "parameters": SCHEMA}, {"name": "list"}]}],
    "contents": [
        {
            "role": "user",
            "parts": [{"text": "Hello"}, {"inlineData": {"mimeType": "image/png", "data": "AAAA"}}],
        },
        {
            "role": "model",
            "parts": [
                {"text": "hm", "thought": True},
                {"functionCall": {"name": "read", "args": {"path": "a"}}, "thoughtSignature": "c2ln"},
            ],
        },
        {"role": "user", "parts": [{"functionResponse": {"name": "read", "response": {"output": "x"}}}]},
    ],
}

BEDROCK = {
    "system": [{"text": "Be brief."}, {"cachePoint": {"type": "default"}}],
    "toolConfig": {"tools": [{"toolSpec": {"name": "read", "inputSchema": {"json": SCHEMA}}}]},
    "messages": [
        {"role": "user", "content": [{"text": "Hello"}, {"cachePoint": {"type": "default", "ttl": "1h"}}]},
        {
            "role": "assistant",
            "content": [
                {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "s"}}},
                {"toolUse": {"toolUseId": "t1", "name": "read", "input": {"path": "a"}}},
            ],
        },
        {"role": "user", "content": [{"toolResult": {"toolUseId": "t1", "content": [{"text": "the file"}]}}]},
    ],
}

OLLAMA = {
    "model": "qwen3:8b",
    "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "What is this?", "images": ["AAAA"]},
        {
            "role": "assistant",
            "thinking": "hm",
            "content": "",
            "tool_calls": [
                {"function": {"name": "read", "arguments": {"path": "a"}}},
            ],
        },
        {"role": "tool", "tool_name": "read", "content": "the file"},
    ],
    "tools": [{"type": "function", "function": {"name": "read", "parameters": SCHEMA}}],
}

EXPECTED = [
    pytest.param(
        "/v1/chat/completions",
        CHAT,
        "openai-chat",
        [
            ("tools", "tool", "system", "/tools/0"),
            ("head", "text", "system", "/messages/0/content"),
            ("history", "text", "user", "/messages/1/content/0/text"),
            ("history", "media", "user", "/messages/1/content/1"),
            ("history", "reasoning", "assistant", "/messages/2/reasoning_content"),
            ("history", "text", "assistant", "/messages/2/content"),
            ("history", "tool-call", "assistant", "/messages/2/tool_calls/0/function/arguments"),
            ("history", "tool-result", "tool", "/messages/3/content"),
            ("history", "text", "system", "/messages/4/content"),
        ],
        id="openai-chat",
    ),
    pytest.param(
        "/v1/responses",
        RESPONSES,
        "openai-responses",
        [
            ("tools", "tool", "system", "/tools/0"),
            ("tools", "tool", "system", "/tools/1"),
            ("head", "text", "system", "/instructions"),
            ("history", "text", "user", "/input/0/content/0/text"),
            ("history", "reasoning", "assistant", "/input/1"),
            ("history", "tool-call", "assistant", "/input/2/arguments"),
            ("history", "tool-result", "tool", "/input/3/output"),
            ("history", "text", "assistant", "/input/4/content"),
        ],
        id="openai-responses",
    ),
    pytest.param(
        "/v1/messages",
        ANTHROPIC,
        "anthropic-messages",
        [
            ("tools", "tool", "system", "/tools/0"),
            ("head", "text", "system", "/system/0/text"),
            ("history", "text", "user", "/messages/0/content"),
            ("history", "reasoning", "assistant", "/messages/1/content/0"),
            ("history", "text", "assistant", "/messages/1/content/1/text"),
            ("history", "tool-call", "assistant", "/messages/1/content/2"),
            ("history", "tool-result", "tool", "/messages/2/content/0"),
            ("history", "media", "tool", "/messages/2/content/0/content/1"),
            ("history", "text", "user", "/messages/2/content/1/text"),
        ],
        id="anthropic",
    ),
    pytest.param(
        "/v1beta/models/gemini-2.5-pro:generateContent",
        GEMINI,
        "gemini",
        [
            ("tools", "tool", "system", "/tools/0/functionDeclarations/0"),
            ("tools", "tool", "system", "/tools/0/functionDeclarations/1"),
            ("head", "text", "system", "/systemInstruction/parts/0/text"),
            ("history", "text", "user", "/contents/0/parts/0/text"),
            ("history", "media", "user", "/contents/0/parts/1"),
            ("history", "reasoning", "assistant", "/contents/1/parts/0"),
            ("history", "tool-call", "assistant", "/contents/1/parts/1"),
            ("history", "reasoning", "assistant", "/contents/1/parts/1/thoughtSignature"),
            ("history", "tool-result", "tool", "/contents/2/parts/0"),
        ],
        id="gemini",
    ),
    pytest.param(
        "/model/anthropic.claude-x/converse",
        BEDROCK,
        "bedrock-converse",
        [
            ("tools", "tool", "system", "/toolConfig/tools/0"),
            ("head", "text", "system", "/system/0/text"),
            ("history", "text", "user", "/messages/0/content/0/text"),
            ("history", "reasoning", "assistant", "/messages/1/content/0"),
            ("history", "tool-call", "assistant", "/messages/1/content/1"),
            ("history", "tool-result", "tool", "/messages/2/content/0"),
        ],
        id="bedrock",
    ),
    pytest.param(
        "/api/chat",
        OLLAMA,
        "ollama-chat",
        [
            ("tools", "tool", "system", "/tools/0"),
            ("head", "text", "system", "/messages/0/content"),
            ("history", "text", "user", "/messages/1/content"),
            ("history", "media", "user", "/messages/1/images/0"),
            ("history", "reasoning", "assistant", "/messages/2/thinking"),
            ("history", "tool-call", "assistant", "/messages/2/tool_calls/0/function/arguments"),
            ("history", "tool-result", "tool", "/messages/3/content"),
        ],
        id="ollama",
    ),
    pytest.param(
        "/v1/completions",
        {"prompt": "Once"},
        "completions",
        [("history", "text", "user", "/prompt")],
        id="completions",
    ),
    pytest.param(
        "/completion",
        {"prompt": ["Once", [1, 2]]},
        "llamacpp",
        [("history", "text", "user", "/prompt/0"), ("history", "other", "user", "/prompt/1")],
        id="llamacpp",
    ),
]


@pytest.mark.parametrize(("path", "body", "api", "segments"), EXPECTED)
def test_request_becomes_segments(path: str, body: Any, api: str, segments: list[tuple[str, ...]]) -> None:
    prompt = read(path, body)
    assert prompt.api == api
    assert told(prompt) == segments
    for i in range(len(prompt.segments)):
        resolve(body, prompt.pointer(i))  # every pointer leads somewhere


@pytest.mark.parametrize(("path", "body", "api", "segments"), EXPECTED)
def test_white_space_envelope_order_and_escapes_are_no_identity(
    path: str, body: Any, api: str, segments: list[Any]
) -> None:
    decoder = Decoder({"*": PARAMETERS})
    plain = decoder.prompt(exchange(path, body))
    written = json.dumps({k: body[k] for k in reversed(body)}, indent=3, ensure_ascii=True)
    other = Decoder({"*": PARAMETERS}).prompt(Exchange(0.0, path, written.encode()))
    assert other.exacts == plain.exacts
    assert [s.shape for s in other.segments] == [s.shape for s in plain.segments]


def test_a_signature_that_is_none_is_no_reasoning() -> None:
    """Gemini CLI sends it where the server gave no signature, and leaves it out after a restart."""
    path = "/v1beta/models/gemini-2.5-pro:generateContent"
    calls = [{"functionCall": {"name": "ls", "args": {}}}]
    dummy = [{**calls[0], "thoughtSignature": "skip_thought_signature_validator"}]
    with_dummy, without = (
        read(path, {"contents": [{"role": "model", "parts": parts}]}) for parts in (dummy, calls)
    )
    assert with_dummy.exacts == without.exacts


def test_head_first_for_servers_that_put_the_system_text_before_tools() -> None:
    prompt = read("/v1/chat/completions", CHAT).in_order(HEAD_FIRST)
    assert [prompt.group(i) for i in range(3)] == ["head", "tools", "history"]
    assert prompt.pointer(0) == "/messages/0/content"
    assert prompt.head_length == 2


def test_marks() -> None:
    anthropic = read("/v1/messages", ANTHROPIC)
    assert [(anthropic.pointer(i), s.mark) for i, s in enumerate(anthropic.segments) if s.mark] == [
        ("/system/0/text", Mark("1h")),
        ("/messages/2/content/1/text", Mark()),
    ]
    bedrock = read("/model/m/converse", BEDROCK)
    assert [(s.text, s.mark) for s in bedrock.segments if s.mark] == [
        ("Be brief.", Mark()),
        ("Hello", Mark("1h")),
    ]
    automatic = read("/v1/messages", {**ANTHROPIC, "cache_control": {"type": "ephemeral", "ttl": "5m"}})
    assert automatic.automatic_mark == Mark("5m")


def test_a_mark_is_no_identity() -> None:
    unmarked = json.loads(json.dumps(ANTHROPIC).replace('"cache_control"', '"_"'))
    for block in (*unmarked["system"], unmarked["messages"][2]["content"][1]):
        del block["_"]
    assert read("/v1/messages", ANTHROPIC).exacts == read("/v1/messages", unmarked).exacts


def test_parameters_and_links() -> None:
    chat = read("/v1/chat/completions", CHAT)
    assert {(p.name, p.pointer, p.value) for p in chat.parameters} == {
        ("model", "/model", '"gpt-5.2"'),
        ("tool_choice", "/tool_choice", '"auto"'),
    }
    assert chat.stream
    responses = read("/v1/responses", RESPONSES)
    assert ("reasoning.effort", "/reasoning/effort", '"high"') in {
        (p.name, p.pointer, p.value) for p in responses.parameters
    }
    assert responses.link is not None
    assert (responses.link.kind, responses.link.id) == ("response", "resp_0")
    conversation = read("/v1/responses", {"input": "x", "conversation": {"id": "conv_1"}})
    assert conversation.link is not None
    assert (conversation.link.kind, conversation.link.id) == ("conversation", "conv_1")
    diagnosed = read("/v1/messages", {**ANTHROPIC, "diagnostics": {"previous_message_id": "msg_0"}})
    assert diagnosed.link is not None
    assert (diagnosed.link.kind, diagnosed.link.id) == ("diagnostics", "msg_0")


@pytest.mark.parametrize(
    ("path", "model"),
    [
        ("/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse", "gemini-2.5-pro"),
        ("/model/anthropic.claude-x/converse", "anthropic.claude-x"),
        ("/openai/deployments/my-gpt/chat/completions?api-version=1", "my-gpt"),
    ],
)
def test_model_in_the_path(path: str, model: str) -> None:
    assert read(path, {"messages": [], "contents": []}).model == model


# -- what cannot be read ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "body", "why"),
    [
        ("/v1/messages/count_tokens", b"{}", "side request"),
        ("/v1/messages", b"[1]", "no JSON object"),
        ("/v1/messages", b'{"messages":', "no JSON object"),
        ("/v1/messages", b"\xff\xfe", "no JSON object"),
        ("/somewhere", b"{}", "unknown API"),
        ("/v1/messages", b'{"messages": [' + b"[" * 500_000 + b"]" * 500_000 + b"]}", "no JSON object"),
    ],
)
def test_what_is_no_prompt_says_why_in_one_line(path: str, body: bytes, why: str) -> None:
    with pytest.raises(UnreadableError) as error:
        Decoder({}).prompt(Exchange(0.0, path, body))
    assert why in str(error.value)
    assert "\n" not in str(error.value)


def test_elements_forgotten_are_read_again() -> None:
    body = {"messages": [{"role": "user", "content": f"message number {i} " * 50} for i in range(50)]}
    small, large = Decoder({}, capacity=5000), Decoder({})
    for n in range(1, 51):
        part = {"messages": body["messages"][:n]}
        assert (
            small.prompt(exchange("/v1/messages", part)).exacts
            == large.prompt(exchange("/v1/messages", part)).exacts
        )


def test_turns_share_the_segments_of_equal_elements() -> None:
    decoder = Decoder({})
    first = decoder.prompt(exchange("/v1/messages", ANTHROPIC))
    second = decoder.prompt(
        exchange(
            "/v1/messages",
            {**ANTHROPIC, "messages": [*ANTHROPIC["messages"], {"role": "user", "content": "x"}]},
        )
    )  # type: ignore[misc]
    assert all(a is b for a, b in zip(first.entries, second.entries, strict=False))
    assert first.tools is second.tools
