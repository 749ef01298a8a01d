"""Transcripts of Claude Code: what was said, and what each request reported, but not what was sent.

System text, tools and the reminders that the client puts between messages are
not in a transcript, so that only its usage figures are taken: one request a
message id, whatever number of lines its stream wrote.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from prefixguard.exchange import Capture
from prefixguard.importers.captures import make_capture, seconds, upstream_of
from prefixguard.importers.formats import FormatRule
from prefixguard.importers.records import objects, opened
from prefixguard.importers.told import Told

_KEPT: tuple[str, ...] = ("id", "type", "role", "model", "stop_reason", "usage")
_OWN = "<synthetic>"
"""The model of messages that the client wrote itself: no request was made for them."""


@dataclass
class _Open:
    """A request whose lines are still coming in. t: when the first of them was written."""

    name: str
    t: float
    message: dict[str, Any]
    session: str
    version: str
    compacted: bool = False


@dataclass
class _Thread:
    """One line of conversation: the main one, or a sub-agent's."""

    open: _Open | None = None
    compacted: bool = False
    known: set[str] = field(default_factory=set)


def read(path: Path, rule: FormatRule, told: Told) -> Iterator[Capture]:
    """The requests of a transcript, by thread in the order in which they were answered."""
    threads: dict[str, _Thread] = {}
    with opened(path) as stream:
        for where, record in objects(stream, told):
            if isinstance(record.get("version"), str):
                told.producer = f"Claude Code {record['version']}"
            name = str(record.get("agentId") or "")
            thread = threads.setdefault(name, _Thread())
            if record.get("subtype") == "compact_boundary":
                # What is still open was asked before the boundary.
                yield from _ended(thread, name, rule, told)
                thread.compacted = True
            message = record.get("message")
            if record.get("type") != "assistant" or not isinstance(message, dict):
                continue
            yield from _line(record, message, where, thread, name, rule, told)
    for name, thread in threads.items():
        yield from _ended(thread, name, rule, told)


def _line(
    record: Mapping[str, Any], message: dict[str, Any], where: str, thread: _Thread, name: str,
    rule: FormatRule, told: Told,
) -> Iterator[Capture]:  # fmt: skip
    if message.get("model") == _OWN or record.get("isApiErrorMessage"):
        told.aside["messages that the client wrote itself"] += 1
        return
    t = seconds(record.get("timestamp"))
    if t is None:
        told.problem(where, f"timestamp is no moment: {record.get('timestamp')!r}")
        return
    identity = f"{message.get('id')} {record.get('requestId') or ''}"
    if thread.open is not None and thread.open.name == identity:
        thread.open.message = {**thread.open.message, **message}
        return
    yield from _ended(thread, name, rule, told)
    if identity in thread.known:
        return  # a late line of a request that was told already
    thread.known.add(identity)
    session = str(record.get("sessionId") or "")
    version = str(record.get("version") or "")
    thread.open = _Open(identity, t, message, session, version, thread.compacted)
    thread.compacted = False


def _ended(thread: _Thread, name: str, rule: FormatRule, told: Told) -> Iterator[Capture]:
    done, thread.open = thread.open, None
    if done is None:
        return
    if done.name in told.seen:
        told.aside["requests that an earlier file or thread has too"] += 1
        return
    told.seen.add(done.name)
    told.took(rule.lost)
    kept = {name: done.message[name] for name in _KEPT if name in done.message}
    yield make_capture(
        rule.name, name=done.name, t=done.t, path="/v1/messages", upstream=upstream_of("anthropic"),
        request={"model": done.message.get("model")}, response=kept, session=done.session, thread=name,
        event="compaction" if done.compacted else None, lost=rule.lost, agent="claude-code",
    )  # fmt: skip
