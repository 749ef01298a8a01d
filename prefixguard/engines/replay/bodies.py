"""A recorded request as it is asked again: same prompt, other model name, short reply, streamed. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from prefixguard.exchange import Exchange
from prefixguard.wire.detect import detect, is_side_traffic

_PATHS = {
    "openai-chat": "/v1/chat/completions",
    "openai-responses": "/v1/responses",
    "anthropic-messages": "/v1/messages",
    "completions": "/v1/completions",
    "llamacpp": "/completion",
}
_LIMITS = {"openai-responses": "max_output_tokens", "llamacpp": "n_predict"}
_ALL_LIMITS = ("max_tokens", "max_completion_tokens", "max_output_tokens", "n_predict", "min_tokens")
# What decides on sampling alone may differ between servers, and none of it is part of the prompt.
_DROPPED = ("n", "best_of", "stream_options", "service_tier", "metadata", "store", "speed", "mcp_servers")


class NotReplayedError(ValueError):
    """An exchange that cannot be asked again; the message says why."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A request to be sent: the path on the server, the body."""

    path: str
    body: bytes


def asked_again(
    exchange: Exchange,
    *,
    model: str,
    reply_tokens: int,
    extra: Mapping[str, Any] | None = None,
    no_calls: bool = False,
) -> Asked:
    """The request of a recorded exchange for another server. Raises NotReplayedError.

    model: the name under which the server serves; "" keeps the recorded one.
    extra: fields to be added, such as a cache salt. no_calls: forbid tool calls, for servers that refuse
    tools without a parser of calls; the prompt is the same.
    """
    if exchange.method != "POST" or is_side_traffic(exchange.path):
        raise NotReplayedError("carries no prompt that is evaluated")
    if exchange.status is not None and exchange.status >= 400:
        raise NotReplayedError(f"was answered with status {exchange.status} when it was recorded")
    try:
        body = msgspec.json.decode(exchange.request)
    except (msgspec.DecodeError, UnicodeDecodeError):
        body = None
    if not isinstance(body, dict):
        raise NotReplayedError("its body is no JSON object; hash-only records cannot be asked again")
    format_ = detect(exchange.path, body.keys())
    api = format_.name if format_ else "unknown"
    if api not in _PATHS:
        raise NotReplayedError(f"speaks {api}, which this server does not")
    if body.get("previous_response_id"):
        raise NotReplayedError("its history lies in an earlier response that this server does not have")
    # The recorded order of the fields is kept: what is new goes to the end.
    fields = {k: v for k, v in body.items() if k not in _DROPPED and k not in _ALL_LIMITS}
    if model:
        fields["model"] = model
    fields[_LIMITS.get(api, "max_tokens")] = reply_tokens
    fields["stream"] = True
    if no_calls and fields.get("tools"):
        fields["tool_choice"] = {"type": "none"} if api == "anthropic-messages" else "none"
    if api in ("openai-chat", "completions"):
        fields["stream_options"] = {"include_usage": True}
    return Asked(_PATHS[api], msgspec.json.encode({**fields, **(extra or {})}))
