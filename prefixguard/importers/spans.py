"""Spans of a trace as exporters write them in JSON, brought into one form.

OTLP JSON (one request of an exporter, or one a line, as collectors write it),
the objects that OpenTelemetry's SDKs print to a console, and pages and tables
of spans as Phoenix gives them out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from prefixguard.importers.captures import seconds

_LISTS = ("resourceSpans", "resource_spans")
_SCOPES = ("scopeSpans", "scope_spans", "instrumentationLibrarySpans")
_COLUMN = "attributes."
_ERROR = (2, "STATUS_CODE_ERROR", "ERROR")


@dataclass(frozen=True, slots=True)
class Span:
    """One span. attributes: by dotted name. start, end: seconds since the epoch. parent: "" for a root."""

    name: str
    trace: str
    id: str
    parent: str
    start: float | None
    end: float | None
    attributes: Mapping[str, Any]
    events: tuple[tuple[str, Mapping[str, Any]], ...] = ()
    scope: str = ""
    failed: bool = False
    resource: Mapping[str, Any] = field(default_factory=dict)


def spans_of(record: Mapping[str, Any]) -> Iterator[Span]:
    """The spans in a record. Raises ValueError, TypeError or AttributeError for what is none."""
    page = record.get("data")
    if isinstance(page, list):
        for span in page:
            yield _span(span, {}, "")
        return
    groups = next((record[name] for name in _LISTS if name in record), None)
    if groups is None:
        yield _span(record, {}, "")
        return
    for group in groups:
        resource = attributes_of((group.get("resource") or {}).get("attributes"))
        for scoped in next((group[name] for name in _SCOPES if name in group), ()):
            told = scoped.get("scope") or scoped.get("instrumentationLibrary") or {}
            scope = f"{told.get('name', '')} {told.get('version', '')}".strip()
            for span in scoped.get("spans") or ():
                yield _span(span, resource, scope)


def _span(span: Mapping[str, Any], resource: Mapping[str, Any], scope: str) -> Span:
    context = span.get("context") or {}
    status = span.get("status") or span
    events = tuple(
        (str(event.get("name", "")), attributes_of(event.get("attributes")))
        for event in span.get("events") or ()
        if isinstance(event, dict)
    )
    return Span(
        name=str(span.get("name", "")),
        trace=_id(_first(span, "traceId", "trace_id", "context.trace_id") or context.get("trace_id")),
        id=_id(_first(span, "spanId", "span_id", "context.span_id") or context.get("span_id")),
        parent=_id(_first(span, "parentSpanId", "parent_span_id", "parent_id")),
        start=seconds(_first(span, "startTimeUnixNano", "start_time_unix_nano", "start_time", "startTime")),
        end=seconds(_first(span, "endTimeUnixNano", "end_time_unix_nano", "end_time", "endTime")),
        attributes=_attributes(span),
        events=events,
        scope=scope,
        failed=_first(status, "code", "status_code") in _ERROR,
        resource=resource,
    )


def _attributes(span: Mapping[str, Any]) -> dict[str, Any]:
    """A span's attributes; in a table each has a column of its own."""
    found = attributes_of(span.get("attributes"))
    for name, value in span.items():
        if name.startswith(_COLUMN) and value is not None:
            _flatten(name.removeprefix(_COLUMN), value, found)
    return found


def attributes_of(raw: object) -> dict[str, Any]:
    """Attributes by dotted name: OTLP's list of keys and values, or an object, nested or flat."""
    found: dict[str, Any] = {}
    if isinstance(raw, list):
        for pair in raw:
            if isinstance(pair, dict) and isinstance(pair.get("key"), str):
                found[pair["key"]] = any_value(pair.get("value"))
    elif isinstance(raw, dict):
        _flatten("", raw, found)
    return found


def any_value(value: object) -> Any:
    """OTLP's AnyValue as plain JSON."""
    if not isinstance(value, Mapping):
        return value
    for name, inner in value.items():
        if inner is None:
            continue  # some writers name every kind that a value could be of
        match name:
            case "intValue" | "int_value":
                return int(inner)
            case "arrayValue" | "array_value":
                return [any_value(item) for item in inner.get("values") or ()]
            case "kvlistValue" | "kvlist_value":
                return {pair["key"]: any_value(pair.get("value")) for pair in inner.get("values") or ()}
            case _:
                return inner
    return None


def _flatten(prefix: str, value: object, found: dict[str, Any]) -> None:
    """Nested objects, and lists of objects by their numbers, as dotted names; all else as it is."""
    if isinstance(value, dict):
        for name, inner in value.items():
            _flatten(f"{prefix}.{name}" if prefix else str(name), inner, found)
    elif isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
        for number, item in enumerate(value):
            _flatten(f"{prefix}.{number}", item, found)
    else:
        found[prefix] = value


def _first(holder: object, *names: str) -> Any:
    if not isinstance(holder, Mapping):
        return None
    return next((holder[name] for name in names if holder.get(name) is not None), None)


def _id(value: object) -> str:
    return str(value or "").removeprefix("0x").lower()
