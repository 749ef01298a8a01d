"""What the catalogue says of a finding: its name, its mend and its page; the code alone where it has none.

Beside the formats, which all show some of it.
"""

from __future__ import annotations

from prefixguard.lint.verdict import LintFinding
from prefixguard.rulebook import FindingRule, Rulebook

DOCS = "https://prefixguard.dev/findings"


def rule_of(rulebook: Rulebook, code: str) -> FindingRule | None:
    """The entry of a code, or None while the catalogue has none."""
    return rulebook.findings.get(code)


def name(rulebook: Rulebook, code: str) -> str:
    rule = rule_of(rulebook, code)
    return rule.name if rule is not None else code


def mend(rulebook: Rulebook, finding: LintFinding) -> str:
    """What to do, as one line: for the finding's API where the catalogue has it."""
    rule = rule_of(rulebook, finding.code)
    if rule is None:
        return ""
    text = rule.mend_for.get(finding.api) or rule.mend
    return " ".join(text.split())


def url(code: str) -> str:
    return f"{DOCS}/{code}"
