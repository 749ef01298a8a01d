"""Which agent run a request says it belongs to.

Clients name their session in headers or body fields; which ones, and in what
order they are tried, is knowledge and lies in `rules/session-keys.toml`. The
recorder uses this to file an exchange, the analysis to scope the search for a
parent. A request that names nothing is placed by its content alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Literal

import msgspec

from prefixguard.errors import RuleError
from prefixguard.exchange import SessionKey
from prefixguard.rulebook import Dated, read_table, rules_folder
from prefixguard.surrogates import lenient

if TYPE_CHECKING:
    from pathlib import Path

_members = lenient(msgspec.json.Decoder(dict[str, msgspec.Raw]).decode)
_value = lenient(msgspec.json.Decoder().decode)
FILE = "session-keys.toml"
_MAX_VALUE = 512
"""Longer values are no session names; they would only bloat the index."""


class KeyRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"place": "in"}):
    """One place where a client may name its session; the fields are explained in the TOML file."""

    place: Literal["header", "body"]
    name: str
    client: str
    source: str
    take: tuple[str, ...] = ()
    shared: bool = False


class SessionKeyRules(Dated, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`rules/session-keys.toml`: the places, in the order in which they are tried."""

    key: tuple[KeyRule, ...]


def read_session_keys(folder: Path | None = None) -> SessionKeyRules:
    """The rules of a rules folder (the packaged one by default). Raises RuleError."""
    path = (folder or rules_folder()) / FILE
    rules = read_table(path, SessionKeyRules)
    for rule in rules.key:
        for way in rule.take:
            kind, _, what = way.partition(":")
            if kind not in ("member", "pattern") or not what:
                raise RuleError(f"{path}: {rule.name}: take is member:NAME or pattern:REGEX, not {way!r}")
            try:
                groups = re.compile(what).groups if kind == "pattern" else 1
            except re.error as error:
                raise RuleError(f"{path}: {rule.name}: {way!r}: {error}") from error
            if groups != 1:
                raise RuleError(f"{path}: {rule.name}: {way!r} must have exactly one group")
    return rules


@cache
def _packaged() -> SessionKeyRules:
    return read_session_keys()


def session_key(
    headers: Mapping[str, str], body_fields: Mapping[str, object], rules: SessionKeyRules | None = None
) -> SessionKey | None:
    """The session that a request names, or None when it names none.

    headers: request headers, names in lower case. body_fields: the JSON body,
    or as much of it as `body_fields()` reads. Never raises on odd values.
    """
    for rule in (rules or _packaged()).key:
        value = headers.get(rule.name) if rule.place == "header" else _member(body_fields, rule.name)
        if not isinstance(value, str) or not value.strip() or len(value) > _MAX_VALUE:
            continue
        return SessionKey(rule.place, rule.name, _taken(value.strip(), rule.take))
    return None


def body_fields(body: bytes, rules: SessionKeyRules | None = None) -> dict[str, object]:
    """The few top-level members of a JSON body that may name a session.

    Costs one scan of the body and builds no other objects; {} when the body
    is not a JSON object.
    """
    try:
        members = _members(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}
    return named_fields(members, rules)


def named_fields(
    members: Mapping[str, msgspec.Raw], rules: SessionKeyRules | None = None
) -> dict[str, object]:
    """The same from the members of a body that was split already."""
    found: dict[str, object] = {}
    for rule in (rules or _packaged()).key:
        top = rule.name.partition(".")[0]
        if rule.place == "body" and top in members:
            try:
                found[top] = _value(members[top])
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                continue
    return found


def _member(fields: Mapping[str, object], dotted: str) -> object:
    value: object = fields
    for name in dotted.split("."):
        if not isinstance(value, Mapping):
            return None
        value = value.get(name)
    return value


def _taken(value: str, ways: tuple[str, ...]) -> str:
    for way in ways:
        kind, _, what = way.partition(":")
        if kind == "pattern":
            match = re.search(what, value)
            if match and match[1]:
                return match[1]
        else:
            try:
                inner = msgspec.json.decode(value)
            except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
                continue
            if isinstance(inner, dict) and isinstance(inner.get(what), str) and inner[what]:
                return str(inner[what])
    return value
