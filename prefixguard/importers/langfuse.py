"""Exports of Langfuse: observations of type GENERATION, one model call each.

What is in `input` is what the traced program put there: a list of messages, an
API's body, or a text. Tokens that were cached are counted beside the input.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from prefixguard.exchange import Capture, Timing
from prefixguard.importers import messages as forms
from prefixguard.importers.captures import make_capture, seconds, upstream_of
from prefixguard.importers.figures import usage_of
from prefixguard.importers.formats import FormatRule
from prefixguard.importers.nested import Nested
from prefixguard.importers.records import elements, objects, opened, value_of
from prefixguard.importers.told import Told

type _Call = tuple[Mapping[str, Any], Capture, tuple[str, ...]]
"""A row, the call that it tells of, and what it does not hold."""

_LISTS = ("data", "observations")
_DOCUMENT = re.compile(rb'\s*\{\s*"(data|observations)"\s*:\s*\[')
"""One document with all in a list: read element by element, so that a damaged one gives the rest."""
_HEAD = 1024
_ANSWERS = ("choices", "output", "candidates")


def read(path: Path, rule: FormatRule, told: Told) -> Iterator[Capture]:
    """The model calls of an export, in its order; a generation inside another tells the same call."""
    nested = Nested(told)
    for row, capture, lost in _calls(path, rule, told):
        parent = _text(_first(row, rule, "parent")) or ""
        yield from nested.add(str(_first(row, rule, "id")), parent, capture, lost)
    yield from nested.rest()


def _calls(path: Path, rule: FormatRule, told: Told) -> Iterator[_Call]:
    with opened(path) as stream:
        begun = stream.read(_HEAD)
    if (match := _DOCUMENT.match(begun)) is not None:
        with opened(path) as stream:
            whole = stream.read()
        for number, raw in enumerate(elements(whole, (match[1].decode(),), told), 1):
            yield from _observation(_value(raw), f"entry {number}", None, rule, told)
        return
    with opened(path) as stream:
        for where, record in objects(stream, told):
            rows = next((record[name] for name in _LISTS if isinstance(record.get(name), list)), None)
            session = _text(_first(_trace(record), rule, "session"))
            for number, row in enumerate([record] if rows is None else rows, 1):
                place = where if rows is None else f"{where}, observation {number}"
                yield from _observation(row, place, session, rule, told)


def _observation(
    row: object, place: str, session: str | None, rule: FormatRule, told: Told
) -> Iterator[_Call]:
    if not isinstance(row, dict):
        told.problem(place, "not an observation")
        return
    if _first(row, rule, "type") not in rule.names["types"]:
        told.aside["other observations"] += 1
        return
    try:
        capture, lost = _capture(row, session, rule)
    except (ValueError, TypeError) as error:
        told.problem(place, error)
        return
    yield row, capture, lost


def _value(raw: bytes | msgspec.Raw) -> object:
    try:
        return value_of(raw)
    except ValueError:
        return None


def _trace(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """Where a document that holds observations says what session they belong to."""
    trace = record.get("trace")
    return trace if isinstance(trace, dict) else record


def _capture(
    row: Mapping[str, Any], session: str | None, rule: FormatRule
) -> tuple[Capture, tuple[str, ...]]:
    """(the call, what the export does not hold of it)."""
    t = seconds(_first(row, rule, "start"))
    if t is None:
        raise ValueError(f"the start time is no moment: {_first(row, rule, 'start')!r}")
    model = _text(_first(row, rule, "model"))
    provider = "anthropic" if model and "claude" in model.lower() else ""
    body, lost = _request(_json(_first(row, rule, "input")), provider, rule)
    parameters = _json(_first(row, rule, "parameters"))
    body = {"model": model, **(parameters if isinstance(parameters, dict) else {}), **body}
    response = _response(_json(_first(row, rule, "output")))
    usage = _usage(_json(_first(row, rule, "usage")), provider, rule)
    if usage is not None and "usage" not in response:
        response["usage"] = usage
    elif usage is None:
        lost = (*lost, "usage")
    end, begun = seconds(_first(row, rule, "end")), seconds(_first(row, rule, "begun"))
    trace = _text(_first(row, rule, "trace"))
    alone = _first(row, rule, "parent") is None
    capture = make_capture(
        rule.name,
        name=str(_first(row, rule, "id")),
        t=t,
        path="/v1/responses" if "input" in body and "messages" not in body else "/v1/chat/completions",
        upstream=upstream_of(provider),
        request=body,
        response=response or None,
        status=200 if _first(row, rule, "level") != "ERROR" else None,
        session=_text(_first(row, rule, "session")) or session or (None if alone else trace),
        lost=lost,
        timing=Timing(
            None if begun is None else (begun - t) * 1000, None if end is None else (end - t) * 1000
        ),
    )
    return capture, lost


def _request(said: Any, provider: str, rule: FormatRule) -> tuple[dict[str, Any], tuple[str, ...]]:
    """(the body's members, what is missing) of an observation's input."""
    marks = ("breakpoints",) if provider in ("anthropic",) else ()
    if isinstance(said, dict) and isinstance(said.get("messages"), list) and _are_messages(said["messages"]):
        lost = rule.lost if "tools" in said else ("tools", *rule.lost)
        return dict(said), (*(() if _marked(said) else marks), *lost)
    if isinstance(said, list) and _are_messages(said):
        return {"messages": forms.from_parts(said)}, (*marks, "tools", *rule.lost)
    if isinstance(said, str) and said:
        return {"messages": [{"role": "user", "content": said}]}, (*marks, "system", "tools", *rule.lost)
    return {}, ("prompt",)


def _are_messages(values: list[Any]) -> bool:
    return bool(values) and all(isinstance(value, dict) and "role" in value for value in values)


def _marked(body: Mapping[str, Any]) -> bool:
    return "cache_control" in str(body)


def _response(said: Any) -> dict[str, Any]:
    """The answer as a response body: one that is there whole, or a message, or a text."""
    if isinstance(said, dict) and any(name in said for name in _ANSWERS):
        return dict(said)
    if isinstance(said, dict) and "role" in said:
        return forms.reply([said])
    if isinstance(said, list) and _are_messages(said):
        return forms.reply(said)
    if isinstance(said, str) and said:
        return forms.reply([{"role": "assistant", "content": said}])
    return {}


def _usage(told: Any, provider: str, rule: FormatRule) -> dict[str, Any] | None:
    """Langfuse's counts are disjoint: input was neither read nor written, unless the total says else."""
    if not isinstance(told, dict):
        return None
    counts = {
        name: _count(told, rule, f"{name}_tokens") for name in ("input", "output", "total", "read", "written")
    }
    plain = counts["input"]
    if plain is None:
        return None
    cached = (counts["read"] or 0) + (counts["written"] or 0)
    inside = counts["total"] is not None and counts["total"] == plain + (counts["output"] or 0)
    whole = plain if inside and cached <= plain else plain + cached
    return usage_of({**counts, "input": whole}, provider)


def _count(told: Mapping[str, Any], rule: FormatRule, what: str) -> int | None:
    for name in rule.names[what]:
        value = told.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0:
            return int(value)
    return None


def _first(row: Mapping[str, Any], rule: FormatRule, what: str) -> Any:
    return next((row[name] for name in rule.names[what] if row.get(name) is not None), None)


def _json(value: object) -> Any:
    """A value that an export may hold as JSON text."""
    if isinstance(value, str) and value[:1] in ("{", "[", '"'):
        try:
            return value_of(value.encode("utf-8", "surrogatepass"))
        except ValueError:
            return value
    return value


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
