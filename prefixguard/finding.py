"""A finding: one `PG###` of the catalogue, with the evidence that it rests on.

Both halves of the product speak this type: the analysis of recorded requests
and the linter. What a code means (title, why, how to mend it) is knowledge and
lives in `rules/findings/`; here is only what one occurrence of it looks like.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

type Severity = Literal["error", "warning", "info"]
type Confidence = Literal["high", "medium", "low"]
type Agent = Literal["client", "gateway", "server", "time"]
type Recurrence = Literal["once", "event", "every-user-turn", "every-request"]

SEVERITIES: tuple[Severity, ...] = ("info", "warning", "error")


@dataclass(frozen=True, slots=True)
class SourceLine:
    """A place in source code. Rows count from 1."""

    filename: str
    row: int


@dataclass(frozen=True, slots=True)
class Finding:
    """One cause, found on one turn.

    `pointer` is a JSON Pointer (RFC 6901) into the request body, or "" where
    the finding is about the request as a whole. `by` says who can mend it.
    `primary` marks the finding that explains the divergence; the others are
    remarks on the same turn.
    """

    code: str
    name: str
    message: str
    evidence: str = ""
    pointer: str = ""
    severity: Severity = "warning"
    confidence: Confidence = "high"
    primary: bool = False
    deliberate: bool = False
    by: Agent = "client"
    recurrence: Recurrence = "once"
    source: SourceLine | None = None

    def but(self, **changes: object) -> Finding:
        """The same finding with some fields changed."""
        return replace(self, **changes)  # type: ignore[arg-type]
