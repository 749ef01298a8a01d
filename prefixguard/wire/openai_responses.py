"""OpenAI Responses: instructions, input items, and links to responses that hold earlier items."""

from __future__ import annotations

from typing import Any

from prefixguard.prompt import Link, Role, Segment, Shape
from prefixguard.wire.blocks import Body, joined_text, mark_of, string, without_mark
from prefixguard.wire.format import ElementList, Format, Segments
from prefixguard.wire.identity import (
    call_segment,
    other_segment,
    reasoning_segment,
    result_segment,
    text_segment,
    tool_segment,
)
from prefixguard.wire.openai_chat import content_segments

_ROLES: dict[str, Role] = {
    "system": "system", "developer": "system", "user": "user", "assistant": "assistant",
}  # fmt: skip
# Not rendered: a client may mint them anew each time, and codex does.
_UNRENDERED = ("id", "status", "internal_chat_message_metadata_passthrough")


def tool(element: Any) -> Segments:
    """One entry of `tools`."""
    if not isinstance(element, dict):
        return (tool_segment(element, "", name=None),)
    name = string(element.get("name") or element.get("server_label") or element.get("type"))
    return (tool_segment(without_mark(element), "", name=name, mark=mark_of(element)),)


def item(element: Any) -> Segments:
    """One entry of `input` or `output`."""
    if isinstance(element, str):
        return (text_segment(element, "user", "", shape="string"),)
    if not isinstance(element, dict):
        return (other_segment(element, "user", ""),)
    mark = mark_of(element)
    kind = string(element.get("type")) or "message"
    if kind == "message":
        label = string(element.get("role")) or "user"
        role = _ROLES.get(label, "user")
        return tuple(content_segments(element.get("content"), role, "/content", label=label, mark=mark))
    if kind in ("function_call", "custom_tool_call", "mcp_call"):
        key = "input" if kind == "custom_tool_call" else "arguments"
        return (
            call_segment(
                string(element.get("name")), string(element.get(key)), f"/{key}",
                call_id=string(element.get("call_id")) or None, mark=mark,
            ),
        )  # fmt: skip
    if kind.endswith("_output"):
        return _output(element)
    if kind == "reasoning":
        return _reasoning(element)
    role = "assistant" if kind.endswith("_call") else "user"
    rest = {k: v for k, v in without_mark(element).items() if k not in _UNRENDERED}
    return (other_segment(rest, role, "", mark=mark),)


def _output(element: dict[str, Any]) -> Segments:
    output = element.get("output")
    shape: Shape = "string" if isinstance(output, str) else "blocks"
    result = result_segment(
        joined_text(output), "/output",
        call_id=string(element.get("call_id")) or None, shape=shape, mark=mark_of(element),
    )  # fmt: skip
    if not isinstance(output, list):
        return (result,)
    parts = [(i, p) for i, p in enumerate(output) if isinstance(p, dict) and "text" not in p]
    media: list[Segment] = []
    for i, part in parts:
        media += [
            Segment(s.kind, "tool", f"/output/{i}", s.text, s.exact, s.alike, s.loose, s.shape, s.name,
                    s.call_id, s.json, s.media, s.media_tokens, s.mark)
            for s in content_segments([part], "tool", "")
        ]  # fmt: skip
    return (result, *media)


def _reasoning(element: dict[str, Any]) -> Segments:
    parts = [*(element.get("summary") or []), *(element.get("content") or [])]
    text = joined_text([part for part in parts if isinstance(part, dict)])
    return (
        reasoning_segment(text, "", sealed=string(element.get("encrypted_content")), mark=mark_of(element)),
    )


def reply(response: Any) -> Segments:
    """The output items, as a client would send them back."""
    if not isinstance(response, dict) or not isinstance(response.get("output"), list):
        return ()
    return tuple(segment for element in response["output"] for segment in item(element))


def link(body: Body) -> Link | None:
    """`previous_response_id` or `conversation`: the earlier items are not in this body."""
    previous = body.text("previous_response_id")
    if previous:
        return Link("response", previous, "/previous_response_id")
    conversation = body.get("conversation")
    name = conversation.get("id") if isinstance(conversation, dict) else conversation
    if isinstance(name, str) and name:
        return Link("conversation", name, "/conversation")
    return None


def instructions(text: str) -> Segments:
    """`instructions`: one system text."""
    return (text_segment(text, "system", "", label="developer", shape="string"),) if text else ()


FORMAT = Format(
    name="openai-responses",
    tools=(ElementList("tools", tool),),
    head=(ElementList("instructions", item, instructions),),
    history=(ElementList("input", item, item),),
    reply=reply,
    leading_head=True,
    link=link,
)
