"""Sessions as OpenTelemetry spans, in OTLP's JSON: a trace per session, a span per request.

What the provider reported stands under the conventions' names, what PrefixGuard
found under its own. Prompts and replies are never written. What is unknown is
left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from prefixguard import __version__
from prefixguard.exporters.names import Names, host_of
from prefixguard.turn import Session, Turn

_CLIENT, _INTERNAL = 3, 1
_OK, _ERROR = 1, 2
_SCOPE = {"name": "prefixguard", "version": __version__}


@dataclass(frozen=True, slots=True)
class Answer:
    """What a response says of itself. agent: who asked, where it is known."""

    id: str | None = None
    model: str | None = None
    agent: str | None = None


def to_spans(sessions: Sequence[Session], answers: Mapping[int, Answer], names: Names) -> dict[str, Any]:
    """The sessions as one ExportTraceServiceRequest. answers: by a turn's index."""
    spans = [span for session in sessions for span in _session(session, answers, names)]
    return {
        "resourceSpans": [
            {
                "resource": {"attributes": attributes({"service.name": "prefixguard"})},
                "scopeSpans": [{"scope": _SCOPE, "spans": spans}],
            }
        ]
    }


def _session(session: Session, answers: Mapping[int, Answer], names: Names) -> Iterable[dict[str, Any]]:
    if not session.turns:
        return
    trace = _digest(16, "trace", session.id, session.turns[0].t)
    root = _digest(8, "session", session.id, session.turns[0].t)
    called = names.span
    agent = next((a.agent for t in session.turns if (a := answers.get(t.index)) and a.agent), None)
    about = {
        called["operation"]: "invoke_agent", called["session"]: session.id, called["agent"]: agent,
        called["rebilled"]: session.totals.rebilled_tokens, called["cost"]: session.totals.cost.actual,
        called["avoidable"]: session.totals.cost.avoidable,
    }  # fmt: skip
    yield {
        "traceId": trace,
        "spanId": root,
        "name": f"invoke_agent {agent}" if agent else "invoke_agent",
        "kind": _INTERNAL,
        "startTimeUnixNano": _nanoseconds(min(turn.t for turn in session.turns)),
        "endTimeUnixNano": _nanoseconds(max(_end(turn) for turn in session.turns)),
        "attributes": attributes(about),
        "status": {},
    }
    for turn in session.turns:
        yield _turn(turn, trace, root, answers.get(turn.index, Answer()), names)


def _turn(turn: Turn, trace: str, root: str, answer: Answer, names: Names) -> dict[str, Any]:
    failed = turn.status is None or turn.status >= 400
    status: dict[str, Any] = {"code": _ERROR if failed else _OK}
    if failed:
        status["message"] = "no answer" if turn.status is None else f"HTTP {turn.status}"
    operation = names.operation(turn)
    return {
        "traceId": trace,
        "spanId": _digest(8, "turn", turn.session, turn.index, turn.t),
        "parentSpanId": root,
        "name": f"{operation} {turn.model}" if turn.model else operation,
        "kind": _CLIENT,
        "startTimeUnixNano": _nanoseconds(turn.t),
        "endTimeUnixNano": _nanoseconds(_end(turn)),
        "attributes": attributes(_told(turn, answer, names, failed=failed)),
        "status": status,
    }


def _told(turn: Turn, answer: Answer, names: Names, *, failed: bool) -> dict[str, Any]:
    called, usage, cache = names.span, turn.usage, turn.cache
    host, port = host_of(turn)
    causes = sorted({finding.code for finding in turn.findings if finding.primary})
    first = turn.timing.first_token_ms
    written = sum(usage.write.values()) if usage is not None else 0
    told: dict[str, Any] = {
        "operation": names.operation(turn),
        "provider": names.provider(turn),
        "model": turn.model,
        "response_model": answer.model,
        "response_id": answer.id,
        "session": turn.session,
        "agent": answer.agent,
        "input": usage.total if usage is not None else None,
        "output": usage.output if usage is not None else None,
        "read": usage.read if usage is not None else None,
        "written": written if usage is not None and usage.write else None,
        "first_token": None if first is None else first / 1000,
        "host": host or None,
        "port": port,
        "error": ("no_answer" if turn.status is None else str(turn.status)) if failed else None,
        "shape": None if "prompt" in turn.unseen else turn.shape,
        "is_break": None if "prompt" in turn.unseen else turn.is_break,
        "deliberate": turn.is_break and not turn.is_fault if turn.is_break else None,
        "rebilled": turn.tokens.rebilled if turn.is_break else None,
        "causes": causes or None,
        "pointer": turn.divergence.pointer if turn.is_break and turn.divergence is not None else None,
        "predicted_low": cache.read_low if cache is not None else None,
        "predicted_high": cache.read_high if cache is not None else None,
        "verdict": cache.verdict if cache is not None else None,
        "rule": cache.model if cache is not None else None,
        "cost": turn.cost.actual,
        "avoidable": turn.cost.avoidable,
        "unseen": list(turn.unseen) or None,
    }
    return {called[word]: value for word, value in told.items()}


def attributes(values: Mapping[str, Any]) -> list[dict[str, Any]]:
    """OTLP's list of keys and values; those that are None are left out."""
    return [{"key": key, "value": any_value(value)} for key, value in values.items() if value is not None]


def any_value(value: Any) -> dict[str, Any]:
    """OTLP's AnyValue: 64-bit integers stand there as text."""
    match value:
        case bool():
            return {"boolValue": value}
        case int():
            return {"intValue": str(value)}
        case float():
            return {"doubleValue": value}
        case list() | tuple():
            return {"arrayValue": {"values": [any_value(each) for each in value]}}
        case _:
            return {"stringValue": str(value)}


def _end(turn: Turn) -> float:
    return turn.t + (turn.timing.total_ms or 0.0) / 1000


def _nanoseconds(t: float) -> str:
    return str(max(0, round(t * 1e9)))


def _digest(size: int, *parts: object) -> str:
    """An id that is the same for the same session, so that an export can be sent twice."""
    return blake2b("\0".join(map(str, parts)).encode("utf-8", "replace"), digest_size=size).hexdigest()
