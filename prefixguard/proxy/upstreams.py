"""Where a request goes, and whether it is recorded: pure functions over `rules/upstreams.toml`.

First stop of a request in the proxy. Only configured names can be reached, so
that the proxy is never an open relay.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

import msgspec

from prefixguard.errors import InputError, RuleError
from prefixguard.rulebook import Dated, read_table, rules_folder

FILE = "upstreams.toml"
type Verdict = Literal["record", "skip", "unknown"]


class Upstream(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One model API; the fields are explained in the TOML file."""

    name: str
    source: str
    url: str | None = None
    hosts: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    hints: tuple[str, ...] = ()
    env: Mapping[str, str] = {}


class RecordRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Regular expressions over paths: what is a prompt, and what is known to be none."""

    paths: tuple[str, ...]
    websocket_paths: tuple[str, ...]
    skip: tuple[str, ...]


class UpstreamRules(Dated, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`rules/upstreams.toml`."""

    upstream: tuple[Upstream, ...]
    record: RecordRule


def read_upstreams(folder: Path | None = None) -> UpstreamRules:
    """The rules of a rules folder (the packaged one by default). Raises RuleError."""
    path = (folder or rules_folder()) / FILE
    rules = read_table(path, UpstreamRules)
    for upstream in rules.upstream:
        if upstream.url is not None:
            try:
                parse_target(upstream.url)
            except InputError as error:
                raise RuleError(f"{path}: {upstream.name}: {error}") from error
    for pattern in (*rules.record.paths, *rules.record.websocket_paths, *rules.record.skip):
        try:
            re.compile(pattern)
        except re.error as error:
            raise RuleError(f"{path}: record: {pattern!r}: {error}") from error
    return rules


@dataclass(frozen=True, slots=True)
class Target:
    """A server to send to, with the path prefix that its URL holds ("" or "/prefix")."""

    scheme: Literal["http", "https"]
    host: str
    port: int
    prefix: str = ""

    @property
    def origin(self) -> str:
        """scheme://host[:port], the port only where it is not the scheme's own."""
        default = 443 if self.scheme == "https" else 80
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}" + ("" if self.port == default else f":{self.port}")

    def path(self, path: str) -> str:
        """The path to ask for at the server.

        Where the end of the URL's prefix and the start of the request's path
        are the same (both say /v1), it is said once.
        """
        ours = self.prefix.split("/")[1:] if self.prefix else []
        bare, query = (path.partition("?")[0], path[len(path.partition("?")[0]) :])
        theirs = bare.split("/")[1:]
        overlap = next((n for n in range(min(len(ours), len(theirs)), 0, -1) if ours[-n:] == theirs[:n]), 0)
        return "/" + "/".join(ours + theirs[overlap:]) + query


def parse_target(url: str) -> Target:
    """The target that a URL names. Raises InputError."""
    text = url.strip()
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError as error:
        raise InputError(f"{url!r} is no URL: {error}") from error
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InputError(f"{url!r} is no upstream: write it as http://host:port or https://host/path")
    if parts.username or parts.password:
        raise InputError("an upstream URL must not hold credentials: the client sends its own")
    if parts.query or parts.fragment:
        raise InputError(f"{url!r} must not have a query or a fragment: only a path may follow the host")
    scheme: Literal["http", "https"] = "https" if parts.scheme == "https" else "http"
    default = 443 if scheme == "https" else 80
    return Target(scheme, parts.hostname, port or default, parts.path.rstrip("/"))


@dataclass(frozen=True, slots=True)
class Route:
    """Where one request goes: the target and the path at it."""

    target: Target
    path: str


class Router:
    """Chooses targets. Built once from the rules and the user's own names.

    fixed: every request goes there (base-URL mode with `--upstream`).
    names: more names to route to, beside those of the rules.
    hosts: more hosts that forward mode opens.
    """

    def __init__(
        self,
        rules: UpstreamRules,
        *,
        fixed: Target | None = None,
        names: Mapping[str, Target] | None = None,
        hosts: tuple[str, ...] = (),
    ) -> None:
        self.rules = rules
        self.fixed = fixed
        self.names: dict[str, Target] = {u.name: parse_target(u.url) for u in rules.upstream if u.url}
        self.names.update(names or {})
        self._hints = [(hint, u.name) for u in rules.upstream if u.url for hint in u.hints]
        by_length = [(path, u.name) for u in rules.upstream if u.url for path in u.paths]
        self._paths = sorted(by_length, key=lambda pair: -len(pair[0]))
        self._hosts = tuple(h.lower() for u in rules.upstream for h in u.hosts) + tuple(
            h.lower() for h in hosts
        )
        self._record = re.compile("|".join(rules.record.paths))
        self._websocket = re.compile("|".join(rules.record.websocket_paths))
        self._skip = re.compile("|".join(rules.record.skip))

    def route(self, path: str, headers: Mapping[str, str]) -> Route | None:
        """Where a request of base-URL mode goes; None when no configured upstream fits.

        path: with the query. headers: any mapping that finds names in lower case.
        """
        if self.fixed is not None:
            return Route(self.fixed, self.fixed.path(path))
        first, _, rest = path[1:].partition("/")
        if first == "to":
            first, _, rest = rest.partition("/")
            target = self.names.get(first)
            return Route(target, target.path("/" + rest)) if target else None
        if first in self.names:
            target = self.names[first]
            return Route(target, target.path("/" + rest))
        name = next((name for hint, name in self._hints if hint in headers), None)
        if name is None:
            name = next((name for start, name in self._paths if path.startswith(start)), None)
        if name is None:
            return None
        return Route(self.names[name], self.names[name].path(path))

    def opens(self, host: str) -> bool:
        """Whether forward mode opens connections to this host."""
        host = host.lower().rstrip(".")
        return any(fnmatch.fnmatchcase(host, pattern) for pattern in self._hosts)

    @cached_property
    def host_patterns(self) -> tuple[str, ...]:
        """Regular expressions over host:port of the hosts that forward mode opens."""
        translated = (re.sub(r"\\[Zz]$", "", fnmatch.translate(host)) for host in self._hosts)
        return tuple(rf"^{pattern}:\d+$" for pattern in translated)

    def verdict(self, method: str, path: str) -> Verdict:
        """What a request is: a prompt, known side traffic, or an API that nobody told us of."""
        bare = path.partition("?")[0].rstrip("/")
        if method != "POST":
            return "skip"
        if self._record.search(bare):
            return "record"
        return "skip" if self._skip.search(bare) else "unknown"

    def is_websocket_api(self, path: str) -> bool:
        """Whether a WebSocket on this path carries prompts."""
        return bool(self._websocket.search(path.partition("?")[0].rstrip("/")))
