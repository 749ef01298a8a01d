"""What is alive in each cache domain: predict for a prompt at a time, observe a turn.

A domain is everything that an entry is visible to: host, account, model and
whatever else the rule names. The timeline keeps one cache model per domain.
"""

from __future__ import annotations

from collections.abc import Mapping

from prefixguard.caches.breakpoints import BreakpointCache
from prefixguard.caches.model import CacheModel
from prefixguard.caches.prefix import PrefixCache, StateCache
from prefixguard.caches.rule import CacheRule


class Timeline:
    """Cache models by domain."""

    def __init__(self) -> None:
        self._models: dict[tuple[str, str], CacheModel] = {}

    def model(self, domain: str, rule: CacheRule, model: str | None) -> CacheModel:
        """The cache of a domain; an empty one when nothing was seen there yet."""
        key = (rule.name, domain)
        found = self._models.get(key)
        if found is None:
            found = self._models[key] = _make(rule, rule.minimum_for(model))
        return found


def _make(rule: CacheRule, minimum: int) -> CacheModel:
    match rule.kind:
        case "breakpoint":
            return BreakpointCache(rule, minimum)
        case "state":
            return StateCache(rule, minimum)
        case "prefix" | "handle":
            return PrefixCache(rule, minimum)


def domain_of(rule: CacheRule, parts: Mapping[str, str | None]) -> str:
    """The domain's name: the values of the parts that the rule names, unknown ones left out."""
    return " ".join(f"{name}={parts[name]}" for name in rule.domain if parts.get(name))
