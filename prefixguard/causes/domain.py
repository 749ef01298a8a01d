"""What a cache entry is visible to: host, account, model and keyed fields, read off an exchange."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from prefixguard.exchange import Exchange
from prefixguard.prompt import Prompt
from prefixguard.rulebook import Dated


class DomainTable(Dated, frozen=True, forbid_unknown_fields=True):
    """The file `rules/domains.toml`."""

    account_headers: tuple[str, ...]


def domain_parts(table: DomainTable, exchange: Exchange, prompt: Prompt) -> dict[str, str | None]:
    """The values that cache rules may name as parts of a domain."""
    accounts = [exchange.headers[name] for name in table.account_headers if exchange.headers.get(name)]
    parts: dict[str, str | None] = {
        "host": urlsplit(exchange.upstream).netloc or exchange.upstream if exchange.upstream else None,
        "account": " ".join(accounts) or None,
        "model": prompt.model,
    }
    for parameter in prompt.parameters:
        parts.setdefault(parameter.name, parameter.value)
    return parts


def moved_part(before: Mapping[str, str | None], now: Mapping[str, str | None]) -> str | None:
    """The part of the domain in which two exchanges lie apart, other than the model; None when in none."""
    return next((name for name in ("host", "account") if before.get(name) != now.get(name)), None)
