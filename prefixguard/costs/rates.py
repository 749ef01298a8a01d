"""What a million tokens cost, and what one request comes to.

Everything here is arithmetic on given prices; where prices come from is
`costs.pricer`. Prices are in US dollars per million tokens.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any

from prefixguard.turn import Usage
from prefixguard.wire.usage import UNSTATED

_ORDINARY = frozenset(
    {"", "auto", "default", "standard", "standard_only", "on_demand", "global", "not_available"}
)
"""What APIs call the terms that list prices are made for."""


@dataclass(frozen=True, slots=True)
class Rate:
    """One price. `tiers` holds (prompt tokens, price), ascending.

    Above a tier's size its price holds for all tokens of the request, cached
    ones included: that is how vendors bill long prompts.
    """

    base: float
    tiers: tuple[tuple[int, float], ...] = ()

    def at(self, prompt: int) -> float:
        """The price for a request whose whole prompt has this many tokens."""
        price = self.base
        for above, tier in self.tiers:
            if prompt > above:
                price = tier
        return price

    def times(self, factor: float) -> Rate:
        """The same price with a surcharge or discount."""
        if factor == 1:
            return self
        return Rate(self.base * factor, tuple((above, tier * factor) for above, tier in self.tiers))


@dataclass(frozen=True, slots=True)
class Rates:
    """All prices of a model at one time, under one set of terms.

    read: None where no price for cached tokens is known. write: by lifetime;
    UNSTATED is the price for the provider's default lifetime. Empty where
    writing to the cache costs nothing extra. storage: for a million tokens
    kept for an hour, where a cache is rented. doubts: what had to be assumed.
    """

    uncached: Rate
    output: Rate
    read: Rate | None = None
    write: Mapping[str, Rate] = field(default_factory=dict)
    storage: float | None = None
    source: str = ""
    default_lifetimes: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()

    def write_at(self, ttl: str, prompt: int) -> tuple[float, str | None]:
        """The price of written tokens, and what was assumed for it, if anything."""
        stated = self.write.get(ttl)
        if stated is not None:
            return stated.at(prompt), None
        default = self.write.get(UNSTATED)
        if default is None:
            return self.uncached.at(prompt), None
        known = ttl == UNSTATED or ttl in self.default_lifetimes
        return default.at(prompt), None if known else f"no price for writes of {ttl} is known"

    def read_at(self, prompt: int) -> float:
        """The price of tokens read from the cache; the full price where no other is known."""
        return (self.read or self.uncached).at(prompt)

    def times(self, factor: float) -> Rates:
        """The same prices with a surcharge or discount on all of them."""
        return replace(
            self,
            uncached=self.uncached.times(factor),
            output=self.output.times(factor),
            read=self.read.times(factor) if self.read else None,
            write={ttl: rate.times(factor) for ttl, rate in self.write.items()},
        )


@dataclass(frozen=True, slots=True)
class Money:
    """What one request costs, in US dollars, by part. doubts: what had to be assumed."""

    uncached: float
    read: float
    write: Mapping[str, float]
    output: float
    doubts: tuple[str, ...] = ()

    @property
    def total(self) -> float:
        """All parts together."""
        return self.uncached + self.read + sum(self.write.values()) + self.output


def price(rates: Rates, usage: Usage) -> Money:
    """What a request with this usage costs at these prices.

    Tiers go by this request's whole prompt, so never call it on sums.
    """
    prompt = usage.total
    doubts = list(rates.doubts)
    write: dict[str, float] = {}
    for ttl, tokens in usage.write.items():
        rate, doubt = rates.write_at(ttl, prompt)
        write[ttl] = tokens * rate / 1e6
        if doubt and tokens:
            doubts.append(doubt)
    if usage.read is None:
        doubts.append("the server does not say what it read from its cache")
    elif usage.read and rates.read is None:
        doubts.append("no price for cached tokens is known: taken as uncached")
    if usage.output is None:
        doubts.append("the length of the reply is not known: left out")
    return Money(
        uncached=usage.uncached * rates.uncached.at(prompt) / 1e6,
        read=(usage.read or 0) * rates.read_at(prompt) / 1e6,
        write=write,
        output=(usage.output or 0) * rates.output.at(prompt) / 1e6,
        doubts=tuple(doubts),
    )


def storage_cost(rates: Rates, tokens: int, hours: float) -> float | None:
    """What keeping a rented cache of this size costs; None where no storage price is known."""
    return None if rates.storage is None else tokens * hours * rates.storage / 1e6


@dataclass(frozen=True, slots=True)
class Terms:
    """Under which terms a request was served, as far as they change its price.

    service_tier: "flex", "priority", ...; None for the ordinary one.
    speed: "fast" or None. geo: where it had to run ("us"), or None.
    price_date: prices of another day than the request's. local: the server
    is the user's own, so that tokens have no price.
    """

    service_tier: str | None = None
    speed: str | None = None
    batch: bool = False
    geo: str | None = None
    price_date: date | None = None
    local: bool = False

    @property
    def special(self) -> frozenset[str]:
        """The names of those terms that differ from the ordinary."""
        asked = {"service_tier": self.service_tier, "speed": self.speed, "geo": self.geo, "batch": self.batch}
        return frozenset(name for name, value in asked.items() if value)


def terms_of(
    request: Mapping[str, Any],
    response: Mapping[str, Any] | None = None,
    *,
    batch: bool = False,
    price_date: date | None = None,
    local: bool = False,
) -> Terms:
    """The terms that a request asked for, or rather those that the response says it got."""
    answer = response or {}
    usage = answer.get("usage")
    places = (usage if isinstance(usage, Mapping) else {}, answer, request)

    def stated(name: str) -> str | None:
        for place in places:
            value = place.get(name)
            if isinstance(value, str):
                return None if value.lower() in _ORDINARY else value.lower()
        return None

    tier = stated("service_tier")
    return Terms(
        service_tier=None if tier == "batch" else tier,
        speed=stated("speed"),
        batch=batch or tier == "batch",
        geo=stated("inference_geo"),
        price_date=price_date,
        local=local,
    )
