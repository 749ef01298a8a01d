"""Masks credentials in headers and URLs, before anything is kept.

The proxy calls this before it makes a capture; the store and the log reader
call it again as a second line of defence. Masking twice changes nothing. What
is a secret is knowledge and lies in `rules/secrets.toml`.
"""

from __future__ import annotations

import re
from functools import cache, cached_property
from typing import TYPE_CHECKING

import msgspec

from prefixguard.errors import RuleError
from prefixguard.rulebook import Dated, read_table, rules_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

FILE = "secrets.toml"
MASK = "***"
_JUDGED = 4096
"""Most header names whose judgement is kept; a client that makes up names must not fill the memory."""
_SCHEMES = frozenset(
    {"basic", "bearer", "digest", "negotiate", "token", "apikey", "aws4-hmac-sha256", "hawk"}
)
_USERINFO = re.compile(r"(?<=://)[^/?#@\s]*@")


class SecretValue(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A pattern that tells a secret by its form, wherever it stands.

    hints: one of these stands in everything that the pattern matches.
    """

    name: str
    hints: tuple[str, ...]
    pattern: str


class SecretRules(Dated, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
    """`rules/secrets.toml`; the fields are explained there."""

    headers: tuple[str, ...]
    header_patterns: tuple[str, ...]
    query_patterns: tuple[str, ...]
    values: tuple[SecretValue, ...]

    @cached_property
    def header_names(self) -> frozenset[str]:
        """The listed header names."""
        return frozenset(self.headers)

    @cached_property
    def header_pattern(self) -> re.Pattern[str]:
        """Finds a header name that says it holds a secret."""
        return re.compile("|".join(self.header_patterns))

    @cached_property
    def query_pattern(self) -> re.Pattern[str]:
        """Matches the whole name of a query parameter that holds a secret."""
        return re.compile("|".join(f"(?:{pattern})" for pattern in self.query_patterns))

    @cached_property
    def value_patterns(self) -> tuple[tuple[SecretValue, re.Pattern[str]], ...]:
        """Each kind of value with its compiled pattern."""
        return tuple((value, re.compile(value.pattern)) for value in self.values)

    @cached_property
    def judged(self) -> dict[str, bool]:
        """Header names that were judged before: clients send the same ones each time."""
        return {}


def read_secrets(folder: Path | None = None) -> SecretRules:
    """The rules of a rules folder (the packaged one by default). Raises RuleError."""
    path = (folder or rules_folder()) / FILE
    rules = read_table(path, SecretRules)
    for pattern in (
        *rules.header_patterns,
        *rules.query_patterns,
        *(value.pattern for value in rules.values),
    ):
        try:
            re.compile(pattern)
        except re.error as error:
            raise RuleError(f"{path}: {pattern!r}: {error}") from error
    return rules


@cache
def packaged_secrets() -> SecretRules:
    """The rules that came with the program."""
    return read_secrets()


def mask_headers(headers: Mapping[str, str], rules: SecretRules | None = None) -> dict[str, str]:
    """The headers with lower-case names and every secret replaced by `***`.

    An authorization keeps its scheme ("Bearer ***"), which says how a client
    signs in and gives nothing away.
    """
    rules = rules or packaged_secrets()
    masked = {name.lower(): value for name, value in headers.items()}
    others = []
    for name, value in masked.items():
        if _is_secret_header(rules, name):
            masked[name] = _mask_credential(value)
        else:
            others.append(name)
    # One look at all values together: nearly always there is nothing to find.
    if _may_hold_secrets(rules, "\n".join([masked[name] for name in others])):
        for name in others:
            masked[name] = mask_values(masked[name], rules=rules)
    return masked


def mask_path(path: str, rules: SecretRules | None = None) -> str:
    """A path or URL without keys in its query, a password before its host, or a secret in its text."""
    rules = rules or packaged_secrets()
    head, mark, query = path.partition("?")
    head = _USERINFO.sub(f"{MASK}@", head)
    if mark:
        query, hash_mark, fragment = query.partition("#")
        parts = re.split(r"([&;])", query)
        parts[::2] = [_mask_parameter(rules, part) for part in parts[::2]]
        query = "".join(parts) + hash_mark + fragment
    return mask_values(head + mark + query, rules=rules)


def mask_values(
    text: str,
    marker: Callable[[str, str], str] = lambda _name, _secret: MASK,
    rules: SecretRules | None = None,
) -> str:
    """The text with each secret that its form gives away replaced by `marker(kind of secret, secret)`."""
    for value, pattern in (rules or packaged_secrets()).value_patterns:
        if any(hint in text for hint in value.hints):
            text = pattern.sub(lambda match, kind=value.name: marker(kind, match[0]), text)  # type: ignore[misc]
    return text


def _may_hold_secrets(rules: SecretRules, text: str) -> bool:
    return any(hint in text for value in rules.values for hint in value.hints)


def _is_secret_header(rules: SecretRules, name: str) -> bool:
    judged = rules.judged
    secret = judged.get(name)
    if secret is None:
        secret = name in rules.header_names or rules.header_pattern.search(name) is not None
        if len(judged) < _JUDGED:
            judged[name] = secret
    return secret


def _mask_credential(value: str) -> str:
    scheme, _, rest = value.strip().partition(" ")
    return f"{scheme} {MASK}" if rest and scheme.lower() in _SCHEMES else MASK


def _mask_parameter(rules: SecretRules, part: str) -> str:
    name, equals, value = part.partition("=")
    # A name may hide behind percent-encoding ("%6bey"); the server would still read it.
    plain = re.sub("%([0-9A-Fa-f]{2})", lambda match: chr(int(match[1], 16)), name).lower()
    if value and rules.query_pattern.fullmatch(plain):
        return f"{name}{equals}{MASK}"
    return part
