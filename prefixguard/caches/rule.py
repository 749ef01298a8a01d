"""What a cache rule says: one server family's rule as data, from `rules/caches/*.toml`."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Literal

import msgspec

from prefixguard.errors import InputError
from prefixguard.prompt import HEAD_FIRST, TOOLS_FIRST, Order
from prefixguard.rulebook import Dated

type CacheKind = Literal["breakpoint", "prefix", "state", "handle"]
type Level = Literal["top", "head", "history", "unknown"]


class Match(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """When a rule applies: every list that is given must have a pattern that fits."""

    hosts: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    apis: tuple[str, ...] = ()
    dialects: tuple[str, ...] = ()


class ModelMinimum(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The least number of tokens that the server keeps, for some models."""

    models: tuple[str, ...]
    minimum: int


class Dropped(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A first system text that the server takes out: how it starts, and on which hosts (none: on all)."""

    start: str
    source: str
    hosts: tuple[str, ...] = ()


class Switch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A request parameter that turns reuse off: present and not null/false/0, or equal to `value`."""

    name: str
    value: str | None = None


class CacheRule(Dated, frozen=True, forbid_unknown_fields=True):
    """How one server family decides cache hits. Counts are tokens, times are seconds.

    kind: see docs/caches.md. hosted: hits are likely, not certain, so
    that predictions are intervals. grain: a hit's length is a multiple of it.
    minimum: below it nothing is kept. lookback: positions searched back from a
    breakpoint, itself included. marks: breakpoints a request may carry.
    ttl: lifetimes by the name that clients use, the default first.
    idle, longest: for unmarked caches, the idle time that is safely kept and
    the time after which nothing is; None where there is no clock.
    routing: headers or fields that send a conversation to the same machine;
    needs_routing: prefixes are matched well only with one.
    domain: what an entry is visible to. levels: request parameters in the cache
    key, by where they act. off: parameters that switch reuse off. reply: the
    generated tokens are kept as well. unmarked: requests without a breakpoint
    are cached too. automatic: the server puts one breakpoint at the end by
    itself. blind: differences that this server does not see ("ids", "keys",
    "query"). dropped: what it takes out before it reads. slots: how many, 0
    where unknown. slotted: a session is kept in a slot, which another session
    may take. details: usage lacks cached tokens unless a server flag is set.
    """

    name: str
    title: str
    kind: CacheKind
    aliases: tuple[str, ...] = ()
    match: tuple[Match, ...] = ()
    hosted: bool = True
    order: Literal["tools-first", "head-first"] = "tools-first"
    grain: int = 1
    minimum: int = 0
    minimums: tuple[ModelMinimum, ...] = ()
    lookback: int = 0
    marks: int = 0
    ttl: Mapping[str, int] = {}
    idle: int | None = None
    longest: int | None = None
    domain: tuple[str, ...] = ("host", "account", "model")
    routing: tuple[str, ...] = ()
    needs_routing: bool = False
    levels: Mapping[str, tuple[str, ...]] = {}
    off: tuple[Switch, ...] = ()
    reply: bool = False
    unmarked: bool = True
    automatic: bool = False
    blind: tuple[str, ...] = ()
    dropped: tuple[Dropped, ...] = ()
    slots: int = 0
    slotted: bool = False
    notes: str = ""

    @property
    def rendered_order(self) -> Order:
        """The order in which the server lays the groups out."""
        return TOOLS_FIRST if self.order == "tools-first" else HEAD_FIRST

    def minimum_for(self, model: str | None) -> int:
        """The least number of tokens kept for a model."""
        name = (model or "").lower()
        for row in self.minimums:
            if any(fnmatchcase(name, pattern) for pattern in row.models):
                return row.minimum
        return self.minimum

    def level(self, parameter: str) -> Level | None:
        """Where a parameter acts in the cache key, or None when it does not."""
        for level in ("top", "head", "history", "unknown"):
            if parameter in self.levels.get(level, ()):
                return level
        return None

    def ttl_seconds(self, ttl: str | None) -> int | None:
        """A lifetime's seconds; the default where none was asked for."""
        if not self.ttl:
            return None
        return self.ttl.get(ttl, next(iter(self.ttl.values()))) if ttl else next(iter(self.ttl.values()))


def with_options(rule: CacheRule, options: str) -> CacheRule:
    """A rule changed by the options after its name: `vllm:block=16,hybrid`.

    Raises InputError for an option that is not known.
    """
    for option in filter(None, options.split(",")):
        name, _, value = option.partition("=")
        if name in ("block", "grain", "page") and value.isdecimal() and int(value) > 0:
            rule = msgspec.structs.replace(rule, grain=int(value))
        elif name == "minimum" and value.isdecimal():
            rule = msgspec.structs.replace(rule, minimum=int(value), minimums=())
        elif name == "slots" and value.isdecimal():
            rule = msgspec.structs.replace(rule, slots=int(value))
        elif name == "hybrid" and not value:
            rule = msgspec.structs.replace(rule, kind="state", reply=False)
        elif name in ("tools-first", "head-first") and not value:
            rule = msgspec.structs.replace(rule, order=name)
        else:
            raise InputError(
                f"--server {rule.name}: unknown option {option!r}; know block=N, minimum=N, slots=N, "
                "hybrid, tools-first, head-first"
            )
    return rule
