"""Raw completions: `/v1/completions` and llama.cpp's `/completion`. The prompt is one text."""

from __future__ import annotations

from typing import Any

from prefixguard.prompt import Kind
from prefixguard.wire.blocks import string
from prefixguard.wire.format import ElementList, Format, Segments
from prefixguard.wire.identity import other_segment, text_segment


def prompt_text(text: str) -> Segments:
    """`prompt` as a string."""
    return (text_segment(text, "user", "", shape="string"),) if text else ()


def prompt_element(element: Any) -> Segments:
    """One entry of `prompt` as a list: a text, or token ids, which are compared but not read."""
    if isinstance(element, str):
        return prompt_text(element)
    if isinstance(element, dict) and isinstance(element.get("prompt_string"), str):
        return prompt_text(element["prompt_string"])
    return (other_segment(element, "user", ""),)


def reply(response: Any) -> Segments:
    """The generated text."""
    if not isinstance(response, dict):
        return ()
    choices = response.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else response
    text = string(choice.get("text") or choice.get("content")) if isinstance(choice, dict) else ""
    return (text_segment(text, "assistant", "", kind=Kind.TEXT),) if text else ()


FORMAT = Format(
    name="completions", tools=(), head=(),
    history=(ElementList("prompt", prompt_element, prompt_text),), reply=reply, raw=True,
)  # fmt: skip
LLAMACPP = Format(
    name="llamacpp", tools=(), head=(),
    history=(ElementList("prompt", prompt_element, prompt_text),), reply=reply, raw=True,
)  # fmt: skip
