"""What a cause may look at, and how it becomes a finding."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from prefixguard.caches.model import Readable
from prefixguard.caches.rule import CacheRule
from prefixguard.divergence import Parting
from prefixguard.finding import Agent, Confidence, Finding, Severity
from prefixguard.lineage import Match, Node
from prefixguard.rulebook import FindingRule
from prefixguard.tokens.layout import Layout


@dataclass(frozen=True, slots=True)
class Evidence:
    """One turn beside the turn that it continues.

    earlier, later: their layouts. parting: where they part. keep, got: tokens
    that a pure append would have read, and that can be read.
    """

    fresh: Node
    match: Match
    earlier: Layout
    later: Layout
    parting: Parting
    rule: CacheRule
    readable: Readable
    keep: int
    got: int

    @property
    def parent(self) -> Node:
        """The earlier exchange."""
        return self.match.node


class Catalogue:
    """Makes findings with the names and severities of `rules/findings/`."""

    def __init__(self, rules: Mapping[str, FindingRule]) -> None:
        self._rules = rules

    def can_be_deliberate(self, code: str) -> bool:
        """Whether the catalogue marks the code as one that people choose."""
        rule = self._rules.get(code)
        return rule is not None and rule.can_be_deliberate

    def finding(
        self,
        code: str,
        message: str,
        *,
        evidence: str = "",
        pointer: str = "",
        severity: Severity | None = None,
        confidence: Confidence = "high",
        by: Agent = "client",
        primary: bool = False,
    ) -> Finding:
        """A finding of the catalogue; its severity is the entry's unless given."""
        rule = self._rules[code]
        return Finding(
            code=code, name=rule.name, message=message, evidence=evidence, pointer=pointer,
            severity=severity or rule.severity, confidence=confidence, by=by, primary=primary,
        )  # fmt: skip


def shortened(text: str, most: int = 60) -> str:
    """A text on one line, its middle left out when it is long."""
    text = " ".join(text.split())
    return text if len(text) <= most else f"{text[: most // 2]} … {text[-most // 3 :]}"
