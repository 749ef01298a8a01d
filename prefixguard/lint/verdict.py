"""From hits to findings: which lifetime at which position is worth which severity.

Fourth step of the linter. One finding per place and cause: of all the ways on
which a change reaches requests, the one that weighs most is shown. The table
here is the one that `docs/lint.md` publishes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from prefixguard.finding import Confidence, Severity
from prefixguard.lint.facts import At
from prefixguard.lint.flow import Flow
from prefixguard.lint.summary import Hit
from prefixguard.lint.tables import DAY, HOST, LIFETIMES, PROCESS, SESSION, TURN, USER
from prefixguard.lint.values import Change, Step

CONFIDENCE: tuple[Confidence, Confidence, Confidence] = ("low", "medium", "high")
_WEIGHT = {"info": 0, "warning": 1, "error": 2}
_KINDS = {"request": 4, "built": 3, "name": 2, "message": 1, "function": 0}

MOST_WAYS = 12

EDITS: dict[tuple[str, str], Severity] = {
    ("PG301", ""): "warning",
    ("PG301", "window"): "warning",
    ("PG302", ""): "error",
    ("PG303", ""): "warning",
    ("PG304", ""): "error",
    ("PG306", ""): "warning",
    ("PG307", ""): "info",
    ("PG308", ""): "warning",
    ("PG309", ""): "warning",
    ("PG311", ""): "error",
    ("PG107", ""): "error",
    ("PG313", ""): "warning",
}
"""Severity of an edit of history by its code and what keeps it rare; anything not listed is `info`."""

REUSE: dict[str, dict[str, Severity]] = {
    "call": {"system": "error", "tools": "error", "history": "error", "parameters": "warning"},
    "turn": {"system": "error", "tools": "error", "history": "error", "parameters": "warning"},
    "session": {"system": "info", "tools": "info", "history": "info", "parameters": "info"},
    "process": {"system": "warning", "tools": "warning", "history": "info", "parameters": "info"},
    "day": {"system": "info", "tools": "info", "history": "info", "parameters": "info"},
    "user": {"system": "warning", "tools": "warning", "history": "info", "parameters": "info"},
    "host": {"system": "info", "tools": "info", "history": "info", "parameters": "info"},
}
"""Severity of a value by lifetime and position. An order that is not fixed is `error` up to `process`."""


@dataclass(frozen=True, slots=True)
class LintFinding:
    """One finding in source. Columns count characters from 1; `trace` leads from source to sink."""

    code: str
    file: int
    at: At
    severity: Severity
    confidence: Confidence
    lifetime: str
    position: str
    message: str
    lost: str
    api: str
    trace: tuple[Step, ...]
    what: str
    deliberate: bool = False
    evidence: str = ""
    also: tuple[tuple[Step, ...], ...] = ()
    """Ways to other places that the value reaches, at most `MOST_WAYS`."""
    extra: dict[str, Any] = field(default_factory=dict)


def judge(flow: Flow) -> list[LintFinding]:
    """All findings of a flow, in the order of file and place."""
    found: dict[tuple[int, At, str], tuple[LintFinding, tuple[int, int, int, bool, int]]] = {}
    ways: dict[tuple[int, At, str], list[tuple[Step, ...]]] = {}
    sent: dict[tuple[int, At, str], set[tuple[int, int]]] = {}
    for hit in flow.hits:
        if hit.sink.kind in {"request", "built"}:
            rows = sent.setdefault(hit.change.key, set())
            rows.update((step.file, step.at[0]) for step in hit.trace)
    for hit in flow.hits:
        if hit.sink.kind == "message" and (hit.sink.file, hit.sink.at) in flow.safe:
            continue
        if _superseded(hit, sent.get(hit.change.key)):
            continue
        made = _finding(hit)
        if made is None:
            continue
        key = (made.file, made.at, made.code)
        # Of several ways of like weight the shortest on which the value is seen to become text says most.
        length = -len(hit.trace)
        weight = (_WEIGHT[made.severity], _KINDS[hit.sink.kind], hit.confidence, _written(hit), length)
        if hit.trace:
            ways.setdefault(key, []).append(hit.trace)
        known = found.get(key)
        if known is None or weight > known[1]:
            found[key] = (made, weight)
    reported = {key[:2] for key in found}
    for change, _file, name in flow.edits.values():
        if (change.file, change.at) not in reported:
            made = _weak_edit(change, name)
            found[(made.file, made.at, made.code)] = (made, (0, 0, 0, False, 0))
    findings = [with_ways(finding, ways.get(key, ())) for key, (finding, _) in found.items()]
    findings.extend(_marks(flow))
    findings.extend(_side_requests(flow))
    return sorted(_thinned(findings), key=lambda finding: (finding.file, finding.at, finding.code))


def with_ways(finding: LintFinding, ways: Iterable[tuple[Step, ...]]) -> LintFinding:
    """The finding with the shortest way for each place where the value enters the file in which it ends."""
    shortest: dict[tuple[int, int], tuple[Step, ...]] = {}
    for way in ways:
        key = _entry(way)
        known = shortest.get(key)
        if known is None or (len(way), way) < (len(known), known):
            shortest[key] = way
    if finding.trace:
        shortest.pop(_entry(finding.trace), None)
    chosen = sorted(shortest.values(), key=lambda way: (len(way), way))[:MOST_WAYS]
    return replace(finding, also=tuple(chosen)) if chosen else finding


def _entry(way: tuple[Step, ...]) -> tuple[int, int]:
    """The file in which a way ends, and the first of its rows there."""
    file = way[-1].file
    return (file, next(step.at[0] for step in way if step.file == file))


def _superseded(hit: Hit, rows: set[tuple[int, int]] | None) -> bool:
    """Whether a request shows more of the same way than a name or a built message does."""
    if rows is None or hit.sink.kind in {"request", "built"}:
        return False
    if hit.sink.kind == "message":
        return any(file == hit.sink.file for file, _ in rows)
    return (hit.sink.file, hit.sink.at[0]) in rows


def _thinned(findings: list[LintFinding]) -> list[LintFinding]:
    """One cause per place: a clock that is also an elapsed time, a state that is also a lookup."""
    best: dict[tuple[int, At], LintFinding] = {}
    for finding in findings:
        key = (finding.file, finding.at)
        known = best.get(key)
        rank = (_WEIGHT[finding.severity], CONFIDENCE.index(finding.confidence))
        if known is None or rank > (_WEIGHT[known.severity], CONFIDENCE.index(known.confidence)):
            best[key] = finding
    return list(best.values())


def _finding(hit: Hit) -> LintFinding | None:
    change = hit.change
    severity = _severity(hit)
    if severity is None:
        return None
    lifetime = LIFETIMES[change.lifetime]
    return LintFinding(
        change.code,
        change.file,
        change.at,
        severity,
        CONFIDENCE[max(0, min(2, hit.confidence))],
        lifetime,
        hit.position,
        _message(hit),
        _lost(hit.position, change),
        hit.sink.api,
        hit.trace,
        change.what,
        deliberate=change.edit and change.guard in {"threshold", "error", "quantised"},
        evidence=hit.sink.kind,
    )


def _severity(hit: Hit) -> Severity | None:
    change, sink = hit.change, hit.sink
    if change.edit:
        severity: Severity = EDITS.get((change.code, change.guard), "info")
        if hit.confidence < 1 or sink.one_shot:
            severity = "info"
        return severity
    if change.code in {"PG502", "PG506"}:
        return "error" if hit.confidence else "info"
    if change.code in {"PG503", "PG504", "PG802", "PG511"}:
        return "info"
    if change.code == "PG109" and hit.after < 200:
        return None
    lifetime = LIFETIMES[change.lifetime]
    severity = REUSE[lifetime].get(hit.position, "info")
    if change.order and change.lifetime <= PROCESS and hit.position in {"system", "tools"}:
        severity = "error"
        if change.lifetime == SESSION:
            severity = "info"
    if change.code == "PG106" and change.lifetime == PROCESS and "process" not in change.what:
        severity = "info"
    if change.code == "PG508":
        severity = "warning"
    if sink.kind == "message":
        # Where a system message will stand cannot be seen where it is built: many are results and reminders.
        return "info"
    if sink.kind == "function" or (sink.kind in {"name", "built"} and hit.confidence < 2):
        return "info"
    if sink.kind == "name" and (_hops(hit) > 1 or not _written(hit)):
        # A name says little of a value that comes from far away, or that is not seen to become text.
        return "info"
    if change.confidence == 0 or hit.confidence == 0 or sink.one_shot or change.lifetime in {DAY, HOST}:
        return "info"
    if sink.kind in {"message", "function", "name"} or hit.confidence < 2:
        severity = "warning" if severity == "error" else severity
    if (
        sink.kind in {"message", "function", "name"}
        and change.code in {"PG106", "PG108", "PG105", "PG107"}
        and change.lifetime <= TURN
    ):
        # How often a prompt known by its name is built cannot be seen, and such state is mostly read once.
        return "info"
    return severity


def _hops(hit: Hit) -> int:
    """How many calls lie between source and sink."""
    return sum(step.note.startswith(_CALLS) for step in hit.trace)


def _written(hit: Hit) -> bool:
    """Whether the value is seen to become part of a text on its way."""
    return any("a text" in step.note or step.note in {"written as JSON", "appended"} for step in hit.trace)


_CALLS = ("returned by", "given to", "done by", "called", "mapped", "then")


def _message(hit: Hit) -> str:
    change = hit.change
    where = {
        "system": "the system text",
        "tools": "the tool definitions",
        "history": "the history",
        "messages": "the history",
        "parameters": "the cache key",
    }.get(hit.position, hit.position)
    what = change.what[:1].upper() + change.what[1:]
    if change.edit:
        rare = {
            "threshold": " when a size is exceeded",
            "window": ", one step on each turn once it is full",
            "quantised": ", in steps",
            "error": " after an error",
            "event": "",
        }.get(change.guard, " on every turn")
        return f"{what}{rare}"
    if hit.position == "parameters":
        return what
    if change.code == "PG201":
        return f"{what} is that of the definitions in the prompt; nothing sorts them"
    often = {
        "call": "on every request",
        "turn": "on every turn",
        "session": "once per session",
        "process": "once per process",
        "day": "once a day",
        "user": "for each user",
        "host": "for each host",
    }[LIFETIMES[change.lifetime]]
    if change.order:
        differs = "per process" if change.lifetime == PROCESS else often
        return f"{what} reaches {where}; its order can differ {differs}"
    if hit.sink.position == "decision":
        return f"{what} decides what {where} says, asked {often}"
    if hit.sink.position == "message":
        return f"{what} stands ahead of a message's text, and differs {often} where the message is made anew"
    return f"{what} reaches {where}, read {often}"


def _lost(position: str, change: Change) -> str:
    if change.edit:
        return "everything behind the first changed message"
    if position == "tools":
        return "the tool definitions behind it, the system text and the whole history"
    if position == "system":
        if change.lifetime >= SESSION:
            return "what other sessions could share behind it"
        return "the rest of the system text and the whole history"
    if position == "history":
        return "every message behind it"
    if change.code in {"PG502", "PG504"}:
        return "what a breakpoint at the tail would have read, or the request"
    return (
        "the whole prompt" if change.code in {"PG405", "PG508"} else "the messages, and more on some servers"
    )


def _weak_edit(change: Change, name: str) -> LintFinding:
    return LintFinding(
        change.code,
        change.file,
        change.at,
        "info",
        "low",
        LIFETIMES[change.lifetime],
        "history",
        change.what[:1].upper() + change.what[1:],
        "everything behind the first changed message",
        "",
        change.trace,
        change.what,
        deliberate=True,
    )


def _marks(flow: Flow) -> list[LintFinding]:
    """Breakpoints put on every stored message, and never taken off again."""
    out = []
    for file, at, repeated in dict.fromkeys(flow.marks):
        source = flow.project.files[file].source
        if (
            not repeated
            or b'pop("cache_control"' in source
            or b"pop('cache_control'" in source
            or (b"delete " in source and b"cache_control" in source)
        ):
            continue
        if b"del " in source and b'["cache_control"]' in source.split(b"del ", 1)[1]:
            continue
        out.append(
            LintFinding(
                "PG502", file, at, "error", "medium", "turn", "parameters",
                "Each stored message keeps a breakpoint, soon more than the API takes",
                "the request fails, or the oldest breakpoints are ignored", "anthropic-messages", (),
                "a breakpoint per message",
            )
        )  # fmt: skip
    return out


def _side_requests(flow: Flow) -> list[LintFinding]:
    """Requests that quote the history under another prefix."""
    out = []
    for one in flow.requests:
        if not one["quotes"]:
            continue
        main = any(
            other is not one and other["history"] and other["file"] == one["file"] for other in flow.requests
        )
        if not main:
            continue
        out.append(
            LintFinding(
                "PG511", one["file"], one["at"], "info", "low", "turn", "messages",  # type: ignore[arg-type]
                "A side request quotes the history under another prefix, so it reads nothing from the cache",
                "the whole quoted history, once per side request", str(one["api"]), (), "a side request",
                deliberate=True,
            )
        )  # fmt: skip
    return out


def with_severity(finding: LintFinding, severity: Severity) -> LintFinding:
    """The same finding at another severity."""
    return replace(finding, severity=severity)


__all__ = ["EDITS", "HOST", "REUSE", "USER", "LintFinding", "judge"]
