"""`--explain CODE`: the catalogue's own page of a code."""

from __future__ import annotations

from prefixguard.errors import InputError
from prefixguard.lint.trade import trades
from prefixguard.rulebook import Rulebook


def explained(code: str, rulebook: Rulebook) -> str:
    """Title, why, mend (per API too) and examples. Raises InputError for an unknown code."""
    rule = rulebook.findings.get(code)
    if rule is None:
        known = ", ".join(list(rulebook.findings)[:4])
        raise InputError(
            f"--explain: {code!r} is not in the catalogue; known codes are {known}, ... "
            "(`prefixguard rules` lists them)"
        )
    out = [f"{rule.code} {rule.name}: {rule.title}", ""]
    out.append(
        f"Severity {rule.severity}; seen by {', '.join(rule.seen_by)}"
        + ("; can be deliberate." if rule.can_be_deliberate else ".")
    )
    out.extend(["", "Why", rule.why.strip(), "", "What to do", rule.mend.strip()])
    for api, text in rule.mend_for.items():
        out.extend(["", f"With {api}:", text.strip()])
    both = trades(rulebook, rule.code)
    if both:
        out.extend(["", "Trimming against keeping", *(choice.text for choice in both)])
    for example in rule.examples:
        out.extend(
            [
                "",
                f"Faulty ({example.language}):",
                _indented(example.bad),
                "",
                "Mended:",
                _indented(example.good),
            ]
        )
    return "\n".join(out)


def _indented(text: str) -> str:
    return "\n".join("    " + line if line else "" for line in text.strip("\n").splitlines())
