"""The catalogue as a Markdown page: `docs/findings.md` is made from it, and a test holds the two together."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

from prefixguard.reports.advice import flow
from prefixguard.reports.rules import FAMILIES
from prefixguard.rulebook import FindingRule

_INTRODUCTION = """\
# Findings

Every cause of a lost prompt cache that PrefixGuard knows, with its code. Codes
are stable: once released, a code keeps its meaning. `prefixguard rules PG101`
prints an entry in the terminal.

*Seen by*: `lint` finds it in source code, `wire` in recorded requests, `server`
only in what a server reports. *Can be a decision*: when it happens once or now
and then it is reported and priced, but is no fault.

This page is made from `rules/findings/` by
`prefixguard rules --format markdown > docs/findings.md`."""


def findings_page(findings: Iterable[FindingRule]) -> str:
    """All entries as one Markdown page with a final line end."""
    rules = list(findings)
    parts = [_INTRODUCTION]
    for family, members in groupby(rules, lambda rule: rule.code[:3]):
        parts.append(f"## {FAMILIES.get(family, family)}")
        parts += [_entry(rule) for rule in members]
    return "\n\n".join(parts) + "\n"


def _entry(rule: FindingRule) -> str:
    facts = f"Severity: {rule.severity}. Seen by: {', '.join(rule.seen_by)}."
    if rule.can_be_deliberate:
        facts += " Can be a decision."
    parts = [f"### {rule.code} {rule.name}", f"**{rule.title}.** {facts}"]
    parts += [flow(rule.why), f"**To do.** {flow(rule.mend)}"]
    parts += ["\n".join(f"- With `{name}`: {flow(text)}" for name, text in rule.mend_for.items())]
    for example in rule.examples:
        parts.append(f"Not this:\n\n```{example.language}\n{example.bad.strip()}\n```")
        parts.append(f"But this:\n\n```{example.language}\n{example.good.strip()}\n```")
    return "\n\n".join(part for part in parts if part)
