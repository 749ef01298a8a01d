"""Kinds of faulty and of sound agents, one small file each: the linter's floor of recall and its ceiling of noise.

A faulty file names the code that must be found in it, a sound one must raise
nothing at warning or above.
"""  # noqa: E501

from __future__ import annotations

from pathlib import Path

import pytest

from prefixguard.lint.run import Options, Report, lint

FIXTURES = Path(__file__).parent.parent.parent / "fixtures" / "lint"
FAULTY = sorted((FIXTURES / "faulty").iterdir())
SOUND = sorted((FIXTURES / "sound").iterdir())


@pytest.fixture(scope="module")
def report() -> Report:
    return lint([FIXTURES], Options(jobs=1))


@pytest.mark.parametrize("path", FAULTY, ids=lambda path: path.name)
def test_the_fault_is_found(path: Path, report: Report) -> None:
    expected = path.read_text().split("\n", 1)[0].rsplit(" ", 1)[-1]
    found = {finding.code for finding in report.findings if report.path(finding) == path}
    assert expected in found


@pytest.mark.parametrize("path", SOUND, ids=lambda path: path.name)
def test_sound_code_is_left_alone(path: Path, report: Report) -> None:
    loud = [
        (finding.code, finding.at[0], finding.message)
        for finding in report.findings
        if report.path(finding) == path and finding.severity != "info"
    ]
    assert loud == []


def test_both_languages_and_most_codes_are_covered() -> None:
    codes = {path.read_text().split("\n", 1)[0].rsplit(" ", 1)[-1] for path in FAULTY}
    assert len(codes) >= 20
    assert {path.suffix for path in FAULTY} == {path.suffix for path in SOUND} == {".py", ".ts"}
