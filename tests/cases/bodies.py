"""Requests and responses of each API, made from what an agent holds."""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .agent import Talk

MODELS = {
    "openai-chat": "demo-model",
    "openai-responses": "gpt-5.1",
    "anthropic": "claude-sonnet-4-5",
    "gemini": "gemini-2.5-pro",
    "bedrock": "anthropic.claude-sonnet-4-5-v1:0",
    "ollama": "qwen3:8b",
    "completions": "demo-model",
}
APIS = tuple(api for api in MODELS if api != "completions")
"""Those that have tools and messages."""

_PATHS = {
    "openai-chat": "/v1/chat/completions",
    "openai-responses": "/v1/responses",
    "anthropic": "/v1/messages",
    "gemini": "/v1beta/models/{model}:generateContent",
    "bedrock": "/model/{model}/converse",
    "ollama": "/api/chat",
    "completions": "/v1/completions",
}


def path(talk: Talk) -> str:
    return _PATHS[talk.api].format(model=talk.model)


def body(talk: Talk) -> dict[str, Any]:
    made: dict[str, Any] = globals()["_" + talk.api.replace("-", "_")](talk)
    for name, value in talk.extra.items():
        made[name] = copy.deepcopy(value)
    return copy.deepcopy(made)


def _schema(tool: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": tool["properties"], "required": sorted(tool["properties"])[:1]}


def _data(part: dict[str, Any]) -> str:
    return part["url"] if part["kind"] == "url" else f"data:image/png;base64,{part['data']}"


# -- OpenAI Chat, Ollama ----------------------------------------------------------------------


def _openai_chat(talk: Talk) -> dict[str, Any]:
    messages: list[dict[str, Any]] = []
    if talk.system_style == "messages":
        messages += [{"role": "system", "content": s} for s in talk.system]
    elif talk.system_style == "blocks":
        messages.append({"role": "system", "content": [{"type": "text", "text": s} for s in talk.system]})
    elif talk.system:
        messages.append({"role": "system", "content": "\n\n".join(talk.system)})
    for message in talk.messages:
        messages += _chat_messages(message)
    return {"model": talk.model, "tools": [_chat_tool(t) for t in talk.tools], "messages": messages}


def _chat_tool(tool: dict[str, Any]) -> dict[str, Any]:
    function = {"name": tool["name"], "description": tool["description"], "parameters": _schema(tool)}
    return {"type": "function", "function": function}


def _chat_messages(message: Any) -> list[dict[str, Any]]:
    if message.role == "tool":
        found = []
        for part in message.parts:
            if part["kind"] == "result":
                found.append({"role": "tool", "tool_call_id": part["id"], "content": part["text"]})
            else:
                found.append({"role": "user", "content": [_chat_part(part)]})
        return found
    if message.role == "assistant":
        return [_chat_answer(message.parts)]
    if len(message.parts) == 1 and message.parts[0]["kind"] == "text":
        return [{"role": message.role, "content": message.parts[0]["text"]}]
    return [{"role": message.role, "content": [_chat_part(p) for p in message.parts]}]


def _chat_part(part: dict[str, Any]) -> dict[str, Any]:
    match part["kind"]:
        case "text":
            return {"type": "text", "text": part["text"]}
        case "raw":
            return dict(part["value"])
        case _:
            return {"type": "image_url", "image_url": {"url": _data(part)}}


def _chat_answer(parts: list[dict[str, Any]]) -> dict[str, Any]:
    answer: dict[str, Any] = {"role": "assistant"}
    thought = "".join(p["text"] for p in parts if p["kind"] == "reasoning")
    if thought:
        answer["reasoning_content"] = thought
    answer["content"] = "".join(p["text"] for p in parts if p["kind"] == "text")
    calls = [
        {"id": p["id"], "type": "function", "function": {"name": p["name"], "arguments": _arguments(p)}}
        for p in parts
        if p["kind"] == "call"
    ]
    if calls:
        answer["tool_calls"] = calls
    return answer


def _arguments(part: dict[str, Any]) -> str:
    written = part.get("written")
    return written if isinstance(written, str) else json.dumps(part["arguments"])


def _ollama(talk: Talk) -> dict[str, Any]:
    made = _openai_chat(talk)
    for message in made["messages"]:
        if "reasoning_content" in message:
            message["thinking"] = message.pop("reasoning_content")
        for one in message.get("tool_calls", ()):
            one["function"]["arguments"] = json.loads(one["function"]["arguments"])
        if isinstance(message.get("content"), list):
            parts = message["content"]
            message["content"] = "\n".join(p["text"] for p in parts if p["type"] == "text")
            images = [p["image_url"]["url"].partition(",")[2] for p in parts if p["type"] == "image_url"]
            if images:
                message["images"] = images
    return {**made, "stream": False}


# -- OpenAI Responses -------------------------------------------------------------------------


def _openai_responses(talk: Talk) -> dict[str, Any]:
    items: list[dict[str, Any]] = []
    made: dict[str, Any] = {"model": talk.model}
    if talk.system_style == "messages":
        items += [
            {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": s}]}
            for s in talk.system
        ]
    else:
        made["instructions"] = "\n\n".join(talk.system)
    for message in talk.messages:
        items += _items(message)
    tools = [
        {"type": "function", "name": t["name"], "description": t["description"], "parameters": _schema(t)}
        for t in talk.tools
    ]
    return {**made, "tools": tools, "input": items, "store": False}


def _items(message: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    content: list[dict[str, Any]] = []
    for part in message.parts:
        match part["kind"]:
            case "text":
                kind = "output_text" if message.role == "assistant" else "input_text"
                content.append({"type": kind, "text": part["text"]})
            case "image" | "url":
                content.append({"type": "input_image", "image_url": _data(part)})
            case "reasoning":
                found.append(
                    {
                        "type": "reasoning",
                        "summary": [{"type": "summary_text", "text": part["text"]}],
                        "encrypted_content": part["sealed"],
                    }
                )
            case "call":
                found.append(
                    {
                        "type": "function_call",
                        "call_id": part["id"],
                        "name": part["name"],
                        "arguments": _arguments(part),
                    }
                )
            case "result":
                found.append({"type": "function_call_output", "call_id": part["id"], "output": part["text"]})
            case "raw":
                content.append(dict(part["value"]))
    if content:
        role = "developer" if message.role == "system" else "user" if message.role == "tool" else message.role
        found.append({"type": "message", "role": role, "content": content})
    return found


# -- Anthropic --------------------------------------------------------------------------------


def _anthropic(talk: Talk) -> dict[str, Any]:
    made: dict[str, Any] = {"model": talk.model, "max_tokens": 1024}
    if talk.system_style == "string" and "system" not in talk.marks:
        made["system"] = "\n\n".join(talk.system)
    else:
        made["system"] = [{"type": "text", "text": s} for s in talk.system]
    made["tools"] = [
        {"name": t["name"], "description": t["description"], "input_schema": _schema(t)} for t in talk.tools
    ]
    messages: list[dict[str, Any]] = []
    for message in talk.messages:
        role = "user" if message.role == "tool" else message.role
        blocks = [_block(p) for p in message.parts]
        if messages and messages[-1]["role"] == role == "user":
            messages[-1]["content"] += blocks
        else:
            messages.append({"role": role, "content": blocks})
    made["messages"] = messages
    mark(made, talk.marks)
    return made


def mark(made: dict[str, Any], marks: tuple[str, ...]) -> None:
    """Sets breakpoints on the finished body, each an `ephemeral` one of five minutes unless "1h" is named."""
    control: dict[str, Any] = {"type": "ephemeral"}
    if "1h" in marks:
        control["ttl"] = "1h"
    if "auto" in marks:
        made["cache_control"] = control
    if "tools" in marks and made.get("tools"):
        made["tools"][-1]["cache_control"] = control
    if "system" in marks and isinstance(made.get("system"), list) and made["system"]:
        made["system"][-1]["cache_control"] = control
    users = [
        m for m in made["messages"] if m["role"] == "user" and isinstance(m["content"], list) and m["content"]
    ]
    for message in users[-2:] if "last two" in marks else users[-1:] if "last" in marks else []:
        message["content"][-1]["cache_control"] = control


def _block(part: dict[str, Any]) -> dict[str, Any]:
    match part["kind"]:
        case "text":
            return {"type": "text", "text": part["text"]}
        case "image":
            source = {"type": "base64", "media_type": "image/png", "data": part["data"]}
            return {"type": "image", "source": source}
        case "url":
            return {"type": "image", "source": {"type": "url", "url": part["url"]}}
        case "reasoning":
            return {"type": "thinking", "thinking": part["text"], "signature": part["sealed"]}
        case "call":
            return {"type": "tool_use", "id": part["id"], "name": part["name"], "input": part["arguments"]}
        case "result":
            return {"type": "tool_result", "tool_use_id": part["id"], "content": part["text"]}
    return dict(part["value"])


# -- Bedrock ----------------------------------------------------------------------------------


def _bedrock(talk: Talk) -> dict[str, Any]:
    point = {"cachePoint": {"type": "default"}}
    system: list[dict[str, Any]] = [{"text": s} for s in talk.system]
    tools: list[dict[str, Any]] = [
        {
            "toolSpec": {
                "name": t["name"],
                "description": t["description"],
                "inputSchema": {"json": _schema(t)},
            }
        }
        for t in talk.tools
    ]
    messages: list[dict[str, Any]] = []
    for message in talk.messages:
        role = "assistant" if message.role == "assistant" else "user"
        blocks = [_converse_block(p) for p in message.parts]
        if messages and messages[-1]["role"] == role == "user":
            messages[-1]["content"] += blocks
        else:
            messages.append({"role": role, "content": blocks})
    if "system" in talk.marks:
        system.append(point)
    if "last" in talk.marks and messages:
        messages[-1]["content"].append(point)
    return {
        "system": system,
        "toolConfig": {"tools": tools},
        "messages": messages,
        "inferenceConfig": {"maxTokens": 512},
    }


def _converse_block(part: dict[str, Any]) -> dict[str, Any]:
    match part["kind"]:
        case "text":
            return {"text": part["text"]}
        case "image":
            return {"image": {"format": "png", "source": {"bytes": part["data"]}}}
        case "url":
            return {"image": {"format": "png", "source": {"s3Location": {"uri": part["url"]}}}}
        case "reasoning":
            inner = {"text": part["text"], "signature": part["sealed"]}
            return {"reasoningContent": {"reasoningText": inner}}
        case "call":
            return {"toolUse": {"toolUseId": part["id"], "name": part["name"], "input": part["arguments"]}}
        case "result":
            return {"toolResult": {"toolUseId": part["id"], "content": [{"text": part["text"]}]}}
    return dict(part["value"])


# -- Gemini -----------------------------------------------------------------------------------


def _gemini(talk: Talk) -> dict[str, Any]:
    contents: list[dict[str, Any]] = []
    for message in talk.messages:
        role = "model" if message.role == "assistant" else "user"
        contents.append({"role": role, "parts": [_gemini_part(p) for p in message.parts]})
    declarations = [
        {"name": t["name"], "description": t["description"], "parameters": _schema(t)} for t in talk.tools
    ]
    return {
        "systemInstruction": {"parts": [{"text": s} for s in talk.system]},
        "tools": [{"functionDeclarations": declarations}] if declarations else [],
        "contents": contents,
        "generationConfig": {"temperature": 0},
    }


def _gemini_part(part: dict[str, Any]) -> dict[str, Any]:
    match part["kind"]:
        case "text":
            return {"text": part["text"]}
        case "image":
            return {"inlineData": {"mimeType": "image/png", "data": part["data"]}}
        case "url":
            return {"fileData": {"mimeType": "image/png", "fileUri": part["url"]}}
        case "reasoning":
            return {"text": part["text"], "thought": True}
        case "call":
            return {"functionCall": {"name": part["name"], "args": part["arguments"], "id": part["id"]}}
        case "result":
            answer = {"output": part["text"]}
            return {"functionResponse": {"name": "read_file", "response": answer, "id": part["id"]}}
    return dict(part["value"])


# -- raw completions --------------------------------------------------------------------------


def _completions(talk: Talk) -> dict[str, Any]:
    lines = ["\n\n".join(talk.system)]
    for message in talk.messages:
        lines += [f"{message.role.title()}: {p.get('text', '')}" for p in message.parts]
    return {"model": talk.model, "prompt": "\n".join(lines) + "\nAssistant:", "max_tokens": 200}


# -- responses --------------------------------------------------------------------------------


def response(talk: Talk, parts: list[dict[str, Any]], figures: Any) -> dict[str, Any]:
    """The server's answer in the API's own words; figures None leaves the usage out."""
    n = len(talk.log)
    made: dict[str, Any] = {"id": f"{talk.seed}-{n}", "model": talk.model}
    match talk.api:
        case "openai-chat":
            made["choices"] = [{"index": 0, "message": _chat_answer(parts), "finish_reason": "stop"}]
        case "ollama":
            answer = _chat_answer(parts)
            if "reasoning_content" in answer:
                answer["thinking"] = answer.pop("reasoning_content")
            for one in answer.get("tool_calls", ()):
                one["function"]["arguments"] = json.loads(one["function"]["arguments"])
            made |= {"message": answer, "done": True}
        case "openai-responses":
            message = type("Answer", (), {"role": "assistant", "parts": parts})
            made |= {"output": [{"id": f"item_{n}", "status": "completed", **i} for i in _items(message)]}
        case "anthropic":
            made |= {"type": "message", "role": "assistant", "content": [_block(p) for p in parts]}
        case "bedrock":
            made = {
                "output": {"message": {"role": "assistant", "content": [_converse_block(p) for p in parts]}}
            }
        case "gemini":
            content = {"role": "model", "parts": [_gemini_part(p) for p in parts]}
            made = {"candidates": [{"content": content}]}
        case "completions":
            made["choices"] = [{"text": " " + "".join(p.get("text", "") for p in parts)}]
    if figures is not None:
        if talk.api == "gemini":
            made["usageMetadata"] = figures
        elif talk.api == "ollama":
            made |= figures
        else:
            made["usage"] = figures
    return made
