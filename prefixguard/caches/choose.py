"""Which cache rule is in force for an exchange, and what decided it."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from urllib.parse import urlsplit

from prefixguard.caches.rule import CacheRule, Match, with_options
from prefixguard.errors import InputError
from prefixguard.rulebook import Rulebook


@dataclass(frozen=True, slots=True)
class Choice:
    """A rule and what decided for it, as reports print it."""

    rule: CacheRule
    decided_by: str


def cache_rules(rulebook: Rulebook) -> tuple[CacheRule, ...]:
    """All cache rules, in the order of their files."""
    return rulebook.tables("caches", CacheRule)


class Chooser:
    """Decides by option, then host, then model, then usage dialect, then API default."""

    def __init__(self, rules: tuple[CacheRule, ...], server: str | None = None) -> None:
        """Raises InputError when `server` names no rule."""
        self.rules = rules
        self._given = self._named(server) if server else None
        self._known: dict[tuple[str, str, str, str], Choice] = {}

    def _named(self, server: str) -> Choice:
        name, _, options = server.partition(":")
        for rule in self.rules:
            if name.lower() in (rule.name, *rule.aliases):
                return Choice(with_options(rule, options), f"option --server {server}")
        raise InputError(
            f"--server {name}: no such cache rule; have {', '.join(rule.name for rule in self.rules)}"
        )

    def choose(self, upstream: str | None, model: str | None, api: str, dialect: str | None) -> Choice:
        """The rule for one exchange. `dialect` is the usage's, where a reply was seen."""
        if self._given is not None:
            return self._given
        host = urlsplit(upstream).hostname or upstream if upstream else ""
        key = (host or "", (model or "").lower(), api, dialect or "")
        if key not in self._known:
            self._known[key] = self._infer(*key)
        return self._known[key]

    def _infer(self, host: str, model: str, api: str, dialect: str) -> Choice:
        by_host = [
            r for r in self.rules if host and any(m.hosts and _fits(m, host, model, api) for m in r.match)
        ]
        if by_host:
            return Choice(by_host[0], f"host {host}")
        for rule in self.rules:
            for match in rule.match:
                if match.dialects and dialect in match.dialects and _fits(match, host, model, api):
                    return Choice(rule, f"usage dialect {dialect}")
        for rule in self.rules:
            if any(
                m.models and not m.hosts and not m.dialects and _fits(m, host, model, api) for m in rule.match
            ):
                return Choice(rule, f"model {model}")
        for rule in self.rules:
            if any(m.apis == (api,) and not (m.hosts or m.models or m.dialects) for m in rule.match):
                return Choice(rule, f"API {api}")
        return Choice(next(r for r in self.rules if r.name == "unknown"), "nothing known of this server")


def _fits(match: Match, host: str, model: str, api: str) -> bool:
    return (
        (not match.hosts or any(fnmatchcase(host, pattern) for pattern in match.hosts))
        and (not match.models or any(fnmatchcase(model, pattern) for pattern in match.models))
        and (not match.apis or api in match.apis)
    )
