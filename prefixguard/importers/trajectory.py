"""Trajectories of mini-swe-agent: one list of messages, from which each request can be told.

The agent only ever appends, and sends what it has: the request behind an
answer is every message before it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from prefixguard.errors import InputError
from prefixguard.exchange import Capture
from prefixguard.importers.captures import make_capture, seconds
from prefixguard.importers.formats import FormatRule
from prefixguard.importers.records import opened, value_of
from prefixguard.importers.told import Told

_ROLES = ("system", "developer", "user", "assistant", "tool")


def read(path: Path, rule: FormatRule, told: Told) -> Iterator[Capture]:
    """The requests of a trajectory. Raises InputError when it is no whole document."""
    with opened(path) as stream:
        whole = stream.read()
    try:
        document = value_of(whole)
    except ValueError as error:
        raise InputError(f"{path}: {error}") from error
    if isinstance(document, dict):
        messages, info = document.get("messages"), document.get("info")
        told.producer = _producer(info)
    else:
        messages, info = document, None
    if not isinstance(messages, list):
        raise InputError(f"{path}: messages is no list")
    yield from _requests(messages, _model(info), path.name, rule, told)
    stats = info.get("model_stats") if isinstance(info, dict) else None
    calls = stats.get("api_calls") if isinstance(stats, dict) else None
    if isinstance(calls, int) and calls > told.requests:
        told.aside["requests whose answer the agent did not keep"] += calls - told.requests


def _requests(
    messages: Sequence[Any], model: str | None, session: str, rule: FormatRule, told: Told
) -> Iterator[Capture]:
    sent: list[dict[str, Any]] = []
    calls = any(isinstance(message, dict) and message.get("tool_calls") for message in messages)
    for number, message in enumerate(messages):
        if not isinstance(message, dict) or message.get("role") not in _ROLES:
            told.aside["messages of no request"] += 1
            continue
        plain = {name: value for name, value in message.items() if name != "extra"}
        if message["role"] == "assistant":
            yield _request(message, plain, sent, number, model, session, rule, told, calls=calls)
        sent.append(plain)


def _request(
    message: Mapping[str, Any], plain: dict[str, Any], sent: list[dict[str, Any]], number: int,
    model: str | None, session: str, rule: FormatRule, told: Told, *, calls: bool,
) -> Capture:  # fmt: skip
    extra = message.get("extra")
    extra = extra if isinstance(extra, dict) else {}
    response = extra.get("response")
    lost = (*(("tools",) if calls else ()), *rule.lost)
    if not isinstance(response, dict):
        response = {"choices": [{"index": 0, "message": plain}]}
        lost = (*lost, "usage")
    t = seconds(extra.get("timestamp")) or seconds(response.get("created"))
    if t is None:
        lost = (*lost, "timing")
    told.took(lost)
    return make_capture(
        rule.name, name=f"{session}:{number}:{response.get('id', '')}", t=float(number) if t is None else t,
        path="/v1/chat/completions", upstream="",
        request={"model": model or response.get("model"), "messages": sent}, response=response,
        session=session, lost=lost, agent="mini-swe-agent",
    )  # fmt: skip


def _model(info: object) -> str | None:
    config = info.get("config") if isinstance(info, dict) else None
    model = config.get("model") if isinstance(config, dict) else None
    name = model.get("model_name") if isinstance(model, dict) else None
    # LiteLLM's names carry the provider in front.
    return name.rpartition("/")[2] if isinstance(name, str) and name else None


def _producer(info: object) -> str:
    version = info.get("mini_version") if isinstance(info, dict) else None
    return f"mini-swe-agent {version}" if version else ""
