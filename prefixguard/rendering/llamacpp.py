"""What a llama.cpp server makes of a request before it applies its chat template.

The server turns Anthropic's and OpenAI's newer bodies into chat messages
itself. This module says into which, so that `/apply-template` and `/tokenize`
give the ids that the server evaluated. It also says what text a reply was, so
that its ids can be had. Pure: bodies in, bodies out; `engines` talks to servers.

Learned from the behaviour of builds 10434 and 11549 and checked against them in
tests/real by the token counts they report.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

type Json = dict[str, Any]
type Raw = tuple[str | list[int], ...]
"""A prompt without a template: texts and runs of ids, in order."""

CHAT_APIS = frozenset({"openai-chat", "openai-responses", "anthropic-messages"})
RAW_APIS = frozenset({"completions", "llamacpp"})


class UnsupportedError(ValueError):
    """The body holds something that this server refuses or that is not text; the message names it."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What the model said, as far as the response shows it.

    calls: tool calls as chat messages carry them. ended: True when the model
    ended its turn itself, so that its last sampled token is the end mark; False
    when the text was cut at the token limit; None when a stop string or
    something else unseen ended it.
    ids: the sampled ids, where the server was asked for them.
    """

    content: str = ""
    reasoning: str = ""
    calls: tuple[Json, ...] = ()
    ended: bool | None = None
    ids: tuple[int, ...] = ()

    def message(self) -> Json:
        """The reply as the chat message that a client sends back."""
        message: Json = {"role": "assistant", "content": self.content}
        if self.reasoning:
            message["reasoning_content"] = self.reasoning
        if self.calls:
            message["tool_calls"] = list(self.calls)
        return message


# Requests ------------------------------------------------------------------------------------------


def chat_body(api: str, request: Json) -> Json:
    """The Chat Completions body that the server makes of a request. Raises UnsupportedError."""
    if request.get("n") not in (None, 1):
        raise UnsupportedError("several choices share one prompt and several slots")
    match api:
        case "openai-chat":
            body = request
        case "anthropic-messages":
            body = _from_anthropic(request)
        case "openai-responses":
            body = _from_responses(request)
        case _:
            raise UnsupportedError(f"{api} requests have no chat messages")
    _only_text(body.get("messages"))
    return body


def raw_prompt(request: Json) -> Raw:
    """The prompt of a completion request, as texts and runs of ids. Raises UnsupportedError."""
    prompt = request.get("prompt")
    if isinstance(prompt, str):
        return (prompt,)
    if isinstance(prompt, Mapping) and isinstance(prompt.get("prompt_string"), str):
        if prompt.get("multimodal_data"):
            raise UnsupportedError("the prompt holds media")
        return (prompt["prompt_string"],)
    if not isinstance(prompt, list):
        raise UnsupportedError("the prompt is neither text nor token ids")
    if len(prompt) == 1 and not isinstance(prompt[0], int):
        return raw_prompt({"prompt": prompt[0]})
    pieces: list[str | list[int]] = []
    for item in prompt:
        if isinstance(item, bool) or not isinstance(item, int | str):
            raise UnsupportedError("several prompts in one request")
        if isinstance(item, str):
            pieces.append(item)
        elif pieces and isinstance(pieces[-1], list):
            pieces[-1].append(item)
        else:
            pieces.append([item])
    if pieces and all(isinstance(piece, str) for piece in pieces):
        raise UnsupportedError("several prompts in one request")
    return tuple(pieces)


def _only_text(messages: object) -> None:
    if not isinstance(messages, list):
        raise UnsupportedError("the request has no list of messages")
    for message in messages:
        content = message.get("content") if isinstance(message, Mapping) else None
        for part in content if isinstance(content, list) else ():
            if isinstance(part, Mapping) and part.get("type") not in ("text", "refusal"):
                raise UnsupportedError(
                    f"a message holds {part.get('type')!r}, which has no token ids of its own"
                )


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


# Anthropic Messages --------------------------------------------------------------------------------

_STAMP = re.compile(r"(x-anthropic-billing-header:.*?cch=).{5}(?=;)", re.DOTALL)


def _unstamped(text: str) -> str:
    """The system text as the server reads it: it blanks the per-request stamp of one client's header."""
    return _STAMP.sub(r"\1fffff", text, count=1) if text.startswith("x-anthropic-billing-header:") else text


def _from_anthropic(request: Json) -> Json:
    messages: list[Json] = []
    system = request.get("system")
    if isinstance(system, str):
        messages.append({"role": "system", "content": _unstamped(system)})
    elif system is not None:
        texts = [_unstamped(_text(b.get("text"))) for b in _blocks(system) if b.get("type") == "text"]
        messages.append({"role": "system", "content": "".join(texts)})
    for message in _blocks(request.get("messages")):
        messages += _anthropic_message(message)
    body: Json = {"messages": messages}
    if isinstance(request.get("tools"), list):
        body["tools"] = [_anthropic_tool(tool) for tool in _blocks(request["tools"])]
    choice = request.get("tool_choice")
    kind = choice.get("type") if isinstance(choice, Mapping) else None
    if kind == "auto":
        body["tool_choice"] = "auto"
    elif kind in ("any", "tool"):
        body["tool_choice"] = "required"
    if "chat_template_kwargs" in request:
        body["chat_template_kwargs"] = request["chat_template_kwargs"]
    return body


def _blocks(value: object) -> list[Json]:
    return [block for block in value if isinstance(block, dict)] if isinstance(value, list) else []


def _anthropic_tool(tool: Json) -> Json:
    schema = tool.get("input_schema", {})
    function = {
        "name": _text(tool.get("name")),
        "description": _text(tool.get("description")),
        "parameters": schema,
    }
    return {"type": "function", "function": function}


def _anthropic_message(message: Json) -> list[Json]:
    """One message becomes one, none, or several: each tool result is a message of its own, after the text."""
    if "content" not in message:
        return [] if message.get("role") == "assistant" else [message]
    if not isinstance(message["content"], list):
        return [message]
    parts: list[Json] = []
    calls: list[Json] = []
    results: list[Json] = []
    reasoning = ""
    for block in _blocks(message["content"]):
        match block.get("type"):
            case "text":
                parts.append(block)
            case "thinking":
                reasoning += _text(block.get("thinking"))
            case "image":
                raise UnsupportedError("a message holds an image")
            case "tool_use":
                calls.append(
                    _call(_text(block.get("id")), _text(block.get("name")), _dumped(block.get("input", {})))
                )
            case "tool_result":
                text = _result_text(block.get("content"))
                results.append(
                    {"role": "tool", "tool_call_id": _text(block.get("tool_use_id")), "content": text}
                )
    if not (parts or calls or reasoning):
        return results
    turned: Json = {"role": message.get("role", ""), "content": parts or ""}
    if calls:
        turned["tool_calls"] = calls
    if reasoning:
        turned["reasoning_content"] = reasoning
    return [turned, *results]


def _result_text(content: object) -> str:
    if isinstance(content, str):
        return content
    if any(block.get("type") == "image" for block in _blocks(content)):
        raise UnsupportedError("a tool result holds an image")
    return "".join(_text(block.get("text")) for block in _blocks(content) if block.get("type") == "text")


def _call(call_id: str, name: str, arguments: str) -> Json:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def _dumped(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


# OpenAI Responses ----------------------------------------------------------------------------------


def _from_responses(request: Json) -> Json:
    if request.get("previous_response_id"):
        raise UnsupportedError("this server keeps no earlier responses")
    body = {k: v for k, v in request.items() if k not in ("input", "instructions", "tools", "reasoning")}
    messages: list[Json] = []
    if "instructions" in request:
        messages.append({"role": "system", "content": _text(request["instructions"])})
    given = request.get("input")
    if isinstance(given, str):
        messages.append({"role": "user", "content": given})
    elif isinstance(given, list):
        for item in _blocks(given):
            _add_item(messages, item)
    else:
        raise UnsupportedError("the request has no input")
    body["messages"] = messages
    tools = [
        {"type": "function", "function": {k: v for k, v in tool.items() if k != "type"}}
        for tool in _blocks(request.get("tools"))
        if tool.get("type") == "function"
    ]
    if tools:
        body["tools"] = tools
    reasoning = request.get("reasoning")
    if isinstance(reasoning, Mapping) and "effort" in reasoning:
        body["reasoning_effort"] = reasoning["effort"]
    return body


def _add_item(messages: list[Json], item: Json) -> None:
    """Adds one input item: neighbouring items of the assistant are put into one message."""
    kind, role = item.get("type"), item.get("role")
    if role in ("user", "system", "developer") and isinstance(item.get("content"), str | list):
        rest = {k: v for k, v in item.items() if k not in ("type", "status", "content")}
        messages.append({**rest, "content": _parts(item["content"])})
    elif role == "assistant" and kind == "message":
        _grow(messages, "content", _parts(item.get("content")))
    elif kind == "function_call":
        call = _call(_text(item.get("call_id")), _text(item.get("name")), _text(item.get("arguments")))
        _grow(messages, "tool_calls", [call])
    elif kind == "function_call_output":
        output = item.get("output")
        content = output if isinstance(output, str) else _parts(output)
        messages.append({"role": "tool", "tool_call_id": _text(item.get("call_id")), "content": content})
    elif kind == "reasoning" and _blocks(item.get("content")):
        text = _text(_blocks(item["content"])[0].get("text"))
        if messages and messages[-1].get("role") == "assistant":
            messages[-1]["reasoning_content"] = text
        else:
            messages.append({"role": "assistant", "content": [], "reasoning_content": text})
    else:
        raise UnsupportedError(f"this server refuses input items of type {kind!r}")


def _grow(messages: list[Json], field: str, more: list[Json]) -> None:
    """Adds to the last message when it is the assistant's, else begins one."""
    if not messages or messages[-1].get("role") != "assistant":
        messages.append({"role": "assistant", field: more})
        return
    old = messages[-1].get(field)
    messages[-1][field] = [*old, *more] if isinstance(old, list) else more


def _parts(content: object) -> list[Json]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    parts: list[Json] = []
    for part in _blocks(content):
        match part.get("type"):
            case "input_text" | "output_text":
                parts.append({"type": "text", "text": part.get("text", "")})
            case "refusal":
                parts.append({"type": "refusal", "refusal": part.get("refusal", "")})
            case other:
                raise UnsupportedError(f"a message holds {other!r}")
    return parts


# Replies -------------------------------------------------------------------------------------------


def reply_of(api: str, request: Json, response: Json) -> Reply | None:
    """What the model said, or None when the response holds no single reply."""
    match api:
        case "openai-chat" | "completions":
            choices = _blocks(response.get("choices"))
            return _choice_reply(choices[0]) if len(choices) == 1 else None
        case "llamacpp":
            ids = response.get("tokens")
            sampled = tuple(ids) if isinstance(ids, list) and all(isinstance(i, int) for i in ids) else ()
            ended = {"eos": True, "limit": False}.get(_text(response.get("stop_type")))
            return Reply(_text(response.get("content")), ended=ended, ids=sampled)
        case "anthropic-messages":
            return _anthropic_reply(response)
        case "openai-responses":
            return _responses_reply(request, response)
    return None


_ENDED = {"stop": True, "tool_calls": True, "length": False}


def _choice_reply(choice: Json) -> Reply:
    ended = _ENDED.get(_text(choice.get("finish_reason")))
    message = choice.get("message")
    if not isinstance(message, dict):
        return Reply(_text(choice.get("text")), ended=ended)
    calls = [
        _call(_text(call.get("id")), _text(f.get("name")), _text(f.get("arguments")))
        for call in _blocks(message.get("tool_calls"))
        if isinstance(f := call.get("function"), dict)
    ]
    return Reply(_text(message.get("content")), _text(message.get("reasoning_content")), tuple(calls), ended)


def _anthropic_reply(response: Json) -> Reply:
    blocks = _blocks(response.get("content"))
    return Reply(
        "".join(_text(block.get("text")) for block in blocks if block.get("type") == "text"),
        "".join(_text(block.get("thinking")) for block in blocks if block.get("type") == "thinking"),
        tuple(
            _call(_text(block.get("id")), _text(block.get("name")), _dumped(block.get("input", {})))
            for block in blocks
            if block.get("type") == "tool_use"
        ),
        {"end_turn": True, "tool_use": True, "max_tokens": False}.get(_text(response.get("stop_reason"))),
    )


def _responses_reply(request: Json, response: Json) -> Reply:
    items = _blocks(response.get("output"))
    usage = response.get("usage")
    generated = usage.get("output_tokens") if isinstance(usage, Mapping) else None
    limit = request.get("max_output_tokens")
    # This server says "completed" also when the limit cut the reply.
    cut = isinstance(limit, int) and isinstance(generated, int) and generated >= limit
    return Reply(
        _joined(items, "message"),
        _joined(items, "reasoning"),
        tuple(
            _call(_text(item.get("call_id")), _text(item.get("name")), _text(item.get("arguments")))
            for item in items
            if item.get("type") == "function_call"
        ),
        None if cut else True,
    )


def _joined(items: Sequence[Json], kind: str) -> str:
    return "".join(
        _text(part.get("text"))
        for item in items
        if item.get("type") == kind
        for part in _blocks(item.get("content"))
    )


def decoded(ids: Sequence[int], generated: int, ended: bool | None) -> int | None:
    """How many of a reply's ids are in the cache: all that were sampled but the last.

    ids: the reply's text, tokenised. generated: how many tokens the server says
    it sampled, the end mark included. None when the text cannot be what was
    sampled, so that nothing is known.
    """
    possible = {True: (generated - 1,), False: (generated,), None: (generated - 1, generated)}[ended]
    return generated - 1 if generated and len(ids) in possible else None
