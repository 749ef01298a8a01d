"""The rulebook as Markdown: the catalogue of findings, and the cache rules with their dates and sources.

`docs/findings.md`, `docs/caches.md` and the documentation's pages of single findings are made from it, and a
test holds them together.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import groupby

from prefixguard.caches.rule import CacheRule
from prefixguard.reports import figures
from prefixguard.reports.advice import flow
from prefixguard.reports.rules import FAMILIES, cache_facts, lifetime_of, minimum_of
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


_CACHES = """\
# How servers cache

A prediction is only as good as the rule behind it. Each of these rules has a
date and a source. *Checked* means that recorded or measured requests agree with
it; the others are what a vendor writes, and a prediction by them says
"unverified". Servers change: a recording that disagrees is the best reason to
correct a file in `rules/caches/`.

`--server NAME` chooses a rule; options follow its name, as in `vllm:block=16` or
`llama.cpp:slots=4`. Without it the rule is inferred from the host, the API and
the model. `prefixguard rules caches NAME` prints an entry in the terminal.

Kinds: *breakpoint*, entries end where a client marks them; *prefix*, the longest
common prefix in whole blocks of *grain* tokens; *state*, only stored positions
can be read; *handle*, a cache that a client names.

This page is made from `rules/caches/` by
`prefixguard rules caches --format markdown > docs/caches.md`."""


def caches_page(rules: Iterable[CacheRule]) -> str:
    """Every cache rule as one Markdown page with a final line end: a table, then each in full."""
    rules = list(rules)
    table = ["| rule | kind | minimum | grain | lifetime | date | checked |"]
    table.append("| --- | --- | --: | --: | --- | --- | --- |")
    for rule in rules:
        cells = [
            f"[{rule.name}](#{_anchor(rule.name)})",
            rule.kind,
            minimum_of(rule),
            f"{rule.grain:,}" if rule.kind != "breakpoint" else figures.NONE,
            lifetime_of(rule),
            rule.date.isoformat(),
            "yes" if rule.verified else "no",
        ]
        table.append(f"| {' | '.join(cells)} |")
    return "\n\n".join([_CACHES, "\n".join(table), *map(_cache_entry, rules)]) + "\n"


def _cache_entry(rule: CacheRule) -> str:
    rows = [f"| {label} | {_cell(value)} |" for label, value in cache_facts(rule)]
    return "\n".join(
        [f"## {rule.name}", "", f"{rule.title}.", "", "| fact | value |", "| --- | --- |", *rows]
    )


def _cell(text: str) -> str:
    """Text that stays as it is in a cell: patterns hold stars, names hold underscores."""
    return re.sub(r"([*_|<\[\]`\\])", r"\\\1", text)


def _anchor(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def findings_page(findings: Iterable[FindingRule]) -> str:
    """All entries as one Markdown page with a final line end."""
    rules = list(findings)
    parts = [_INTRODUCTION]
    for family, members in groupby(rules, lambda rule: rule.code[:3]):
        parts.append(f"## {FAMILIES.get(family, family)}")
        parts += [finding_entry(rule, 3) for rule in members]
    return "\n\n".join(parts) + "\n"


def finding_entry(rule: FindingRule, level: int = 1) -> str:
    """One finding with its examples, under a heading of that level; no line end."""
    facts = f"Severity: {rule.severity}. Seen by: {', '.join(rule.seen_by)}."
    if rule.can_be_deliberate:
        facts += " Can be a decision."
    parts = [f"{'#' * level} {rule.code} {rule.name}", f"**{rule.title}.** {facts}"]
    parts += [flow(rule.why), f"**To do.** {flow(rule.mend)}"]
    parts += ["\n".join(f"- With `{name}`: {flow(text)}" for name, text in rule.mend_for.items())]
    for example in rule.examples:
        parts.append(f"Not this:\n\n```{example.language}\n{example.bad.strip()}\n```")
        parts.append(f"But this:\n\n```{example.language}\n{example.good.strip()}\n```")
    return "\n\n".join(part for part in parts if part)
