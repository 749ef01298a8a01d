"""OpenAI Chat Completions, and everything that speaks it: leading system messages form the head."""

from __future__ import annotations

from typing import Any

from prefixguard.prompt import Mark, Role, Segment, Shape
from prefixguard.wire.blocks import joined_text, mark_of, string, without_mark
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

_ROLES: dict[str, Role] = {
    "system": "system", "developer": "system", "user": "user", "assistant": "assistant",
    "tool": "tool", "function": "tool",
}  # fmt: skip


def tool(element: Any) -> Segments:
    """One entry of `tools` (or of the older `functions`)."""
    if not isinstance(element, dict):
        return (tool_segment(element, "", name=None),)
    function = element.get("function")
    inner = function if isinstance(function, dict) else element
    name = string(inner.get("name") or element.get("type"))
    return (tool_segment(without_mark(element), "", name=name, mark=mark_of(element)),)


def message(element: Any) -> Segments:
    """One entry of `messages`: reasoning, content, refusal, tool calls, in that order."""
    if not isinstance(element, dict):
        return (other_segment(element, "user", ""),)
    label = string(element.get("role")) or "user"
    role = _ROLES.get(label, "user")
    if role == "tool":
        return _tool_message(element)
    name = element.get("name")
    if isinstance(name, str) and name:
        label = f"{label}:{name}"
    found: list[Segment] = []
    for key in ("reasoning_content", "reasoning", "thinking"):
        value = element.get(key)
        if isinstance(value, str) and value:
            found.append(reasoning_segment(value, f"/{key}"))
            break
    details = element.get("reasoning_details")
    if isinstance(details, list) and not found:
        found += [
            reasoning_segment(string(part.get("text") or part.get("summary")), f"/reasoning_details/{i}",
                              sealed=string(part.get("data") or part.get("signature")))
            for i, part in enumerate(details) if isinstance(part, dict)
        ]  # fmt: skip
    found += content_segments(element.get("content"), role, "/content", label=label, mark=mark_of(element))
    refusal = element.get("refusal")
    if isinstance(refusal, str) and refusal:
        found.append(text_segment(refusal, role, "/refusal", label=label))
    images = element.get("images")
    if isinstance(images, list):  # Ollama
        found += [media_segment(string(image), role, f"/images/{i}") for i, image in enumerate(images)]
    found += _calls(element)
    return tuple(found)


def content_segments(
    content: Any, role: Role, pointer: str, *, label: str | None = None, mark: Mark | None = None
) -> list[Segment]:
    """A content value: a string, or a list of parts."""
    if content is None or content == "":
        return []
    if isinstance(content, str):
        return [text_segment(content, role, pointer, label=label, shape="string", mark=mark)]
    if not isinstance(content, list):
        return [other_segment(content, role, pointer, mark=mark)]
    return [
        segment
        for i, part in enumerate(content)
        for segment in _part(part, role, f"{pointer}/{i}", label, mark if i == len(content) - 1 else None)
    ]


def _part(part: Any, role: Role, pointer: str, label: str | None, outer: Mark | None) -> Segments:
    if isinstance(part, str):
        return (text_segment(part, role, pointer, label=label, mark=outer),) if part else ()
    if not isinstance(part, dict):
        return (other_segment(part, role, pointer, mark=outer),)
    mark = mark_of(part) or outer
    kind = string(part.get("type"))
    match kind:
        case "text" | "input_text" | "output_text" | "summary_text":
            text = string(part.get("text"))
            return (text_segment(text, role, pointer + "/text", label=label, mark=mark),) if text else ()
        case "refusal":
            return (text_segment(string(part.get("refusal")), role, pointer, label=label, mark=mark),)
        case "thinking" | "reasoning":
            text = joined_text(part.get("thinking") or part.get("text"))
            return (reasoning_segment(text, pointer, sealed=string(part.get("signature")), mark=mark),)
        case "image_url" | "input_image":
            return (_image(part, role, pointer, mark),)
        case "input_audio":
            audio = part.get("input_audio")
            data = audio.get("data") if isinstance(audio, dict) else audio
            return (media_segment(string(data), role, pointer, media_type="audio", mark=mark),)
        case "file" | "input_file" | "video_url":
            inner = part.get("file") or part.get("video_url")
            source = inner if isinstance(inner, dict) else part
            data = next(
                (source[k] for k in ("file_data", "file_id", "file_url", "url") if source.get(k)),
                string(inner),
            )
            return (media_segment(string(data), role, pointer, media_type=kind.split("_")[-1], mark=mark),)
    return (other_segment(without_mark(part), role, pointer, mark=mark),)


def _image(part: dict[str, Any], role: Role, pointer: str, mark: Mark | None) -> Segment:
    source = part.get("image_url")
    detail = part.get("detail")
    if isinstance(source, dict):
        detail = source.get("detail", detail)
        source = source.get("url")
    return media_segment(
        string(source or part.get("file_id")), role, pointer, detail=string(detail), mark=mark
    )


def _tool_message(element: dict[str, Any]) -> Segments:
    content = element.get("content")
    shape: Shape = "string" if isinstance(content, str) else "blocks"
    mark = mark_of(element)
    if isinstance(content, list):
        mark = next((m for part in reversed(content) if (m := mark_of(part))), mark)
    call_id = element.get("tool_call_id") or element.get("name") or element.get("tool_name")
    result = result_segment(joined_text(content), "/content", call_id=string(call_id), shape=shape, mark=mark)
    if not isinstance(content, list):
        return (result,)
    media = [
        segment
        for i, part in enumerate(content)
        if isinstance(part, dict) and string(part.get("type")) not in ("text", "input_text", "output_text")
        for segment in _part(part, "tool", f"/content/{i}", None, None)
    ]
    return (result, *media)


def _calls(element: dict[str, Any]) -> list[Segment]:
    found: list[Segment] = []
    calls = element.get("tool_calls")
    if isinstance(calls, list):
        for i, call in enumerate(calls):
            if not isinstance(call, dict):
                found.append(other_segment(call, "assistant", f"/tool_calls/{i}"))
                continue
            function = call.get("function") or call.get("custom")
            function = function if isinstance(function, dict) else {}
            arguments = function.get("arguments", function.get("input", ""))
            found.append(
                call_segment(
                    string(function.get("name")), "" if arguments is None else arguments,
                    f"/tool_calls/{i}/function/arguments", call_id=string(call.get("id")) or None,
                )
            )  # fmt: skip
    function = element.get("function_call")
    if isinstance(function, dict):
        found.append(
            call_segment(
                string(function.get("name")), string(function.get("arguments")),
                "/function_call/arguments", call_id=None,
            )
        )  # fmt: skip
    return found


def reply(response: Any) -> Segments:
    """The first choice's message, as a client would send it back."""
    if not isinstance(response, dict):
        return ()
    choices = response.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    answer = choice.get("message") if isinstance(choice, dict) else response.get("message")  # Ollama
    return message({"role": "assistant", **answer}) if isinstance(answer, dict) else ()


FORMAT = Format(
    name="openai-chat",
    tools=(ElementList("tools", tool), ElementList("functions", tool)),
    head=(),
    history=(ElementList("messages", message),),
    reply=reply,
    leading_head=True,
)

OLLAMA = Format(
    name="ollama-chat",
    tools=(ElementList("tools", tool),),
    head=(),
    history=(ElementList("messages", message),),
    reply=reply,
    leading_head=True,
)
