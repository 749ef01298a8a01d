"""The verdict as Markdown: the summary of a build job, or a comment on a pull request."""

from __future__ import annotations

from collections.abc import Mapping

from prefixguard import __version__
from prefixguard.gate import Verdict
from prefixguard.reports import figures
from prefixguard.reports.advice import advice
from prefixguard.reports.markdown import block, code, plain, table
from prefixguard.reports.verdict import Rows
from prefixguard.reports.verdict.causes import Cause, by_cause, places, price, summary
from prefixguard.reports.visible import windows
from prefixguard.rulebook import FindingRule
from prefixguard.turn import Cost

_PLACES = 10  # turns named per cause
_CAUSES = 8  # causes told in full


def write(verdict: Verdict, findings: Mapping[str, FindingRule], rows: Rows) -> bytes:
    """A heading with the outcome, the limits, and each cause with its turns and what to do."""
    del rows  # a place in a log helps nobody here; the turn does
    outcome = "the policy holds" if verdict.holds else "the policy is broken"
    parts = [f"# Prompt cache gate: {outcome}", plain(summary(verdict)) + ".", _limits(verdict)]
    causes = by_cause(verdict.faults)
    several = len(verdict.inputs) > 1
    parts += [_cause(cause, findings, several=several) for cause in causes[:_CAUSES]]
    if len(causes) > _CAUSES:
        rest = ", ".join(
            f"{plain(cause.title)} ({figures.plural(len(cause.faults), 'turn')})"
            for cause in causes[_CAUSES:]
        )
        parts.append(f"Also: {rest}.")
    parts.append(f"<sub>prefixguard {plain(__version__)}. ~ marks an estimate, ? what is unknown.</sub>")
    return ("\n\n".join(part for part in parts if part) + "\n").encode("utf-8", "replace")


def _limits(verdict: Verdict) -> str:
    found = verdict.figures
    broken = {violation.limit for violation in verdict.violations}
    values: dict[str, tuple[str, str]] = {}
    for name, allowed in verdict.policy.limits:
        if allowed is None:
            continue
        match name:
            case "max-breaks":
                values[name] = (f"at most {allowed:,}", f"{len(verdict.faults):,}")
            case "max-rebilled-tokens":
                tokens = figures.exact_tokens(found.rebilled_tokens, estimated=found.estimated)
                values[name] = (f"at most {allowed:,}", tokens)
            case "min-hit-rate":
                values[name] = (f"at least {allowed:.1%}", figures.percent(found.hit_rate))
            case _:
                values[name] = (f"at most ${allowed:.4g}", figures.money(found.avoidable_usd, Cost()))
    rows = [
        [code(name), plain(allowed), plain(value), "**broken**" if name in broken else "holds"]
        for name, (allowed, value) in values.items()
    ]
    return table(("limit", "allowed", "found", ""), rows) if rows else ""


def _cause(cause: Cause, findings: Mapping[str, FindingRule], *, several: bool) -> str:
    rule = findings.get(cause.code)
    title = f"### {plain(cause.title)}" + (f": {plain(rule.title)}" if rule else "")
    sums = ", ".join(
        part for part in (figures.plural(len(cause.faults), "turn"), price(cause.faults)) if part
    )
    shown = ", ".join(code(place) for place in places(cause.faults, several=several, most=_PLACES))
    parts = [title, f"{plain(sums)}: {shown}."]
    worst = cause.worst
    finding, divergence = worst.finding, worst.turn.divergence
    told = code(worst.pointer) if worst.pointer else ""
    if finding is not None and finding.message:
        told += f"{': ' if told else ''}{plain(finding.message)}"
    if told:
        parts.append(told + ".")
    if divergence is not None and (finding is None or finding.primary):
        pairs = zip("-+", windows(divergence), strict=True)
        lines = [sign + line for sign, window in pairs if window for line in window.plain.split("\n")]
        if lines:
            parts.append(block("\n".join(lines), "diff"))
    if rule is not None:
        general, special = advice(rule, worst.turn)
        # The catalogue's texts are ours; their backticks are meant as Markdown.
        parts.append(f"**To do:** {special or general}")
    return "\n\n".join(parts)
