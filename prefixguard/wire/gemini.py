"""Gemini `generateContent`: systemInstruction, tools, contents of parts; camelCase or snake_case."""

from __future__ import annotations

from typing import Any

from prefixguard.prompt import Link, Role, Segment
from prefixguard.wire.blocks import Body, string
from prefixguard.wire.format import ElementList, Format, Segments
from prefixguard.wire.identity import (
    call_segment,
    compact,
    media_segment,
    other_segment,
    reasoning_segment,
    result_segment,
    text_segment,
    tool_segment,
)

_NO_SIGNATURES = frozenset({"skip_thought_signature_validator", "context_engineering_is_the_way_to_go"})
"""What clients send in the place of a signature that they do not have: no reasoning stands behind it.

Source: https://ai.google.dev/gemini-api/docs/thought-signatures; the first: recorded, gemini-cli 0.61.0.
"""


def tools(element: Any) -> Segments:
    """One entry of `tools`: a list of declarations, or a built-in tool."""
    if not isinstance(element, dict):
        return (tool_segment(element, "", name=None),)
    for key in ("functionDeclarations", "function_declarations"):
        declarations = element.get(key)
        if isinstance(declarations, list):
            return tuple(
                tool_segment(d, f"/{key}/{i}", name=string(d.get("name")) if isinstance(d, dict) else None)
                for i, d in enumerate(declarations)
            )
    return (tool_segment(element, "", name=next(iter(element), None)),)


def system(element: Any) -> Segments:
    """`systemInstruction`: a content whose parts are system text."""
    return _parts(element, "system")


def content(element: Any) -> Segments:
    """One entry of `contents`."""
    role: Role = "user"
    if isinstance(element, dict) and element.get("role") == "model":
        role = "assistant"
    return _parts(element, role)


def _parts(element: Any, role: Role) -> Segments:
    if not isinstance(element, dict):
        return (other_segment(element, role, ""),)
    parts = element.get("parts")
    if isinstance(parts, dict):
        return _part(parts, role, "/parts")
    if not isinstance(parts, list):
        return ()
    return tuple(segment for i, part in enumerate(parts) for segment in _part(part, role, f"/parts/{i}"))


def _part(part: Any, role: Role, pointer: str) -> Segments:
    if not isinstance(part, dict):
        return (other_segment(part, role, pointer),)
    signature = string(part.get("thoughtSignature") or part.get("thought_signature"))
    if signature in _NO_SIGNATURES:
        signature = ""
    if part.get("thought"):
        return (reasoning_segment(string(part.get("text")), pointer, sealed=signature),)
    found: list[Segment] = []
    call = part.get("functionCall") or part.get("function_call")
    answer = part.get("functionResponse") or part.get("function_response")
    blob = part.get("inlineData") or part.get("inline_data") or part.get("fileData") or part.get("file_data")
    if isinstance(part.get("text"), str):
        if part["text"]:
            found.append(text_segment(part["text"], role, pointer + "/text"))
    elif isinstance(call, dict):
        call_id = string(call.get("id")) or None
        arguments = call.get("args") or {}
        found.append(call_segment(string(call.get("name")), arguments, pointer, call_id=call_id))
    elif isinstance(answer, dict):
        name, call_id = string(answer.get("name")), string(answer.get("id")) or None
        value = answer.get("response")
        found.append(
            result_segment(f"{name}: {compact(value)}", pointer, call_id=call_id, structured=[name, value])
        )
    elif isinstance(blob, dict):
        source = blob.get("data") or blob.get("fileUri") or blob.get("file_uri")
        kind = string(blob.get("mimeType") or blob.get("mime_type")).split("/")[0] or "file"
        found.append(media_segment(string(source), role, pointer, media_type=kind))
    else:
        found.append(other_segment(part, role, pointer))
    if signature:
        found.append(reasoning_segment("", pointer + "/thoughtSignature", sealed=signature))
    return tuple(found)


def reply(response: Any) -> Segments:
    """The first candidate's content."""
    if not isinstance(response, dict):
        return ()
    candidates = response.get("candidates")
    first = candidates[0] if isinstance(candidates, list) and candidates else None
    answer = first.get("content") if isinstance(first, dict) else None
    return _parts(answer, "assistant") if isinstance(answer, dict) else ()


def link(body: Body) -> Link | None:
    """`cachedContent`: an explicit cache that holds the start of the prompt."""
    name = body.text("cachedContent") or body.text("cached_content")
    return Link("cache", name, "/cachedContent") if name else None


FORMAT = Format(
    name="gemini",
    tools=(ElementList("tools", tools),),
    head=(ElementList("systemInstruction", system), ElementList("system_instruction", system)),
    history=(ElementList("contents", content),),
    reply=reply,
    link=link,
)
