"""Speaks to a server with the real SDKs: one conversation, three APIs, streamed and whole.

A scenario is written once, in neutral words; a speaker turns each request into
what an agent would send through its SDK, and says what the server counted.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import anthropic
import openai

MODEL = "tiny"
LONGEST_REPLY = 20


@dataclass(frozen=True)
class Message:
    """One entry of a conversation. calls: (id, name, arguments). of: the call that a result answers."""

    role: str
    text: str = ""
    calls: tuple[tuple[str, str, dict[str, Any]], ...] = ()
    of: str = ""


@dataclass(frozen=True)
class Tool:
    """A tool definition; `schema` is its parameters."""

    name: str
    description: str
    schema: dict[str, Any]


@dataclass(frozen=True)
class Counted:
    """What the server reported of one request, read from the SDK's own objects."""

    text: str
    prompt: int
    cached: int
    generated: int


@dataclass
class Agent:
    """A client that says what it is told to, and remembers what the server counted."""

    speak: Callable[[Agent, str, list[Tool], list[Message]], Counted]
    client: Any
    stream: bool
    reverse_keys: bool = False
    counted: list[Counted] = field(default_factory=list)

    def say(self, system: str, tools: list[Tool], history: list[Message]) -> Message:
        """Sends one request; gives the reply as a message."""
        counted = self.speak(self, system, tools, history)
        self.counted.append(counted)
        return Message("assistant", counted.text)


def _ordered(definition: dict[str, Any], agent: Agent) -> dict[str, Any]:
    return dict(reversed(definition.items())) if agent.reverse_keys else definition


# Chat Completions ----------------------------------------------------------------------------------


def _chat_message(message: Message) -> dict[str, Any]:
    if message.role == "tool":
        return {"role": "tool", "tool_call_id": message.of, "content": message.text}
    said: dict[str, Any] = {"role": message.role, "content": message.text}
    if message.calls:
        said["tool_calls"] = [
            {"id": i, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
            for i, name, arguments in message.calls
        ]
    return said


def _function(tool: Tool, agent: Agent) -> dict[str, Any]:
    return _ordered({"name": tool.name, "description": tool.description, "parameters": tool.schema}, agent)


def chat(agent: Agent, system: str, tools: list[Tool], history: list[Message]) -> Counted:
    """`/v1/chat/completions` with the openai SDK."""
    asked: dict[str, Any] = {
        "model": MODEL,
        "messages": [{"role": "system", "content": system}, *map(_chat_message, history)],
        "max_tokens": LONGEST_REPLY,
        "temperature": 0,
    }
    if tools:
        asked["tools"] = [{"type": "function", "function": _function(tool, agent)} for tool in tools]
    if not agent.stream:
        answer = agent.client.chat.completions.create(**asked)
        timings = answer.model_extra["timings"]
        cached = answer.usage.prompt_tokens_details.cached_tokens
        assert cached == timings["cache_n"]
        text = answer.choices[0].message.content or ""
        return Counted(text, answer.usage.prompt_tokens, cached, answer.usage.completion_tokens)
    text, timings = "", {}
    for chunk in agent.client.chat.completions.create(**asked, stream=True):
        text += (chunk.choices[0].delta.content or "") if chunk.choices else ""
        timings = (chunk.model_extra or {}).get("timings") or timings
    total = timings["prompt_n"] + timings["cache_n"]
    return Counted(text, total, timings["cache_n"], timings["predicted_n"])


# Responses -----------------------------------------------------------------------------------------


def _items(message: Message) -> list[dict[str, Any]]:
    if message.role == "tool":
        return [{"type": "function_call_output", "call_id": message.of, "output": message.text}]
    kind = "output_text" if message.role == "assistant" else "input_text"
    parts = [{"type": kind, "text": message.text}]
    said = [{"type": "message", "role": message.role, "content": parts}] if message.text else []
    return said + [
        {"type": "function_call", "call_id": i, "name": name, "arguments": json.dumps(arguments)}
        for i, name, arguments in message.calls
    ]


def responses(agent: Agent, system: str, tools: list[Tool], history: list[Message]) -> Counted:
    """`/v1/responses` with the openai SDK."""
    asked: dict[str, Any] = {
        "model": MODEL,
        "instructions": system,
        "input": [item for message in history for item in _items(message)],
        "max_output_tokens": LONGEST_REPLY,
        "temperature": 0,
        "store": False,
    }
    if tools:
        asked["tools"] = [{"type": "function", **_function(tool, agent)} for tool in tools]
    if agent.stream:
        for event in agent.client.responses.create(**asked, stream=True):
            if event.type == "response.completed":
                answer = event.response
    else:
        answer = agent.client.responses.create(**asked)
    usage = answer.usage
    cached = usage.input_tokens_details.cached_tokens
    return Counted(answer.output_text, usage.input_tokens, cached, usage.output_tokens)


# Messages ------------------------------------------------------------------------------------------


def _anthropic_message(message: Message) -> dict[str, Any]:
    if message.role == "tool":
        result = {"type": "tool_result", "tool_use_id": message.of, "content": message.text}
        return {"role": "user", "content": [result]}
    blocks: list[dict[str, Any]] = [{"type": "text", "text": message.text}] if message.text else []
    blocks += [
        {"type": "tool_use", "id": i, "name": name, "input": arguments}
        for i, name, arguments in message.calls
    ]
    return {"role": message.role, "content": blocks}


def messages(agent: Agent, system: str, tools: list[Tool], history: list[Message]) -> Counted:
    """`/v1/messages` with the anthropic SDK."""
    asked: dict[str, Any] = {
        "model": MODEL,
        "system": [{"type": "text", "text": system}],
        "messages": list(map(_anthropic_message, history)),
        "max_tokens": LONGEST_REPLY,
        "extra_body": {"temperature": 0},
    }
    if tools:
        asked["tools"] = [
            _ordered({"name": tool.name, "description": tool.description, "input_schema": tool.schema}, agent)
            for tool in tools
        ]
    if agent.stream:
        with agent.client.messages.stream(**asked) as stream:
            answer = stream.get_final_message()
    else:
        answer = agent.client.messages.create(**asked)
    text = "".join(block.text for block in answer.content if block.type == "text")
    cached = answer.usage.cache_read_input_tokens
    return Counted(text, cached + answer.usage.input_tokens, cached, answer.usage.output_tokens)


SPEAKERS = {"chat": chat, "responses": responses, "messages": messages}


def agent_for(api: str, url: str, *, stream: bool, http_client: Any = None) -> Agent:
    """An agent whose SDK talks to `url`."""
    if api == "messages":
        client: Any = anthropic.Anthropic(base_url=url, api_key="none", http_client=http_client)
    else:
        client = openai.OpenAI(base_url=f"{url}/v1", api_key="none", http_client=http_client)
    return Agent(SPEAKERS[api], client, stream)
