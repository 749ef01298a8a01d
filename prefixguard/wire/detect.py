"""Which format a request speaks: by its path, and where the path says nothing, by its fields."""

from __future__ import annotations

import re
from collections.abc import Set

from prefixguard.wire import anthropic, bedrock, completions, gemini, openai_chat, openai_responses
from prefixguard.wire.format import Format

_BY_PATH: tuple[tuple[re.Pattern[str], Format], ...] = (
    (re.compile(r"/chat/completions$"), openai_chat.FORMAT),
    (re.compile(r"/responses(/compact)?$"), openai_responses.FORMAT),
    (re.compile(r"/messages$"), anthropic.FORMAT),
    (re.compile(r":(stream)?[gG]enerateContent$"), gemini.FORMAT),
    (re.compile(r"/model/[^/]+/converse(-stream)?$"), bedrock.FORMAT),
    (re.compile(r"/api/chat$"), openai_chat.OLLAMA),
    (re.compile(r"/v1/completions$|/openai/.*/completions$"), completions.FORMAT),
    (re.compile(r"/completions?$"), completions.LLAMACPP),
)
FORMATS: tuple[Format, ...] = tuple(dict.fromkeys(f for _, f in _BY_PATH))


def detect(path: str, fields: Set[str]) -> Format | None:
    """The format of a request to `path` whose body has these top-level fields, or None."""
    path = path.partition("?")[0].rstrip("/")
    for pattern, format_ in _BY_PATH:
        if pattern.search(path):
            return format_
    if "contents" in fields:
        return gemini.FORMAT
    if "messages" in fields:
        anthropic_only = "system" in fields or ("max_tokens" in fields and "anthropic_version" in fields)
        return anthropic.FORMAT if anthropic_only else openai_chat.FORMAT
    return None


_MODEL_IN_PATH = re.compile(r"/models/([^/:]+):|/model/([^/]+)/|/deployments/([^/]+)/")


def model_in_path(path: str) -> str | None:
    """The model, for the APIs that name it in the path."""
    match = _MODEL_IN_PATH.search(path)
    return next((name for name in match.groups() if name), None) if match else None


def is_side_traffic(path: str) -> bool:
    """Requests that belong to a model API but carry no prompt to complete: counting, listing, health."""
    path = path.partition("?")[0].rstrip("/")
    return path.endswith(("/count_tokens", "/models", "/input_tokens", ":countTokens", "/embeddings"))
