"""Which request parameters a cache rule keys on, and the routing key it looks at."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from prefixguard.caches.rule import CacheRule
from prefixguard.prompt import Parameter, Prompt
from prefixguard.tokens.layout import KeyedParameters

_NOT_PARAMETERS = ("model", "host", "account")


def parameter_names(rules: Iterable[CacheRule]) -> tuple[str, ...]:
    """Every parameter that some rule looks at, so that decoders know what to read."""
    names: dict[str, None] = {}
    for rule in rules:
        for level in rule.levels.values():
            names.update(dict.fromkeys(level))
        names.update(dict.fromkeys(switch.name for switch in rule.off))
        names.update(dict.fromkeys(rule.routing))
        names.update(dict.fromkeys(rule.domain))
    return tuple(name for name in names if name not in _NOT_PARAMETERS)


def keyed_parameters(rule: CacheRule, prompt: Prompt) -> KeyedParameters:
    """The prompt's parameters by the level at which they enter the rule's cache key."""
    levels: dict[str, list[Parameter]] = {"top": [], "head": [], "history": [], "unknown": []}
    for parameter in prompt.parameters:
        level = rule.level(parameter.name)
        if level is not None:
            levels[level].append(parameter)
    return KeyedParameters(*(tuple(levels[name]) for name in ("top", "head", "history", "unknown")))


def routing_key(rule: CacheRule, headers: Mapping[str, str], prompt: Prompt) -> str | None:
    """The value of the first routing key that is set, a header or a body field."""
    values = {p.name: p.value.strip('"') for p in prompt.parameters}
    return next((value for name in rule.routing if (value := headers.get(name) or values.get(name))), None)
