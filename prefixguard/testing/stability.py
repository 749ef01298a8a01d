"""Is the prefix of a test's requests stable? Limits and an analysis in, a judgement and its words out.

The judgement is the gate's, with two differences: a test has few and small
requests, so that a break counts here which is too small to count in the field;
and a ratio says how much of what was sent before is still in place.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

from prefixguard.callsite import Caller
from prefixguard.gate import Fault, Input, Policy, Verdict, judge
from prefixguard.reports import figures
from prefixguard.reports.advice import advice, flow
from prefixguard.reports.verdict.causes import Cause, by_cause, price
from prefixguard.reports.visible import one_line, safe, windows
from prefixguard.rulebook import FindingRule
from prefixguard.turn import Analysis, Turn

ANY_PREFIX = "unknown:tools-first"
"""The rule that tests judge by: any prefix is cached, from the first token on, while the test runs."""
_SHARE = 4  # a break counts when it sends again one part in so many of the prompt before, however small
_CALLERS = 3
_REACH = 48  # characters of the text before, of the difference, and behind it
_PLACES = 8


class UnstablePrefixError(AssertionError):
    """What a test fails with when its requests break the prefix."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a test lets pass. None: no such limit.

    max_breaks: breaks. max_rebilled_tokens: tokens that breaks send again.
    min_ratio: of the tokens that earlier requests sent, the least share that
    their successors send unchanged, 0 to 1. allow: codes, or their beginnings,
    that do not count. server: the cache rule; None for any prefix.
    """

    max_breaks: int | None = 0
    max_rebilled_tokens: int | None = None
    min_ratio: float | None = None
    allow: tuple[str, ...] = ()
    server: str | None = None

    def but(self, changes: Mapping[str, object]) -> Limits:
        """With those of `changes` that are not None."""
        return replace(self, **{name: value for name, value in changes.items() if value is not None})  # type: ignore[arg-type]


def stability(analysis: Analysis, limits: Limits) -> Verdict:
    """The gate's verdict on a test's requests."""
    by_index = {turn.index: turn for session in analysis.sessions for turn in session.turns}
    policy = Policy(limits.max_breaks, limits.max_rebilled_tokens, ignore=limits.allow)
    return judge([Input("", analysis)], policy, broken=partial(_broken, by_index))


def stable_ratio(analysis: Analysis) -> float | None:
    """Of the tokens that earlier requests sent, the share that their successors send unchanged.

    1.0 for a conversation that only grows; None where no request continues another.
    """
    sent = kept = 0
    for session in analysis.sessions:
        by_index = {turn.index: turn for turn in session.turns}
        for turn in session.turns:
            parent = by_index.get(turn.parent) if turn.parent is not None else None
            if parent is not None and turn.shape in ("append", "changed", "retry"):
                sent += parent.tokens.prompt
                kept += max(0, parent.tokens.prompt - turn.tokens.lost)
    return kept / sent if sent else None


def _broken(by_index: Mapping[int, Turn], turn: Turn) -> bool:
    if turn.is_break:
        return turn.is_fault
    parent = by_index.get(turn.parent) if turn.parent is not None else None
    return (
        parent is not None
        and turn.shape == "changed"
        and turn.domain == parent.domain
        and (turn.status is None or turn.status < 400)
        and turn.divergence is not None
        and turn.divergence.certainty == "certain"
        and turn.tokens.rebilled * _SHARE >= parent.tokens.prompt
        and not all(finding.deliberate for finding in turn.findings if finding.primary)
    )


def complaint(
    verdict: Verdict,
    limits: Limits,
    ratio: float | None,
    findings: Mapping[str, FindingRule],
    stacks: Mapping[int, tuple[Caller, ...]],
) -> str | None:
    """What a test fails with: the broken limits, and each cause with its place; None when all is well.

    stacks: the lines of code that sent each turn, the innermost first.
    """
    broken = [violation.message for violation in verdict.violations]
    if limits.min_ratio is not None and (ratio is None or ratio < limits.min_ratio):
        said = "unknown: no request continues another" if ratio is None else f"{ratio:.1%}"
        broken.append(f"the stable ratio is {said}, at least {limits.min_ratio:.1%} is asked for")
    if not broken:
        return None
    requests = figures.plural(verdict.figures.turns, "request")
    parts = [f"the prompt's prefix is not stable: {'; '.join(broken)} (in {requests})"]
    parts += [_told(cause, findings, stacks) for cause in by_cause(verdict.faults)]
    return "\n\n".join(parts)


def _told(cause: Cause, findings: Mapping[str, FindingRule], stacks: Mapping[int, tuple[Caller, ...]]) -> str:
    rule = findings.get(cause.code)
    worst = cause.worst
    turn, finding = worst.turn, worst.finding
    lines = [cause.title + (f": {rule.title}" if rule else "")]
    lines.append(": ".join(part for part in (_turns(cause.faults), price(cause.faults)) if part))
    place = f"turn {turn.index}" if len(cause.faults) > 1 else ""
    if worst.pointer:
        place += f"{' ' if place else ''}at {one_line(worst.pointer)}"
    if finding is not None and finding.message:
        place += f"{': ' if place else ''}{one_line(finding.message)}"
    if place:
        lines.append(place)
    if turn.divergence is not None and (finding is None or finding.primary):
        pairs = zip(("before", "after "), windows(turn.divergence, reach=_REACH), strict=True)
        lines += [f"  {label} {'(nothing)' if text is None else text.plain}" for label, text in pairs]
    if turn.divergence is not None:
        lines += _sent_by(turn.divergence.against, turn.index, stacks)
    if finding is not None and finding.evidence:
        lines.append(f"evidence: {safe(finding.evidence)}")
    if rule is not None:
        general, special = advice(rule, turn)
        lines += [f"Why: {flow(rule.why)}", f"To do: {special or general}"]
    return "\n".join([lines[0], *[f"  {line}" for line in lines[1:]]])


def _turns(faults: tuple[Fault, ...]) -> str:
    shown = ", ".join(str(fault.turn.index) for fault in faults[:_PLACES])
    more = f" and {len(faults) - _PLACES:,} more" if len(faults) > _PLACES else ""
    return f"turn{'s' if len(faults) > 1 else ''} {shown}{more}"


def _sent_by(before: int, after: int, stacks: Mapping[int, tuple[Caller, ...]]) -> list[str]:
    """Who sent the request, and who sent the one that it parts from where that was another line."""
    now, earlier = stacks.get(after, ()), stacks.get(before, ())
    lines = [f"sent by {_stack(now)}"] if now else []
    if earlier and earlier[:1] != now[:1]:
        lines.append(f"turn {before} was sent by {_stack(earlier)}")
    return lines


def _stack(stack: tuple[Caller, ...]) -> str:
    return ", called from ".join(
        f"{one_line(caller.filename)}:{caller.row}" + (f" in {caller.function}" if caller.function else "")
        for caller in stack[:_CALLERS]
    )
