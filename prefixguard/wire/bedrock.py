"""Bedrock Converse: toolConfig, system, messages; breakpoints are blocks of their own (`cachePoint`)."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from prefixguard.prompt import Mark, Role, Segment
from prefixguard.wire.blocks import string
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


def _cache_point(block: Any) -> Mark | None:
    point = block.get("cachePoint") if isinstance(block, dict) else None
    if not isinstance(point, dict):
        return None
    ttl = point.get("ttl")
    return Mark(ttl if isinstance(ttl, str) else None)


def tool(element: Any) -> Segments | Mark:
    """One entry of `toolConfig.tools`."""
    mark = _cache_point(element)
    if mark is not None:
        return mark
    spec = element.get("toolSpec") if isinstance(element, dict) else None
    name = string(spec.get("name")) if isinstance(spec, dict) else None
    return (tool_segment(element, "", name=name),)


def system(element: Any) -> Segments | Mark:
    """One entry of `system`."""
    return _cache_point(element) or _block(element, "system", "")


def message(element: Any) -> Segments:
    """One entry of `messages`."""
    if not isinstance(element, dict):
        return (other_segment(element, "user", ""),)
    role: Role = "assistant" if element.get("role") == "assistant" else "user"
    content = element.get("content")
    found: list[Segment] = []
    for i, block in enumerate(content if isinstance(content, list) else []):
        mark = _cache_point(block)
        if mark is None:
            found += _block(block, role, f"/content/{i}")
        elif found:
            found[-1] = replace(found[-1], mark=mark)
    return tuple(found)


def _block(block: Any, role: Role, pointer: str) -> Segments:
    if not isinstance(block, dict):
        return (other_segment(block, role, pointer),)
    if isinstance(block.get("text"), str):
        return (text_segment(block["text"], role, pointer + "/text"),) if block["text"] else ()
    use, result, reasoning = block.get("toolUse"), block.get("toolResult"), block.get("reasoningContent")
    if isinstance(use, dict):
        return (
            call_segment(
                string(use.get("name")), use.get("input") or {}, pointer, call_id=string(use.get("toolUseId"))
            ),
        )
    if isinstance(result, dict):
        parts = result.get("content")
        texts = [
            part["text"] if isinstance(part, dict) and isinstance(part.get("text"), str) else compact(part)
            for part in (parts if isinstance(parts, list) else [])
        ]
        return (
            result_segment(
                "\n".join(texts), pointer,
                call_id=string(result.get("toolUseId")), error=result.get("status") == "error",
            ),
        )  # fmt: skip
    if isinstance(reasoning, dict):
        inner = reasoning.get("reasoningText")
        inner = inner if isinstance(inner, dict) else {}
        sealed = string(inner.get("signature") or reasoning.get("redactedContent"))
        return (reasoning_segment(string(inner.get("text")), pointer, sealed=sealed),)
    for kind in ("image", "document", "video"):
        medium = block.get(kind)
        if isinstance(medium, dict):
            return (media_segment(compact(medium.get("source")), role, pointer, media_type=kind),)
    return (other_segment(block, role, pointer),)


def reply(response: Any) -> Segments:
    """The output message."""
    output = response.get("output") if isinstance(response, dict) else None
    answer = output.get("message") if isinstance(output, dict) else None
    return message({"role": "assistant", **answer}) if isinstance(answer, dict) else ()


FORMAT = Format(
    name="bedrock-converse",
    tools=(ElementList("toolConfig.tools", tool),),
    head=(ElementList("system", system),),
    history=(ElementList("messages", message),),
    reply=reply,
)
