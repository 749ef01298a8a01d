"""Rollouts of Codex: what was said in a thread, and what each request reported.

Tools are not in a rollout, nor is the request as it was sent, so that only the
usage figures are taken. The client writes a figure again when nothing was
asked in between; equal totals are one request.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prefixguard.exchange import Capture
from prefixguard.importers.captures import make_capture, seconds, upstream_of
from prefixguard.importers.formats import FormatRule
from prefixguard.importers.records import objects, opened
from prefixguard.importers.told import Told


@dataclass
class _State:
    session: str = ""
    thread: str = ""
    provider: str = "openai"
    model: str | None = None
    compacted: bool = False
    total: Any = None


def read(path: Path, rule: FormatRule, told: Told) -> Iterator[Capture]:
    """The requests of a rollout, in its order."""
    state = _State()
    with opened(path) as stream:
        for where, record in objects(stream, told):
            payload = record.get("payload")
            if not isinstance(payload, dict):
                continue
            match record.get("type"), payload.get("type"):
                case "session_meta", _:
                    _begin(state, payload, told)
                case "turn_context", _:
                    state.model = str(payload["model"]) if payload.get("model") else state.model
                case ("compacted", _) | (_, "context_compacted"):
                    state.compacted = True
                case "event_msg", "token_count":
                    yield from _count(record, payload, where, state, rule, told)


def _begin(state: _State, meta: Mapping[str, Any], told: Told) -> None:
    if not state.thread:
        # A fork begins with the records of the thread that it came from; the first ones are its own.
        state.thread = str(meta.get("id") or "")
        state.session = str(meta.get("session_id") or meta.get("id") or "")
        state.provider = str(meta.get("model_provider") or "openai")
        if isinstance(meta.get("cli_version"), str):
            told.producer = f"Codex {meta['cli_version']}"


def _count(
    record: Mapping[str, Any], payload: Mapping[str, Any], where: str, state: _State, rule: FormatRule,
    told: Told,
) -> Iterator[Capture]:  # fmt: skip
    info = payload.get("info")
    last = info.get("last_token_usage") if isinstance(info, dict) else None
    if not isinstance(info, dict) or not isinstance(last, dict):
        return  # limits were told, no request was made
    total = info.get("total_token_usage")
    if total is not None and total == state.total:
        told.aside["figures that were written again"] += 1
        return
    state.total = total
    t = seconds(record.get("timestamp"))
    if t is None:
        told.problem(where, f"timestamp is no moment: {record.get('timestamp')!r}")
        return
    name = f"{state.thread} {total}"
    if name in told.seen:
        told.aside["requests that an earlier file has too"] += 1
        return
    told.seen.add(name)
    told.took(rule.lost)
    compacted, state.compacted = state.compacted, False
    yield make_capture(
        rule.name, name=name, t=t, path="/v1/responses", upstream=upstream_of(state.provider),
        request={"model": state.model}, response={"model": state.model, "usage": usage_of(last, rule)},
        session=state.session, thread=state.thread if state.thread != state.session else None,
        event="compaction" if compacted else None, lost=rule.lost, agent="codex",
    )  # fmt: skip


def usage_of(last: Mapping[str, Any], rule: FormatRule) -> dict[str, Any]:
    """The figures as the Responses API tells them; what the rollout leaves out stays out."""
    details = {}
    for ours, theirs in (("cached_tokens", "cached"), ("cache_write_tokens", "written")):
        value = next((last[name] for name in rule.names[theirs] if isinstance(last.get(name), int)), None)
        if value is not None:
            details[ours] = value
    found: dict[str, Any] = {"input_tokens": last.get("input_tokens"), "input_tokens_details": details}
    found["output_tokens"] = last.get("output_tokens")
    return found
