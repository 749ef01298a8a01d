"""Finds the prices of a model: genai-prices, corrected by `rules/prices/` and a user's contract.

The package's data is the copy inside the installed wheel; nothing is ever
fetched. Importing it takes half a second, so that happens at the first price.
"""

from __future__ import annotations

import datetime
import ipaddress
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fnmatch import fnmatchcase
from functools import cache, cached_property
from importlib import metadata
from typing import TYPE_CHECKING, Protocol
from urllib.parse import unquote, urlsplit

import msgspec

from prefixguard.costs.rates import Rate, Rates, Terms
from prefixguard.costs.tables import Price, PriceTable
from prefixguard.turn import Prices
from prefixguard.wire.usage import UNSTATED

if TYPE_CHECKING:
    from genai_prices.data_snapshot import DataSnapshot
    from genai_prices.types import ModelInfo, Provider, TieredPrices

_PACKAGE = "genai-prices"
_CONTRACT = "contract"
_LOCAL_APIS = frozenset({"llamacpp", "ollama-chat"})
_WINDOW_MARK = re.compile(r"\[[^\]]*\]$")
"""Claude Code writes the size of the context window behind a model's name: "claude-opus-5-5[1m]"."""


class Pricer(Protocol):
    """Knows what models cost."""

    @property
    def prices(self) -> Prices:
        """Which price list the answers rest on."""
        ...

    def rates(
        self, model: str, *, api: str, upstream: str | None, at: datetime.datetime, terms: Terms
    ) -> Rates | None:
        """The prices in force for a model at a time; None where no price is known.

        api: as in `turn.Turn.api`. upstream: the server's URL, or None where
        the log does not say. at: aware of its time zone.
        """
        ...


class ListPricer:
    """List prices of the package and the tables; a user's contract has the last word.

    tables: `Rulebook.prices`. contract: the user's own file, read with
    `rulebook.read_table(path, PriceTable)`.
    """

    def __init__(self, tables: Sequence[PriceTable], contract: PriceTable | None = None) -> None:
        self._tables = tuple(tables)
        self._contract = contract
        self._entries: tuple[tuple[Price, str], ...] = tuple(
            (_for_provider(entry, table.provider), where)
            for table, where in [
                *((table, "rules/prices") for table in self._tables),
                *([(contract, _CONTRACT)] if contract else []),
            ]
            for entry in table.price
        )
        self._default_lifetimes = tuple(ttl for table in self._tables for ttl in table.default_lifetimes)
        self._found: dict[tuple[object, ...], Rates | None] = {}
        self._by_the_hour: set[tuple[object, ...]] = set()

    @cached_property
    def prices(self) -> Prices:
        """The package's version and the day it was released ("after ..." for versions not in the tables)."""
        version = metadata.version(_PACKAGE)
        released = {name: day for table in self._tables for name, day in table.released.items()}
        day = released.get(version)
        date = day.isoformat() if day else f"after {max(released.values())}" if released else "unknown"
        source = f"{_PACKAGE} and contract" if self._contract else _PACKAGE
        return Prices(source=source, version=version, date=date)

    def rates(
        self, model: str, *, api: str, upstream: str | None, at: datetime.datetime, terms: Terms
    ) -> Rates | None:
        """See `Pricer.rates`. A model nobody lists, or one on a server of the user's own, has no price."""
        asked = _Request(
            model.lower(), api, _host(upstream), upstream or "", at.astimezone(datetime.UTC), terms
        )
        # Nearly all prices hold for whole days, so that a session asks the package once.
        day = (model, api, upstream, terms, asked.at.date())
        key: tuple[object, ...] = (*day, asked.at.hour, asked.at.minute) if day in self._by_the_hour else day
        if key not in self._found:
            rates, by_the_hour = self._look_up(asked)
            if by_the_hour:
                self._by_the_hour.add(day)
                key = (*day, asked.at.hour, asked.at.minute)
            self._found[key] = rates
        return self._found[key]

    def _look_up(self, asked: _Request) -> tuple[Rates | None, bool]:
        """The prices, and whether they change within the day."""
        provider = self._provider(asked)
        found = _in_package(asked, provider) if provider and not asked.terms.local else None
        rates, missing, by_the_hour = None, asked.terms.special, False
        if found is not None:
            seller, info = found
            rates = _from_package(seller, info, asked)
            missing -= _granted(seller, info, asked)
            by_the_hour = _changes_by_the_hour(info)
        for entry, where in self._entries:
            # List prices do not bind the user's own server. And a surcharge of ours stands in
            # for a price that the package lacks; once it has one, that holds.
            known = entry.term_names and not entry.term_names & missing
            spare = where != _CONTRACT and (asked.terms.local or known)
            if not spare and any(
                entry.holds_for(provider, asked.host, name, asked.at, asked.terms) for name in asked.names
            ):
                rates = entry.applied_to(rates, where)
                missing -= entry.term_names
        if rates is None:
            return None, by_the_hour
        doubts = tuple(
            f"no price of {asked.model} for {term} is known: the ordinary one was taken"
            for term in sorted(missing)
        )
        rates = replace(rates, default_lifetimes=self._default_lifetimes, doubts=rates.doubts + doubts)
        return rates, by_the_hour

    def _provider(self, asked: _Request) -> str:
        """Who bills the request, as the package names it; "" where nobody can say.

        A host that nobody knows may be a gateway or a server of the user's
        own. Models that only their vendor serves show that it is a gateway.
        """
        for table in self._tables:
            if any(fnmatchcase(asked.host, pattern) for pattern in table.hosts):
                return table.provider
        if asked.host and not _is_private(asked.host) and (known := _by_url(asked.upstream)):
            return known
        if asked.terms.local or asked.api in _LOCAL_APIS:
            return ""
        for name in asked.names:
            for table in self._tables:
                if any(fnmatchcase(name, pattern) for pattern in table.vendor_of):
                    return table.provider
        if not asked.host:
            for name in asked.names:
                if known := _by_model(name):
                    return known
        return ""


@dataclass(frozen=True, slots=True)
class _Request:
    """What decides on a price. model and host are in lower case, at is in UTC."""

    model: str
    api: str
    host: str
    upstream: str
    at: datetime.datetime
    terms: Terms

    @property
    def names(self) -> tuple[str, ...]:
        """The model's name, then what is left of it without what gateways and tools write around it."""
        plain = _WINDOW_MARK.sub("", unquote(self.model).strip())
        return tuple(dict.fromkeys(name for name in (self.model, plain, plain.rsplit("/", 1)[-1]) if name))


def _for_provider(entry: Price, provider: str) -> Price:
    """The entry with its table's provider, where it names none itself."""
    return entry if entry.provider or not provider else msgspec.structs.replace(entry, provider=provider)


def _host(upstream: str | None) -> str:
    if not upstream:
        return ""
    url = upstream if "//" in upstream else f"//{upstream}"
    try:
        return (urlsplit(url).hostname or "").lower()
    except ValueError:
        return ""


def _is_private(host: str) -> bool:
    """Whether the host can only be on this machine or in the user's own network."""
    try:
        return ipaddress.ip_address(host).is_private
    except ValueError:
        return "." not in host or host.endswith((".local", ".internal", ".lan", ".localhost"))


@cache
def _snapshot() -> DataSnapshot:
    """The package's own data, also where the process around us has told it to fetch newer data."""
    from genai_prices.data import providers
    from genai_prices.data_snapshot import DataSnapshot

    return DataSnapshot(providers=providers, from_auto_update=False)


def _by_url(upstream: str) -> str | None:
    address = upstream.partition("//")[2] or upstream
    try:
        return _snapshot().find_provider(None, None, f"https://{address}").id
    except LookupError:
        return None


def _by_model(name: str) -> str | None:
    try:
        return _snapshot().find_provider(name, None, None).id
    except LookupError:
        return None


def _in_package(asked: _Request, provider: str) -> tuple[Provider, ModelInfo] | None:
    for name in asked.names:
        try:
            return _snapshot().find_provider_model(name, None, provider, None)
        except LookupError:
            continue
    return None


def _changes_by_the_hour(info: ModelInfo) -> bool:
    from genai_prices.types import TimeOfDateConstraint

    conditions = [*(info.prices if isinstance(info.prices, list) else ()), *(info.price_variants or ())]
    return any(isinstance(each.constraint, TimeOfDateConstraint) for each in conditions)


def _context(terms: Terms) -> dict[str, str]:
    context = {"service_tier": terms.service_tier, "speed": terms.speed}
    context["processing"] = "batch" if terms.batch else None
    return {name: value for name, value in context.items() if value}


def _granted(seller: Provider, info: ModelInfo, asked: _Request) -> frozenset[str]:
    """The terms for which the package has a price of its own at that time."""
    if not any(info is model for model in seller.models):
        return frozenset()
    context = _context(asked.terms)
    return frozenset(
        "batch" if name == "processing" else name
        for variant in info.price_variants or ()
        if variant.when.items() <= context.items()
        and (variant.constraint is None or variant.constraint.active(asked.at))
        for name in variant.when
    )


def _from_package(seller: Provider, info: ModelInfo, asked: _Request) -> Rates | None:
    from genai_prices import Usage

    answer = info.calc_price(
        Usage(input_tokens=0),
        seller,
        genai_request_timestamp=asked.at,
        price_context=_context(asked.terms),
    )
    prices = answer.model_price
    uncached, output = _rate(prices.input_mtok), _rate(prices.output_mtok)
    if uncached is None:
        return None
    lifetimes = {
        UNSTATED: _rate(prices.cache_write_mtok),
        "5m": _rate(prices.cache_write_5m_mtok),
        "1h": _rate(prices.cache_write_1h_mtok),
    }
    return Rates(
        uncached=uncached,
        output=output or Rate(0.0),
        read=_rate(prices.cache_read_mtok),
        write={ttl: rate for ttl, rate in lifetimes.items() if rate is not None},
        source=f"{_PACKAGE} {seller.id}/{info.id}",
        doubts=() if output else ("no output price is known: replies are left out",),
    )


def _rate(value: Decimal | TieredPrices | None) -> Rate | None:
    """A price of the package as a rate."""
    if value is None:
        return None
    if isinstance(value, Decimal):
        return Rate(float(value))
    return Rate(float(value.base), tuple((tier.start, float(tier.price)) for tier in value.tiers))
