"""Chooses the tokenizer for a model, from `rules/tokenizers.toml` or from what the user says."""

from __future__ import annotations

from fnmatch import fnmatchcase

import msgspec

from prefixguard.rulebook import Dated
from prefixguard.tokens.counter import Counter, ScaledTokenizer, TiktokenTokenizer, Tokenizer


class TokenizerRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One row: model patterns and the vocabulary that counts them."""

    models: tuple[str, ...]
    encoding: str
    exact: bool
    factor: float = 1.0


class TokenizerTable(Dated, frozen=True, forbid_unknown_fields=True):
    """The file `rules/tokenizers.toml`."""

    tokenizer: tuple[TokenizerRule, ...]


class Counters:
    """Hands out one counter per vocabulary, so that sessions share what was counted.

    given: a tokenizer that the user named, which then counts everything.
    """

    def __init__(self, table: TokenizerTable, given: Tokenizer | None = None) -> None:
        self._table = table
        self._given = Counter(given, namespace=False) if given else None
        self._counters: dict[TokenizerRule, Counter] = {}
        self._bases: dict[tuple[str, bool], TiktokenTokenizer] = {}
        self._by_model: dict[str, Counter] = {}

    def counter(self, model: str | None) -> Counter:
        """The counter for a model; for an unknown one, an estimate."""
        if self._given is not None:
            return self._given
        name = (model or "").lower()
        counter = self._by_model.get(name)
        if counter is None:
            counter = self._by_model[name] = self._make(self._rule(name))
        return counter

    def _rule(self, model: str) -> TokenizerRule:
        for rule in self._table.tokenizer:
            if any(fnmatchcase(model, pattern) for pattern in rule.models):
                return rule
        return self._table.tokenizer[-1]

    def _make(self, rule: TokenizerRule) -> Counter:
        if rule not in self._counters:
            key = (rule.encoding, rule.exact)
            base = self._bases.setdefault(key, TiktokenTokenizer(rule.encoding, exact=rule.exact))
            tokenizer: Tokenizer = base if rule.factor == 1.0 else ScaledTokenizer(base, rule.factor)
            self._counters[rule] = Counter(tokenizer)
        return self._counters[rule]
