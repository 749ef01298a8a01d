"""The catalogue's own examples: the faulty code of each has its fault, the mended code has none that is loud."""  # noqa: E501

from __future__ import annotations

from pathlib import Path

import pytest

from prefixguard.finding import SEVERITIES
from prefixguard.lint.run import Options, lint
from prefixguard.rulebook import Example, Rulebook

RULES = Rulebook().findings
EXAMPLES = [
    (code, number, example) for code, rule in RULES.items() for number, example in enumerate(rule.examples)
]
SAME = {"PG201": {"PG209"}, "PG202": {"PG209"}}
"""Where the wire shows another face of what the linter sees in source."""


def found(folder: Path, example: Example, text: str) -> dict[str, str]:
    folder.mkdir()
    (folder / f"agent.{'py' if example.language == 'python' else 'ts'}").write_text(text)
    report = lint([folder], Options(jobs=1))
    assert report.problems == []
    return {finding.code: finding.severity for finding in report.findings}


@pytest.mark.parametrize(("code", "number", "example"), EXAMPLES, ids=[f"{c}-{n}" for c, n, _ in EXAMPLES])
def test_an_example_shows_what_it_says(tmp_path: Path, code: str, number: int, example: Example) -> None:
    codes = SAME.get(code, {code})
    bad = found(tmp_path / "bad", example, example.bad)
    good = found(tmp_path / "good", example, example.good)
    loudest = max((bad.get(c, "") for c in codes), key=lambda s: SEVERITIES.index(s) if s else -1)  # type: ignore[arg-type]
    assert loudest, bad
    for c in codes:
        # A mend may leave a decision that is remarked on, but it must be less than the fault, or nothing.
        assert good.get(c) is None or (good[c] == "info" and loudest != "info"), good
    assert "error" not in good.values(), good


def test_every_code_that_the_linter_finds_has_an_example() -> None:
    without = [code for code, rule in RULES.items() if "lint" in rule.seen_by and not rule.examples]
    assert without == []
