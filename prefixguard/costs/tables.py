"""What `rules/prices/*.toml` and a user's own price file say.

They hold what the price package lacks or has wrong: surcharges, lifetimes,
providers, the days on which a price holds, and contracts. Values only; who
reads the files is `rulebook`, who applies them is `costs.pricer`.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Annotated, Literal

import msgspec

from prefixguard.costs.rates import Rate, Rates, Terms

type Dollars = Annotated[float, msgspec.Meta(ge=0)]
type Factor = Annotated[float, msgspec.Meta(gt=0)]
type Day = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]

_DAYS: tuple[Day, ...] = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


class Tier(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Prices above a prompt size; a price that is left out is the one below the tier."""

    above: Annotated[int, msgspec.Meta(ge=0)]
    input: Dollars | None = None
    read: Dollars | None = None
    write: Mapping[str, Dollars] = {}
    output: Dollars | None = None


class Price(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One entry: for which requests it holds, and what it says of their prices.

    models, hosts: shell patterns, in lower case. provider: as the price
    package names it, "" for any. since: the first day; until: the first day
    after. days, dates: only on these, in UTC. service_tier, speed, geo,
    batch: only under these terms. input, read, write, output: dollars per
    million tokens. read_times, write_times: multiples of the input price.
    times: a factor on all prices, applied last.
    """

    models: tuple[str, ...] = ("*",)
    provider: str = ""
    hosts: tuple[str, ...] = ()
    since: datetime.date | None = None
    until: datetime.date | None = None
    days: tuple[Day, ...] = ()
    dates: tuple[datetime.date, ...] = ()
    service_tier: str | None = None
    speed: str | None = None
    geo: str | None = None
    batch: bool | None = None
    input: Dollars | None = None
    read: Dollars | None = None
    write: Mapping[str, Dollars] = {}
    output: Dollars | None = None
    storage: Dollars | None = None
    tiers: tuple[Tier, ...] = ()
    read_times: Factor | None = None
    write_times: Mapping[str, Factor] = {}
    times: Factor = 1.0

    def __post_init__(self) -> None:
        if self.tiers and self.input is None:
            raise ValueError("tiers need the base price: give `input` too")
        if any(pattern != pattern.lower() for pattern in (*self.models, *self.hosts)):
            raise ValueError("patterns in `models` and `hosts` must be in lower case")

    def holds_for(self, provider: str, host: str, model: str, at: datetime.datetime, terms: Terms) -> bool:
        """Whether this entry is about such a request. `model` and `host` are in lower case."""
        day = at.date()
        return (
            self.provider in ("", provider)
            and (not self.hosts or any(fnmatchcase(host, pattern) for pattern in self.hosts))
            and any(fnmatchcase(model, pattern) for pattern in self.models)
            and (self.since is None or day >= self.since)
            and (self.until is None or day < self.until)
            and (not (self.days or self.dates) or _DAYS[day.weekday()] in self.days or day in self.dates)
            and (self.service_tier is None or self.service_tier == terms.service_tier)
            and (self.speed is None or self.speed == terms.speed)
            and (self.geo is None or self.geo == terms.geo)
            and (self.batch is None or self.batch == terms.batch)
        )

    @property
    def term_names(self) -> frozenset[str]:
        """The terms that this entry accounts for."""
        named = {"service_tier": self.service_tier, "speed": self.speed, "geo": self.geo, "batch": self.batch}
        return frozenset(name for name, value in named.items() if value is not None)

    def applied_to(self, rates: Rates | None, where: str) -> Rates | None:
        """The prices with this entry's say in them. None while neither names an input and output price."""
        if self.input is not None:
            rates = self._priced(rates)
        elif rates is not None:
            rates = replace(
                rates,
                read=Rate(self.read) if self.read is not None else rates.read,
                output=Rate(self.output) if self.output is not None else rates.output,
                write={**rates.write, **{ttl: Rate(dollars) for ttl, dollars in self.write.items()}},
            )
        if rates is None:
            return None
        return replace(
            rates,
            read=rates.uncached.times(self.read_times) if self.read_times else rates.read,
            write={
                **rates.write,
                **{ttl: rates.uncached.times(factor) for ttl, factor in self.write_times.items()},
            },
            storage=self.storage if self.storage is not None else rates.storage,
            source=f"{rates.source} + {where}" if rates.source else where,
        ).times(self.times)

    def _priced(self, rates: Rates | None) -> Rates | None:
        """Prices of its own. Where it is silent, the old multiples of the input price stay."""
        assert self.input is not None
        output = self.output if self.output is not None else (rates.output.base if rates else None)
        if output is None:
            return None
        share = self.input / rates.uncached.base if rates and rates.uncached.base else 1.0
        read = rates.read.times(share) if rates and rates.read else None
        write = {ttl: rate.times(share) for ttl, rate in rates.write.items()} if rates else {}
        own_writes = {
            ttl: self._rate(dollars, {tier.above: tier.write.get(ttl) for tier in self.tiers})
            for ttl, dollars in self.write.items()
        }
        return Rates(
            uncached=self._rate(self.input, {tier.above: tier.input for tier in self.tiers}),
            output=self._rate(output, {tier.above: tier.output for tier in self.tiers}),
            read=read
            if self.read is None
            else self._rate(self.read, {tier.above: tier.read for tier in self.tiers}),
            write={**write, **own_writes},
            storage=rates.storage if rates else None,
            source=rates.source if rates else "",
            default_lifetimes=rates.default_lifetimes if rates else (),
        )

    @staticmethod
    def _rate(base: float, tiers: Mapping[int, float | None]) -> Rate:
        return Rate(
            base, tuple((above, dollars) for above, dollars in sorted(tiers.items()) if dollars is not None)
        )


class PriceTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One file of prices.

    provider: what its entries are about, unless they say so themselves.
    hosts: shell patterns of hosts that belong to that provider; vendor_of:
    patterns of models that only it (or a gateway to it) serves.
    default_lifetimes: lifetimes that a plain "cache write" price covers.
    released: the day of each known version of the price package.
    """

    date: datetime.date
    source: str
    verified: bool = False
    provider: str = ""
    hosts: tuple[str, ...] = ()
    vendor_of: tuple[str, ...] = ()
    default_lifetimes: tuple[str, ...] = ()
    released: Mapping[str, datetime.date] = {}
    price: tuple[Price, ...] = ()
