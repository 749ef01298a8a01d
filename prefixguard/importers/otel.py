"""Spans of model calls: OpenTelemetry's conventions for generative AI, OpenInference, OpenLLMetry.

Which attribute holds what, in which version, is data in `rules/importers/otel.toml`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from prefixguard.exchange import Capture, Timing
from prefixguard.importers import messages as forms
from prefixguard.importers.captures import make_capture, origin_of, upstream_of
from prefixguard.importers.figures import usage_of
from prefixguard.importers.formats import FormatRule
from prefixguard.importers.nested import Nested
from prefixguard.importers.records import objects, opened, value_of
from prefixguard.importers.spans import Span, spans_of
from prefixguard.importers.told import Told

_WHOLE = ("bytes", "headers")
_TOLD = ("parameters", "order", "bytes", "headers")


def read(path: Path, rule: FormatRule, told: Told) -> Iterator[Capture]:
    """The model calls among the spans of a file, in the order in which they ended."""
    nested = Nested(told)
    with opened(path) as stream:
        for where, record in objects(stream, told):
            try:
                spans = list(spans_of(record))
            except (ValueError, TypeError, AttributeError, KeyError) as error:
                told.problem(where, f"not a span: {error}")
                continue
            for span in spans:
                if not _is_call(span.attributes, rule):
                    told.aside["other spans"] += 1
                    continue
                if span.start is None:
                    told.problem(where, f"span {span.id}: it has no start time")
                    continue
                told.producer = span.scope or told.producer
                capture, lost = _capture(span, span.start, rule)
                yield from nested.add(span.id, span.parent, capture, lost)
    yield from nested.rest()


def _is_call(attributes: Mapping[str, Any], rule: FormatRule) -> bool:
    """Whether a span is one request to a model. An operation's name decides where there is one."""
    operation = _first(attributes, rule, "operation")
    if operation is not None:
        return operation in rule.names["operations"]
    kind = _first(attributes, rule, "kind")
    if kind is not None:
        return kind in rule.names["kinds"]
    return _first(attributes, rule, "model") is not None and _first(attributes, rule, "input") is not None


def _capture(span: Span, start: float, rule: FormatRule) -> tuple[Capture, tuple[str, ...]]:
    attributes = _with_events(span, rule)
    provider = str(_first(attributes, rule, "provider") or "").lower()
    body, response, lost = _bodies(attributes, span, provider, rule)
    model = _first(attributes, rule, "model")
    if model is not None and "model" not in body:
        body = {"model": model, **body}
    usage = _json(_first(attributes, rule, "usage"))
    if not isinstance(usage, dict):
        usage = usage_of({name: _first(attributes, rule, name) for name in rule.names}, provider)
    if usage is None and "usage" not in response:
        lost = (*lost, "usage")
    elif usage is not None and not isinstance(response.get("usage"), dict):
        response = {**response, "usage": usage}
    identity = _first(attributes, rule, "response_id")
    if identity is not None and "id" not in response:
        response = {"id": identity, **response}
    return make_capture(
        rule.name,
        name=f"{span.trace}:{span.id}",
        t=start,
        path=_path(body, provider, str(body.get("model") or "")),
        upstream=_upstream(attributes, provider, rule),
        request=body,
        response=response,
        status=_status(attributes, span, rule),
        session=_session(attributes, span, rule),
        thread=_name(_first(attributes, rule, "thread")),
        lost=lost,
        timing=_timing(attributes, span, start, rule),
        agent=_name(span.resource.get("service.name")),
    ), lost


def _bodies(
    attributes: Mapping[str, Any], span: Span, provider: str, rule: FormatRule
) -> tuple[dict[str, Any], dict[str, Any], tuple[str, ...]]:
    """(request, response, what is missing), from the form of telling them that says most."""
    whole = _json(_first(attributes, rule, "body"))
    answer = _json(_first(attributes, rule, "answer"))
    if isinstance(whole, dict) and _is_body(whole):
        fits = isinstance(answer, dict) and any(
            k in answer for k in ("choices", "output", "content", "candidates")
        )
        return whole, dict(answer) if fits and isinstance(answer, dict) else _reply(attributes, rule), _WHOLE
    said = _said(attributes, span, rule)
    body = _parameters(attributes, rule)
    if not said:
        return {}, _reply(attributes, rule), ("prompt",)
    lost: tuple[str, ...] = _TOLD
    if provider in rule.names["marked"]:
        lost = ("breakpoints", *lost)
    tools = _tools(attributes, rule)
    if tools is None:
        lost = ("tools", *lost)
    elif tools:
        body["tools"] = tools
    return {**body, "messages": said}, _reply(attributes, rule), lost


def _said(attributes: Mapping[str, Any], span: Span, rule: FormatRule) -> list[forms.Message]:
    """The prompt's messages, [] where the span has none or what it has was cut off."""
    told = _json(_first(attributes, rule, "messages"))
    try:
        if isinstance(told, list):
            return [*forms.system_text(_json(_first(attributes, rule, "system"))), *forms.from_parts(told)]
    except ValueError:
        return []
    for prefix in rule.names["messages_from"]:
        if rows := forms.indexed(attributes, prefix):
            return [forms.from_fields(row) for row in rows]
    events = [*span.events]
    listed = _json(_first(attributes, rule, "event_list"))
    if isinstance(listed, list):
        events += [(str(e.get("event.name", "")), e) for e in listed if isinstance(e, dict)]
    return [message for name, fields in events if (message := _event_message(name, fields)) is not None]


def _event_message(name: str, fields: Mapping[str, Any]) -> forms.Message | None:
    """A message told as an event of its own: gen_ai.user.message and its like."""
    parts = name.split(".")
    if len(parts) != 3 or parts[0] != "gen_ai" or parts[2] != "message":
        return None
    role = "assistant" if parts[1] == "choice" else parts[1]
    message: forms.Message = {"role": role, "content": fields.get("content")}
    for ours, theirs in (("tool_calls", "tool_calls"), ("tool_call_id", "id")):
        if fields.get(theirs) is not None:
            message[ours] = _json(fields[theirs])
    return message


def _tools(attributes: Mapping[str, Any], rule: FormatRule) -> list[dict[str, Any]] | None:
    """The tool definitions; None where nothing says whether there were any."""
    told = _json(_first(attributes, rule, "tools"))
    if isinstance(told, list):
        return forms.tools_of(told)
    for prefix in rule.names["tools_from"]:
        rows = forms.indexed(attributes, prefix)
        if rows:
            found = [_json(row.get("tool.json_schema", row)) for row in rows]
            return forms.tools_of([_plain_tool(tool) for tool in found if isinstance(tool, dict)])
    return None


def _plain_tool(tool: dict[str, Any]) -> dict[str, Any]:
    return {
        name: _json(value) if name in ("parameters", "input_schema") else value
        for name, value in tool.items()
    }


def _reply(attributes: Mapping[str, Any], rule: FormatRule) -> dict[str, Any]:
    told = _json(_first(attributes, rule, "replies"))
    if isinstance(told, dict) and "role" in told:
        told = [told]
    if isinstance(told, list):
        try:
            return forms.reply(forms.from_parts(told))
        except ValueError:
            return {}
    for prefix in rule.names["replies_from"]:
        if rows := forms.indexed(attributes, prefix):
            return forms.reply([{**forms.from_fields(row), "role": "assistant"} for row in rows])
    return {}


def _parameters(attributes: Mapping[str, Any], rule: FormatRule) -> dict[str, Any]:
    found: dict[str, Any] = {}
    told = _json(_first(attributes, rule, "parameters"))
    if isinstance(told, dict):
        found |= told
    for prefix in rule.names["parameter_prefix"]:
        for name, value in attributes.items():
            if name.startswith(prefix) and "." not in name[len(prefix) :]:
                found[name[len(prefix) :]] = value
    return found


def _with_events(span: Span, rule: FormatRule) -> Mapping[str, Any]:
    """The attributes, with those of an event that tells the contents in the span's stead."""
    for name, fields in span.events:
        if name in rule.names["events"]:
            return {**fields, **span.attributes}
    return span.attributes


def _is_body(body: Mapping[str, Any]) -> bool:
    """Whether JSON is a request of an API that is known, not a framework's own objects."""
    for name in ("messages", "contents", "input"):
        value = body.get(name)
        if isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
            return "lc" not in value[0]
        if isinstance(value, str) and name == "input":
            return True
    return isinstance(body.get("prompt"), str) and "model" in body


def _path(body: Mapping[str, Any], provider: str, model: str) -> str:
    if "contents" in body:
        return f"/v1beta/models/{model}:generateContent"
    if "messages" not in body and "input" in body:
        return "/v1/responses"
    if "messages" not in body and "prompt" in body:
        return "/v1/completions"
    tools = body.get("tools")
    anthropic_tools = isinstance(tools, list) and any(
        isinstance(t, dict) and "input_schema" in t for t in tools
    )
    if "system" in body or anthropic_tools or ("messages" not in body and provider == "anthropic"):
        return "/v1/messages"
    return "/v1/chat/completions"


def _upstream(attributes: Mapping[str, Any], provider: str, rule: FormatRule) -> str:
    for name in rule.names["address"]:
        value = attributes.get(name)
        if not isinstance(value, str) or not value:
            continue
        if "://" in value:
            return origin_of(value)[0]
        port = attributes.get("server.port")
        local = value in ("localhost", "127.0.0.1", "::1")
        scheme = "http" if local or port == 80 else "https"
        return f"{scheme}://{value}" + (f":{port}" if port not in (None, 80, 443) else "")
    return upstream_of(provider)


def _status(attributes: Mapping[str, Any], span: Span, rule: FormatRule) -> int | None:
    code = _first(attributes, rule, "status")
    if isinstance(code, int):
        return code
    return None if span.failed else 200


def _session(attributes: Mapping[str, Any], span: Span, rule: FormatRule) -> str | None:
    """What names the run; else its trace, where the call is a part of one and not the whole of it."""
    named = _first(attributes, rule, "session")
    if isinstance(named, str) and named:
        return named
    return span.trace if span.parent and span.trace else None


def _timing(attributes: Mapping[str, Any], span: Span, start: float, rule: FormatRule) -> Timing:
    first = _first(attributes, rule, "first_token")
    return Timing(
        float(first) * 1000 if isinstance(first, int | float) else None,
        None if span.end is None else (span.end - start) * 1000,
    )


def _first(attributes: Mapping[str, Any], rule: FormatRule, what: str) -> Any:
    return next((attributes[name] for name in rule.names[what] if attributes.get(name) is not None), None)


def _json(value: object) -> Any:
    """A value that an attribute holds as JSON text; None where the text was cut off."""
    if isinstance(value, str) and value[:1] in ("{", "["):
        try:
            return value_of(value.encode("utf-8", "surrogatepass"))
        except ValueError:
            return None
    return value


def _name(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
