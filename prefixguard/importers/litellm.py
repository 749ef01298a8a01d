"""Logs of LiteLLM: the payload that its loggers get, one JSON object a request, and rows of its spend table.

Also behind the callback class (`integrations/litellm`), which records the same
payload in process. The messages are those that LiteLLM was asked with; what it
sent to the provider may look different.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from prefixguard.exchange import Capture, Timing
from prefixguard.importers.captures import make_capture, origin_of, seconds, upstream_of
from prefixguard.importers.formats import FormatRule
from prefixguard.importers.records import objects, opened, value_of
from prefixguard.importers.told import Told

_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_PATHS = {
    "chat": "/v1/chat/completions",
    "responses": "/v1/responses",
    "messages": "/v1/messages",
    "text": "/v1/completions",
}
_PROMPTS = {"chat": "messages", "responses": "input", "messages": "messages", "text": "prompt"}


def read(path: Path, rule: FormatRule, told: Told) -> Iterator[Capture]:
    """The requests of a log, in its order (LiteLLM writes a request when it ends)."""
    with opened(path) as stream:
        for where, record in objects(stream, told):
            payload = record.get("standard_logging_object", record)
            if not isinstance(payload, dict):
                told.problem(where, "standard_logging_object is no object")
                continue
            try:
                capture = capture_of(payload, rule, told)
            except (ValueError, TypeError, AttributeError) as error:
                told.problem(where, error)
                continue
            if capture is not None:
                yield capture


def capture_of(payload: Mapping[str, Any], rule: FormatRule, told: Told) -> Capture | None:
    """One logged request, or None for what is none. Raises ValueError naming the field that is wrong."""
    kind = next((kind for kind in _PATHS if payload.get("call_type") in rule.names[kind]), None)
    if kind is None:
        told.aside[f"calls of type {payload.get('call_type')}"] += 1
        return None
    if _truth(payload.get("cache_hit")):
        told.aside["answers from LiteLLM's own cache"] += 1
        return None
    t = seconds(payload.get("startTime"))
    if t is None:
        raise ValueError(f"startTime is no moment: {payload.get('startTime')!r}")
    body, headers, lost = _request(payload, kind, rule)
    response = _response(payload)
    upstream = origin_of(str(payload.get("api_base") or ""))[0]
    told.took(lost)
    return make_capture(
        rule.name,
        name=str(payload.get("litellm_call_id") or payload.get("request_id") or payload.get("id")),
        t=t,
        path=_PATHS[kind],
        upstream=upstream or upstream_of(_text(payload.get("custom_llm_provider"))),
        request=body,
        response=response or None,
        status=_status(payload),
        headers=headers,
        session=_session(payload),
        lost=lost,
        timing=_timing(payload, t, streamed=body.get("stream") is True),
        agent="litellm",
    )


def _request(
    payload: Mapping[str, Any], kind: str, rule: FormatRule
) -> tuple[dict[str, Any], dict[str, str], tuple[str, ...]]:
    """(body, headers, what is missing)."""
    asked = _json(payload.get("proxy_server_request"))
    model = _model(payload)
    body: dict[str, Any] = {"model": model}
    headers: dict[str, str] = {}
    prompt = _json(payload.get("messages"))
    if isinstance(asked, dict) and any(name in asked for name in _PROMPTS.values()):
        body = {**asked, "model": model or asked.get("model")}
        prompt = body.get(_PROMPTS[kind])
    else:
        parameters = _json(payload.get("model_parameters"))
        if prompt:
            body[_PROMPTS[kind]] = prompt
        for name, value in (parameters if isinstance(parameters, dict) else {}).items():
            if name in ("extra_headers", "headers") and isinstance(value, dict):
                headers |= {str(key): str(text) for key, text in value.items()}
            elif value is not None and name not in body:
                body[name] = value
    for name in [name for name in body if name in rule.names["secret"]]:
        del body[name]
    missing = not prompt or _is_redacted(prompt, rule)
    if missing:
        return {"model": body["model"]}, headers, ("prompt",)
    return body, headers, rule.lost


def _model(payload: Mapping[str, Any]) -> str | None:
    """The model as the provider knows it, without the provider that LiteLLM may put in front."""
    model, provider = _text(payload.get("model")), _text(payload.get("custom_llm_provider"))
    return model.removeprefix(f"{provider}/") if model and provider else model


def _response(payload: Mapping[str, Any]) -> dict[str, Any]:
    """The response with its usage; where it was not kept, the usage from beside it."""
    found = _json(payload.get("response"))
    response = dict(found) if isinstance(found, dict) else {}
    usage = response.pop("usage", None)
    if isinstance(usage, dict) and usage.get("prompt_tokens", usage.get("input_tokens")):
        return {**response, "usage": usage}
    # Where a stream told no usage, LiteLLM writes noughts, which are no counts.
    metadata = _json(payload.get("metadata"))
    usage = metadata.get("usage_object") if isinstance(metadata, dict) else None
    if not usage and payload.get("prompt_tokens"):
        # The bare sums say nothing of a cache: what was read stays unknown.
        usage = {"prompt_tokens": payload["prompt_tokens"]}
        if payload.get("completion_tokens") is not None:
            usage["completion_tokens"] = payload["completion_tokens"]
    if isinstance(usage, dict) and usage.get("prompt_tokens", usage.get("input_tokens")):
        response["usage"] = usage
    return response


def _is_redacted(prompt: object, rule: FormatRule) -> bool:
    messages = prompt if isinstance(prompt, list) else [prompt]
    texts = [message.get("content") if isinstance(message, dict) else message for message in messages]
    return bool(texts) and all(text in rule.names["redacted"] for text in texts)


def _session(payload: Mapping[str, Any]) -> str | None:
    """The session, where somebody gave one. LiteLLM makes up a random trace id for calls that have none."""
    for name in ("session_id", "trace_id"):
        value = _text(payload.get(name))
        made_up = value == payload.get("litellm_call_id") or (
            name == "trace_id" and _UUID.fullmatch(value or "")
        )
        if value and not made_up:
            return value
    return None


def _status(payload: Mapping[str, Any]) -> int | None:
    if payload.get("status") != "failure":
        return 200
    error = payload.get("error_information")
    code = str(error.get("error_code") or "") if isinstance(error, dict) else ""
    return int(code) if code.isdecimal() and 100 <= int(code) < 600 else None


def _timing(payload: Mapping[str, Any], t: float, *, streamed: bool) -> Timing:
    end, begun = seconds(payload.get("endTime")), seconds(payload.get("completionStartTime"))
    first = (begun - t) * 1000 if begun is not None and (streamed or begun != end) else None
    return Timing(first, None if end is None else (end - t) * 1000)


def _json(value: object) -> Any:
    """A value that may have been stored as JSON text."""
    if isinstance(value, str) and value[:1] in ("{", "["):
        try:
            return value_of(value.encode())
        except ValueError:
            return value
    return value


def _truth(value: object) -> bool:
    return value is True or (isinstance(value, str) and value.lower() == "true")


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
