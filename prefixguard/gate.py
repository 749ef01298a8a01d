"""The gate: does what the analysis found keep to a policy? Analyses in, a verdict out; no I/O.

`prefixguard check` prints the verdict and ends with it; the pytest plugin asks
the same of one test. What cannot be measured does not pass: a limit on a
figure that the logs do not hold is broken, not ignored.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from prefixguard.finding import Finding
from prefixguard.turn import Analysis, Session, Turn

type Limit = Literal["max-breaks", "max-rebilled-tokens", "min-hit-rate", "max-avoidable-usd"]

_POSITIONS = frozenset({"messages", "input", "contents"})
"""Fields of a body in which a position says how far a conversation had come, and nothing of the fault."""


@dataclass(frozen=True, slots=True)
class Policy:
    """What may pass. None: no such limit.

    max_breaks: how many faults, over all inputs together. max_rebilled_tokens:
    tokens that those faults sent again. min_hit_rate: tokens read from the
    cache over all prompt tokens, 0 to 1, on turns whose server reports it.
    max_avoidable_usd: money above that of an append-only prompt. select,
    ignore: codes or their beginnings ("PG3"); with `select`, breaks with other
    causes do not count, and selected findings count without a break, too.
    """

    max_breaks: int | None = 0
    max_rebilled_tokens: int | None = None
    min_hit_rate: float | None = None
    max_avoidable_usd: float | None = None
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()

    @property
    def limits(self) -> tuple[tuple[Limit, float | None], ...]:
        """Each limit by the name of its option."""
        return (
            ("max-breaks", self.max_breaks),
            ("max-rebilled-tokens", self.max_rebilled_tokens),
            ("min-hit-rate", self.min_hit_rate),
            ("max-avoidable-usd", self.max_avoidable_usd),
        )

    def counts(self, code: str) -> bool:
        """Whether a finding with this code is the policy's business."""
        return (not self.select or code.startswith(self.select)) and not (
            self.ignore and code.startswith(self.ignore)
        )


@dataclass(frozen=True, slots=True)
class Input:
    """One log or session, analysed. name: as the user named it."""

    name: str
    analysis: Analysis


@dataclass(frozen=True, slots=True)
class Fault:
    """A turn that counts against the policy. finding: its cause, None when no finding explains the break."""

    input: str
    session: Session
    turn: Turn
    finding: Finding | None

    @property
    def code(self) -> str:
        """The code of its cause, "" where there is none."""
        return self.finding.code if self.finding else ""

    @property
    def pointer(self) -> str:
        """Where in the body it is."""
        if self.finding is not None and self.finding.pointer:
            return self.finding.pointer
        return self.turn.divergence.pointer if self.turn.divergence else ""

    @property
    def key(self) -> Known:
        """What stays the same when the same fault is recorded again."""
        return Known(self.code, self.turn.api, place_of(self.pointer))


@dataclass(frozen=True, slots=True, order=True)
class Known:
    """What tells a fault from others, however often and wherever it is recorded."""

    code: str
    api: str
    place: str


@dataclass(frozen=True, slots=True)
class Violation:
    """A limit that is broken. found: None where the logs do not say; such a limit counts as broken."""

    limit: Limit
    allowed: float
    found: float | None
    message: str
    faults: tuple[Fault, ...] = ()
    """The turns that broke it, in order; for a rate or money, those that took part in it."""


@dataclass(frozen=True, slots=True)
class Figures:
    """The sums that a policy limits, over all inputs. None: unknown."""

    turns: int
    sessions: int
    breaks: int
    deliberate: int
    rebilled_tokens: int
    estimated: bool
    hit_rate: float | None
    avoidable_usd: float | None
    unpriced_turns: int


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the gate says. faults: all that count; accepted: those that the baseline knows."""

    policy: Policy
    inputs: tuple[Input, ...]
    figures: Figures
    faults: tuple[Fault, ...]
    accepted: tuple[Fault, ...]
    unneeded: tuple[tuple[Known, int], ...]
    """What the baseline accepts and nobody does any more."""
    violations: tuple[Violation, ...] = field(default=())

    @property
    def holds(self) -> bool:
        """Whether the policy holds."""
        return not self.violations


def is_fault(turn: Turn) -> bool:
    """The gate's own view: a break that nobody decided on."""
    return turn.is_fault


def judge(
    inputs: Iterable[Input],
    policy: Policy,
    known: Counter[Known] | None = None,
    *,
    broken: Callable[[Turn], bool] = is_fault,
) -> Verdict:
    """The verdict on analysed inputs.

    known: how often each fault is accepted; the first of them pass, the rest
    count. broken: which turns are breaks, for callers that are stricter.
    """
    inputs = tuple(inputs)
    faults: list[Fault] = []
    accepted: list[Fault] = []
    left = Counter(known or {})
    out_of_account: set[int] = set()
    for one in inputs:
        for session in one.analysis.sessions:
            for turn in session.turns:
                fault = _fault(one.name, session, turn, policy, broken)
                if fault is None:
                    if turn.is_break:
                        out_of_account.add(id(turn))
                elif left[fault.key] > 0:
                    left[fault.key] -= 1
                    accepted.append(fault)
                    out_of_account.add(id(turn))
                else:
                    faults.append(fault)
    figures = _figures(inputs, faults, out_of_account)
    unneeded = tuple(sorted((key, count) for key, count in left.items() if count > 0))
    violations = tuple(_violations(policy, figures, tuple(faults)))
    return Verdict(policy, inputs, figures, tuple(faults), tuple(accepted), unneeded, violations)


def to_known(faults: Iterable[Fault]) -> Counter[Known]:
    """The faults as what a baseline accepts."""
    return Counter(fault.key for fault in faults)


def place_of(pointer: str) -> str:
    """A JSON Pointer without the positions that change as a conversation grows: `/messages/*/content`."""
    parts = pointer.split("/")
    if len(parts) > 1 and parts[1] in _POSITIONS:
        parts[2:] = ["*" if part.isdecimal() else part for part in parts[2:]]
    return "/".join(parts)


def _fault(
    name: str, session: Session, turn: Turn, policy: Policy, broken: Callable[[Turn], bool]
) -> Fault | None:
    if broken(turn):
        cause = next((f for f in turn.findings if f.primary), None)
        if policy.counts(cause.code if cause else ""):
            return Fault(name, session, turn, cause)
    if policy.select:
        for finding in turn.findings:
            loud = finding.severity != "info" and not finding.deliberate
            if loud and not (finding.primary and turn.is_break) and policy.counts(finding.code):
                return Fault(name, session, turn, finding)
    return None


def _figures(inputs: Sequence[Input], faults: Sequence[Fault], out_of_account: set[int]) -> Figures:
    sessions = [session for one in inputs for session in one.analysis.sessions]
    turns = [turn for session in sessions for turn in session.turns]
    reported = [t.usage for t in turns if t.usage is not None and t.usage.read is not None]
    prompt = sum(usage.total for usage in reported)
    answered = [t for t in turns if t.status is None or t.status < 400]
    priced = [t for t in answered if t.cost.avoidable is not None and t.cost.currency == "USD"]
    money = sum(t.cost.avoidable or 0.0 for t in priced if id(t) not in out_of_account)
    return Figures(
        turns=len(turns),
        sessions=len(sessions),
        breaks=sum(1 for t in turns if t.is_break),
        deliberate=sum(1 for t in turns if t.is_break and not t.is_fault),
        rebilled_tokens=sum(fault.turn.tokens.rebilled for fault in faults),
        estimated=any(not fault.turn.tokens.exact for fault in faults),
        hit_rate=sum(usage.read or 0 for usage in reported) / prompt if prompt else None,
        avoidable_usd=money if priced else None,
        unpriced_turns=len(answered) - len(priced),
    )


def _violations(policy: Policy, figures: Figures, faults: tuple[Fault, ...]) -> Iterable[Violation]:
    if policy.max_breaks is not None and len(faults) > policy.max_breaks:
        breaks = sum(1 for fault in faults if fault.finding is None or fault.finding.primary)
        what = _plural(breaks, "break")
        if breaks < len(faults):
            others = _plural(len(faults) - breaks, "selected finding")
            what = f"{what} and {others}" if breaks else others
        yield Violation(
            "max-breaks", policy.max_breaks, len(faults), f"{what}, {policy.max_breaks:,} allowed", faults
        )
    tokens = figures.rebilled_tokens
    if policy.max_rebilled_tokens is not None and tokens > policy.max_rebilled_tokens:
        about = "~" if figures.estimated else ""
        yield Violation(
            "max-rebilled-tokens", policy.max_rebilled_tokens, tokens,
            f"{about}{tokens:,} tokens re-billed, {policy.max_rebilled_tokens:,} allowed", faults,
        )  # fmt: skip
    yield from _hit_rate(policy.min_hit_rate, figures, faults)
    yield from _money(policy.max_avoidable_usd, figures, faults)


def _hit_rate(least: float | None, figures: Figures, faults: tuple[Fault, ...]) -> Iterable[Violation]:
    if least is None:
        return
    if figures.hit_rate is None:
        yield Violation(
            "min-hit-rate", least, None,
            f"the hit rate is unknown: no turn reports its cached tokens, at least {least:.1%} is asked for",
        )  # fmt: skip
    elif figures.hit_rate < least:
        # Not rounded to the limit that it misses.
        digits = 1 if least - figures.hit_rate >= 0.001 else 3
        text = f"a hit rate of {figures.hit_rate:.{digits}%}, at least {least:.1%} is asked for"
        yield Violation("min-hit-rate", least, figures.hit_rate, text, faults)


def _money(most: float | None, figures: Figures, faults: tuple[Fault, ...]) -> Iterable[Violation]:
    if most is None:
        return
    spent = figures.avoidable_usd
    if spent is None:
        yield Violation(
            "max-avoidable-usd", most, None,
            f"the avoidable cost is unknown: no turn has a price in USD, at most ${most:.4g} is allowed",
        )  # fmt: skip
    elif spent > most:
        unpriced = (
            f" ({_plural(figures.unpriced_turns, 'turn')} without a price)" if figures.unpriced_turns else ""
        )
        yield Violation(
            "max-avoidable-usd", most, spent, f"${spent:.4f} avoidable{unpriced}, ${most:.4g} allowed", faults
        )


def _plural(count: int, one: str) -> str:
    return f"{count:,} {one}{'' if count == 1 else 's'}"
