"""What the server says of its cache, and what it leaves out (PG801 to PG803)."""

from __future__ import annotations

from typing import Any

from prefixguard.caches.rule import CacheRule
from prefixguard.causes.evidence import Catalogue
from prefixguard.exchange import Exchange
from prefixguard.finding import Finding
from prefixguard.prompt import Prompt
from prefixguard.wire.usage import DecodedUsage


def usage_findings(
    catalogue: Catalogue, rule: CacheRule, prompt: Prompt, exchange: Exchange, decoded: DecodedUsage | None,
    stream_options: Any,
) -> list[Finding]:  # fmt: skip
    """Findings about the figures themselves. stream_options: the request's field of that name."""
    if exchange.status is not None and exchange.status >= 400:
        return []
    if decoded is None:
        streams = prompt.api in ("openai-chat", "completions") and prompt.stream
        if streams and exchange.response is not None and not _asks_for_usage(stream_options):
            return [
                catalogue.finding(
                    "PG802", "the stream carries no usage: stream_options.include_usage is not set",
                    pointer="/stream_options", severity="info",
                )
            ]  # fmt: skip
        return []
    if decoded.inconsistent:
        return [catalogue.finding("PG803", decoded.inconsistent, by="server")]
    if decoded.usage.read is None:
        return [
            catalogue.finding(
                "PG801", "the server reports no cached tokens: the hit rate is unknown, not zero",
                severity="info", by="server",
            )
        ]  # fmt: skip
    return []


def _asks_for_usage(options: Any) -> bool:
    return isinstance(options, dict) and bool(options.get("include_usage"))
