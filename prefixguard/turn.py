"""What the analysis says of an exchange: the values behind `prefixguard-analysis/1`.

Field names are those of the JSON format, so that the report can be read beside
the code. None means unknown; it never means zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from prefixguard.exchange import Timing
from prefixguard.finding import Finding

type Shape = Literal["first", "append", "retry", "rewind", "fork", "side", "changed"]
type DivergenceKind = Literal["changed", "inserted", "removed", "moved", "reordered", "shape", "parameter"]
type Certainty = Literal["certain", "server"]
type Verdict = Literal["as-predicted", "less", "more", "not-reported"]


@dataclass(frozen=True, slots=True)
class Divergence:
    """The first place where a prompt parts from its parent (or donor).

    against: index of the other exchange. within: the body that `pointer`
    points into ("turn", or "parent" for what was removed). char_offset:
    characters into the segment's text. token_offset: tokens of the prompt
    before the divergence. before, after: readable windows around it, with
    `before_at`/`after_at` the offset of the divergence inside each window.
    """

    against: int
    within: Literal["turn", "parent"]
    pointer: str
    kind: DivergenceKind
    certainty: Certainty
    char_offset: int
    token_offset: int
    before: str
    after: str
    before_at: int = 0
    after_at: int = 0
    group: str = ""


@dataclass(frozen=True, slots=True)
class Tokens:
    """Token counts of a turn.

    prompt: the whole prompt. shared: before the divergence. lost: what a pure
    append would have read and this prompt cannot. rebilled: of those, sent
    again. method: how they were counted; exact: whether that is the server's
    own way of counting.
    """

    prompt: int
    shared: int
    lost: int
    rebilled: int
    method: str
    exact: bool


@dataclass(frozen=True, slots=True)
class Usage:
    """What the server reported, in tokens: total = uncached + read + all writes.

    read is None when the server says nothing of its cache: unknown, not zero.
    """

    uncached: int
    read: int | None
    write: Mapping[str, int] = field(default_factory=dict)
    output: int | None = None

    @property
    def total(self) -> int:
        """All tokens of the prompt."""
        return self.uncached + (self.read or 0) + sum(self.write.values())


@dataclass(frozen=True, slots=True)
class CacheOutcome:
    """What the cache should have done, and what the server says it did.

    model: name of the cache rule. decided_by: what chose it. read_low,
    read_high: the predicted cached tokens. verdict: the report against them.
    """

    model: str
    decided_by: str
    verified: bool
    read_low: int
    read_high: int
    reported_read: int | None
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Cost:
    """Money for one turn or a sum of turns, in `currency`; None where no price is known.

    actual: as reported. uncached: had nothing been cached. ideal: the same
    content sent append-only with breakpoints where they belong. avoidable:
    actual less ideal, net of write premiums. least, most: the range that
    actual lies in where the server did not say what it read; None elsewhere.
    """

    currency: str = "USD"
    actual: float | None = None
    uncached: float | None = None
    ideal: float | None = None
    avoidable: float | None = None
    estimated: bool = False
    least: float | None = None
    most: float | None = None


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What the server itself says of a miss.

    by: the vendor. reason: in its words. missed_tokens: its estimate. agrees:
    whether the findings here say the same; None where it cannot be compared.
    """

    by: str
    reason: str
    missed_tokens: int | None = None
    agrees: bool | None = None


@dataclass(frozen=True, slots=True)
class Turn:
    """Everything known about one exchange."""

    index: int
    t: float
    status: int | None
    upstream: str | None
    domain: str
    session: str
    thread: int
    parent: int | None
    donor: int | None
    shape: Shape
    api: str
    model: str | None
    divergence: Divergence | None
    findings: tuple[Finding, ...]
    is_break: bool
    tokens: Tokens
    usage: Usage | None
    cache: CacheOutcome | None
    timing: Timing
    cost: Cost
    aborted: bool = False
    diagnosis: Diagnosis | None = None
    note: str = ""
    """Why the turn could not be understood, or "" when it could."""
    unseen: tuple[str, ...] = ()
    """What its record does not hold: "prompt" (figures only), "system", "tools", "bytes" ..."""

    @property
    def is_fault(self) -> bool:
        """A break that nobody decided on."""
        causes = [f for f in self.findings if f.primary]
        return self.is_break and not (causes and all(f.deliberate for f in causes))


@dataclass(frozen=True, slots=True)
class CodeTotal:
    """What one finding cost in a session."""

    turns: int
    tokens: int
    cost: float | None


@dataclass(frozen=True, slots=True)
class Totals:
    """Sums over a session."""

    turns: int
    breaks: int
    breaks_deliberate: int
    rebilled_tokens: int
    hit_rate: float | None
    cost: Cost
    by_code: Mapping[str, CodeTotal]


@dataclass(frozen=True, slots=True)
class Session:
    """The turns of one agent run."""

    id: str
    key_kind: Literal["header", "body", "content"]
    key_name: str
    turns: tuple[Turn, ...]
    totals: Totals


@dataclass(frozen=True, slots=True)
class Prices:
    """Which price snapshot the costs rest on."""

    source: str
    version: str
    date: str


@dataclass(frozen=True, slots=True)
class Analysis:
    """The result over one or more logs."""

    version: str
    prices: Prices | None
    sessions: tuple[Session, ...]
