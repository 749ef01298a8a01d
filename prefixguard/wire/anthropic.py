"""Anthropic Messages: tools, system blocks, messages of content blocks; breakpoints by `cache_control`.

A system message inside `messages` stays in history, where it stands.
"""

from __future__ import annotations

from typing import Any

from prefixguard.prompt import Link, Mark, Role, Segment, Shape
from prefixguard.wire.blocks import Body, joined_text, mark_of, string, without_mark
from prefixguard.wire.format import ElementList, Format, Segments
from prefixguard.wire.identity import (
    call_segment,
    media_segment,
    other_segment,
    reasoning_segment,
    result_segment,
    text_segment,
    tool_segment,
)

_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant", "system": "system"}


def tool(element: Any) -> Segments:
    """One entry of `tools`: a definition, or a server-side toolset."""
    if not isinstance(element, dict):
        return (tool_segment(element, "", name=None),)
    name = element.get("name") or element.get("type")
    return (tool_segment(without_mark(element), "", name=string(name), mark=mark_of(element)),)


def system_block(element: Any) -> Segments:
    """One entry of `system`."""
    return _block(element, "system", "")


def system_text(text: str) -> Segments:
    """`system` as a plain string."""
    return (text_segment(text, "system", "", shape="string"),) if text else ()


def message(element: Any) -> Segments:
    """One entry of `messages`."""
    if not isinstance(element, dict):
        return (other_segment(element, "user", ""),)
    role = _ROLES.get(string(element.get("role")), "user")
    content = element.get("content")
    if isinstance(content, str):
        return (text_segment(content, role, "/content", shape="string"),) if content else ()
    if not isinstance(content, list):
        return () if content is None else (other_segment(content, role, "/content"),)
    found: list[Segment] = []
    for i, block in enumerate(content):
        found += _block(block, role, f"/content/{i}")
    return tuple(found)


def _block(block: Any, role: Role, pointer: str) -> Segments:
    if isinstance(block, str):
        return (text_segment(block, role, pointer, shape="string"),) if block else ()
    if not isinstance(block, dict):
        return (other_segment(block, role, pointer),)
    mark = mark_of(block)
    match block.get("type"):
        case "text":
            text = string(block.get("text"))
            extra = {k: v for k, v in block.items() if k not in ("type", "text", "cache_control") and v}
            if extra:  # citations and the like are read by the model as well
                return (other_segment(without_mark(block), role, pointer, mark=mark),)
            return (text_segment(text, role, pointer + "/text", mark=mark),) if text else ()
        case "tool_use" | "server_tool_use" | "mcp_tool_use":
            arguments = block.get("input")
            return (
                call_segment(
                    string(block.get("name")), {} if arguments is None else arguments, pointer,
                    call_id=string(block.get("id")), mark=mark,
                ),
            )  # fmt: skip
        case "tool_result":
            return _tool_result(block, pointer, mark)
        case "thinking":
            sealed = string(block.get("signature"))
            return (reasoning_segment(string(block.get("thinking")), pointer, sealed=sealed, mark=mark),)
        case "redacted_thinking":
            return (reasoning_segment("", pointer, sealed=string(block.get("data")), mark=mark),)
        case "image" | "document":
            return (_media(block, role, pointer, mark),)
    return (other_segment(without_mark(block), role, pointer, mark=mark),)


def _tool_result(block: dict[str, Any], pointer: str, mark: Mark | None) -> Segments:
    content = block.get("content")
    shape: Shape = "string" if isinstance(content, str) else "blocks"
    result = result_segment(
        joined_text(content), pointer,
        call_id=string(block.get("tool_use_id")), error=bool(block.get("is_error")),
        shape=shape, mark=mark,
    )  # fmt: skip
    if not isinstance(content, list):
        return (result,)
    media = [
        _media(part, "tool", f"{pointer}/content/{i}", mark_of(part))
        for i, part in enumerate(content)
        if isinstance(part, dict) and part.get("type") in ("image", "document")
    ]
    return (result, *media)


def _media(block: dict[str, Any], role: Role, pointer: str, mark: Mark | None) -> Segment:
    source = block.get("source")
    if not isinstance(source, dict):
        return other_segment(without_mark(block), role, pointer, mark=mark)
    if source.get("type") == "text":
        return text_segment(string(source.get("data")), role, pointer, mark=mark)
    data = source.get("data") or source.get("url") or source.get("file_id") or source.get("content")
    return media_segment(string(data), role, pointer, media_type=string(block.get("type")), mark=mark)


def reply(response: Any) -> Segments:
    """The assistant's blocks, as a client would send them back."""
    if not isinstance(response, dict):
        return ()
    return message({"role": "assistant", "content": response.get("content")})


def link(body: Body) -> Link | None:
    """`diagnostics.previous_message_id` names the parent; it carries no history."""
    diagnostics = body.get("diagnostics")
    previous = diagnostics.get("previous_message_id") if isinstance(diagnostics, dict) else None
    if isinstance(previous, str):
        return Link("diagnostics", previous, "/diagnostics/previous_message_id")
    return None


def automatic_mark(body: Body) -> Mark | None:
    """A top-level `cache_control` asks for one breakpoint at the last block that can carry it."""
    return mark_of({"cache_control": body.get("cache_control")})


FORMAT = Format(
    name="anthropic-messages",
    tools=(ElementList("tools", tool),),
    head=(ElementList("system", system_block, system_text),),
    history=(ElementList("messages", message),),
    reply=reply,
    link=link,
    automatic_mark=automatic_mark,
)
