"""Findings as SARIF 2.1.0, for code scanning and editors: the one writer for the gate and the linter.

A result stands at a line of source code, or at a line of an exchange log.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

from prefixguard import __version__
from prefixguard.finding import Severity
from prefixguard.reports.advice import flow
from prefixguard.reports.json import encode
from prefixguard.reports.visible import safe
from prefixguard.rulebook import FindingRule

VERSION = "2.1.0"
_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_ROOT = "SRCROOT"

type Level = Literal["error", "warning", "note"]
type Json = dict[str, Any]

LEVELS: Mapping[Severity, Level] = {"error": "error", "warning": "warning", "info": "note"}


@dataclass(frozen=True, slots=True)
class Spot:
    """A place in a file. Rows and columns count from 1; None where there is no such thing.

    note: what happens there, for the steps of a trace. logical: a name for a
    place that is no line of a file ("turn 3 of session 7f3a").
    """

    filename: str | None
    row: int | None = None
    column: int | None = None
    end_row: int | None = None
    end_column: int | None = None
    note: str = ""
    logical: str = ""


@dataclass(frozen=True, slots=True)
class Replacement:
    """A mend: the text that takes the place of what stands between two positions."""

    spot: Spot
    text: str


@dataclass(frozen=True, slots=True)
class SarifResult:
    """One finding. related: places beside it. trace: the way from source to sink.

    fingerprint: the same for the same finding in the next run. known: a
    baseline accepts it. fix: (what it does, its replacements in the spot's file).
    """

    code: str
    level: Level
    message: str
    spot: Spot
    related: Sequence[Spot] = ()
    trace: Sequence[Spot] = ()
    fingerprint: str = ""
    known: bool = False
    properties: Mapping[str, Any] | None = None
    fix: tuple[str, Sequence[Replacement]] | None = None


def to_sarif(
    results: Iterable[SarifResult],
    findings: Mapping[str, FindingRule],
    *,
    artifacts: Iterable[str] = (),
    problems: Iterable[str] = (),
    help_uri: str = "",
    category: str = "",
) -> bytes:
    """A SARIF log of one run, in UTF-8 with a final line end.

    artifacts: files that were looked at, with or without a result. problems:
    what kept the run from being complete. help_uri: address of a code's page
    with `{code}` in it. category: tells this run from other runs of the tool,
    for services that keep one result list each.
    """
    results = list(results)
    codes = sorted({result.code for result in results})
    index = {code: number for number, code in enumerate(codes)}
    driver: Json = {
        "name": "prefixguard",
        "semanticVersion": __version__,
        "rules": [_rule(code, findings.get(code), help_uri) for code in codes],
    }
    run: Json = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": [_result(result, index[result.code]) for result in results],
    }
    known = dict.fromkeys(artifacts)
    known.update(dict.fromkeys(r.spot.filename for r in results if r.spot.filename is not None))
    if known:
        run["artifacts"] = [{"location": _artifact(name)} for name in known if name]
        run["originalUriBaseIds"] = {_ROOT: {"uri": Path.cwd().as_uri() + "/"}}
    notes = [{"level": "error", "message": {"text": safe(text)}} for text in problems]
    run["invocations"] = [{"executionSuccessful": not notes, "toolExecutionNotifications": notes}]
    if category:
        run["automationDetails"] = {"id": category.rstrip("/") + "/"}
    return encode({"$schema": _SCHEMA, "version": VERSION, "runs": [run]}, indent=2) + b"\n"


def _rule(code: str, rule: FindingRule | None, help_uri: str) -> Json:
    if rule is None:
        return {"id": code}
    special = "".join(f"\n\n**{api}**: {flow(text)}" for api, text in sorted(rule.mend_for.items()))
    described: Json = {
        "id": code,
        "name": rule.name,
        "shortDescription": {"text": rule.title},
        "fullDescription": {"text": flow(rule.why)},
        "help": {
            "text": f"{flow(rule.why)}\n\n{flow(rule.mend)}",
            "markdown": f"{flow(rule.why)}\n\n**What to do:** {flow(rule.mend)}{special}",
        },
        "defaultConfiguration": {"level": LEVELS[rule.severity]},
        "properties": {"tags": ["prompt-caching", *rule.seen_by]},
    }
    if help_uri:
        described["helpUri"] = help_uri.format(code=code)
    return described


def _result(result: SarifResult, index: int) -> Json:
    written: Json = {
        "ruleId": result.code,
        "ruleIndex": index,
        "level": result.level,
        "message": {"text": safe(result.message)},
        "locations": [_location(result.spot)],
    }
    if result.related:
        written["relatedLocations"] = [_location(s, number) for number, s in enumerate(result.related, 1)]
    if result.trace:
        steps = [{"location": _location(spot)} for spot in result.trace]
        written["codeFlows"] = [{"threadFlows": [{"locations": steps}]}]
    if result.fingerprint:
        written["partialFingerprints"] = {"prefixguard/v1": result.fingerprint}
    if result.known:
        written["suppressions"] = [{"kind": "external", "justification": "accepted by the baseline"}]
    if result.properties:
        written["properties"] = dict(result.properties)
    if result.fix is not None and result.spot.filename is not None:
        written["fixes"] = [_fix(result.spot.filename, *result.fix)]
    return written


def _location(spot: Spot, number: int | None = None) -> Json:
    location: Json = {}
    if number is not None:
        location["id"] = number
    if spot.filename is not None:
        physical: Json = {"artifactLocation": _artifact(spot.filename)}
        if spot.row is not None:
            physical["region"] = _region(spot)
        location["physicalLocation"] = physical
    if spot.logical:
        location["logicalLocations"] = [{"fullyQualifiedName": safe(spot.logical), "kind": "element"}]
    if spot.note:
        location["message"] = {"text": safe(spot.note)}
    return location


def _region(spot: Spot) -> Json:
    ends = {
        "startLine": spot.row,
        "startColumn": spot.column,
        "endLine": spot.end_row,
        "endColumn": spot.end_column,
    }
    return {name: value for name, value in ends.items() if value is not None}


def _fix(filename: str, description: str, replacements: Sequence[Replacement]) -> Json:
    return {
        "description": {"text": safe(description)},
        "artifactChanges": [
            {
                "artifactLocation": _artifact(filename),
                "replacements": [
                    {"deletedRegion": _region(one.spot), "insertedContent": {"text": one.text}}
                    for one in replacements
                ],
            }
        ],
    }


def _artifact(filename: str) -> Json:
    """Relative to where the tool runs, so that the paths are those of the repository; else as they are."""
    path = os.path.relpath(filename) if os.path.isabs(filename) else os.path.normpath(filename)
    if path.startswith(".."):
        return {"uri": Path(filename).absolute().as_uri()}
    return {"uri": quote(path.replace(os.sep, "/"), errors="replace"), "uriBaseId": _ROOT}
