"""Verdicts from figures alone: real ones of a provider, and made ones of a service without breakpoints."""

from __future__ import annotations

import csv
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from prefixguard.caches.choose import cache_rules
from prefixguard.caches.rule import CacheRule
from prefixguard.causes.evidence import Catalogue
from prefixguard.rulebook import Rulebook
from prefixguard.series import Figures, SeriesStep, explain_series
from prefixguard.turn import Usage

FIXTURE = Path(__file__).parent.parent / "fixtures" / "series" / "claude-code.csv"
RULEBOOK = Rulebook()
CATALOGUE = Catalogue(RULEBOOK.findings)


def rule(name: str) -> CacheRule:
    return next(r for r in cache_rules(RULEBOOK) if r.name == name)


@pytest.fixture(scope="module")
def real() -> list[tuple[Figures, SeriesStep]]:
    """Every request of the recorded conversations, with its verdict."""
    sessions: dict[str, list[Figures]] = defaultdict(list)
    with FIXTURE.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            write = {"5m": int(row["write_5m"]), "1h": int(row["write_1h"])}
            usage = Usage(int(row["input"]), int(row["read"]), write, int(row["output"]))
            sessions[row["session"]].append(Figures(float(row["t"]), row["model"], usage))
    return [
        pair
        for rows in sessions.values()
        for pair in zip(rows, explain_series(rows, rule("anthropic"), CATALOGUE), strict=True)
    ]


def test_an_append_reads_what_was_read_and_written_before(real: list[tuple[Figures, SeriesStep]]) -> None:
    verdicts = Counter(step.verdict for _, step in real)
    assert verdicts == {"not-reported": 20, "as-predicted": 865, "less": 13, "more": 1}


def test_every_other_step_has_the_verdict_that_the_figures_support(
    real: list[tuple[Figures, SeriesStep]],
) -> None:
    missed = [(row, step.finding) for row, step in real if step.finding is not None]
    codes = Counter(finding.code for _, finding in missed)
    # Two model changes, two pauses of 19 minutes and 4 hours at a lifetime of five minutes, four
    # compactions at about 166,000 tokens, and five resets to the head that nothing explains.
    assert codes == {"PG405": 2, "PG601": 2, "PG303": 4, "PG804": 5}
    for row, finding in missed:
        if finding.code == "PG303":
            assert row.usage.total < 45_000
        if finding.code == "PG804":
            assert finding.by == "server"
            assert finding.confidence == "low"


def test_nobody_is_blamed_for_what_only_figures_show(real: list[tuple[Figures, SeriesStep]]) -> None:
    assert {s.finding.severity for _, s in real if s.finding and s.finding.by == "client"} == {"info"}


def series(*rows: tuple[float, int, int]) -> list[SeriesStep]:
    """(t, prompt, cached) of a service that keeps blocks of 128 tokens."""
    made = [Figures(t, "gpt-5.3-codex", Usage(total - read, read, {}, 300)) for t, total, read in rows]
    return explain_series(made, rule("openai"), CATALOGUE)


def test_blocks_need_not_be_read_to_the_last() -> None:
    steps = series((0, 17_203, 3_456), (6, 19_243, 16_256), (12, 21_000, 19_200))
    assert [s.verdict for s in steps] == ["not-reported", "as-predicted", "as-predicted"]


def test_a_miss_between_growing_prompts_is_information() -> None:
    steps = series((0, 19_243, 17_152), (6, 21_648, 3_456))
    finding = steps[1].finding
    assert finding is not None
    assert (finding.code, finding.severity, finding.by) == ("PG804", "info", "server")


def test_a_miss_after_a_long_pause_is_the_times_doing() -> None:
    finding = series((0, 19_243, 17_152), (2000, 21_648, 3_456))[1].finding
    assert finding is not None
    assert (finding.code, finding.by, finding.confidence) == ("PG601", "time", "medium")


def test_no_figures_no_verdict() -> None:
    rows = [Figures(0, None, Usage(10, None)), Figures(1, None, Usage(20, None))]
    assert [s.verdict for s in explain_series(rows, rule("openai"), CATALOGUE)] == ["not-reported"] * 2
