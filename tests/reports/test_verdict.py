"""The gate's verdict in every format, and the writers of SARIF, JUnit and workflow commands behind them."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from typing import Any

import pytest
from any_values import analyses
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from report_values import APPEND, BREAK, CLOCK, analysis, session

from prefixguard.finding import SourceLine
from prefixguard.gate import Input, Policy, Verdict, judge, to_known
from prefixguard.reports.annotations import annotation
from prefixguard.reports.junit import Case, Suite, to_junit
from prefixguard.reports.sarif import Replacement, SarifResult, Spot, to_sarif
from prefixguard.reports.verdict import FORMATS, written
from prefixguard.rulebook import Rulebook
from tests import official_sarif

FINDINGS = Rulebook().findings
SOURCED = replace(BREAK, findings=(replace(CLOCK, source=SourceLine("agent/loop.py", 27)),))
ROWS = {"log.jsonl": [1, 2, 4]}


def verdict(*turns: Any, **policy: Any) -> Verdict:
    return judge([Input("log.jsonl", analysis(session(turns)))], Policy(**policy))


def known(*turns: Any) -> Verdict:
    return judge([Input("log.jsonl", analysis(session(turns)))], Policy(), to_known(verdict(*turns).faults))


def show(name: str, result: Verdict) -> str:
    return written(name, result, FINDINGS, ROWS).decode()


def test_text_groups_by_cause_and_ends_with_the_outcome() -> None:
    text = show("text", verdict(APPEND, SOURCED, SOURCED, min_hit_rate=0.9))
    assert text.splitlines()[0] == "PG101 clock-in-prefix: A time of day in a reused part of the prompt"
    assert "2 turns, ~4.1k tokens re-billed, ~$0.0036 avoidable" in text
    assert "turns 1, 2 (agent/loop.py:27)" in text
    assert "14:02:[-07-]" in text
    assert "broken  max-breaks: 2 breaks, 0 allowed" in text
    assert "broken  min-hit-rate: a hit rate of 31.6%, at least 90.0% is asked for" in text
    assert text.splitlines()[-1].startswith(
        "The policy is broken: 2 faults in 3 turns of 1 session; hit rate"
    )
    assert show("text", verdict(APPEND)) == (
        "The policy holds: no fault in 1 turn of 1 session; hit rate 95 %.\n"
    )
    assert "1 in the baseline" in show("text", known(APPEND, BREAK))


def test_json_names_turn_row_and_cause() -> None:
    document = json.loads(show("json", verdict(APPEND, SOURCED, BREAK)))
    assert (document["schema"], document["holds"]) == ("prefixguard-check/1", False)
    assert document["violations"][0]["turns"] == [
        {"input": "log.jsonl", "session": "s-1", "turn": 1},
        {"input": "log.jsonl", "session": "s-1", "turn": 2},
    ]
    first, second = document["faults"]
    assert (first["row"], second["row"]) == (2, 4)
    assert first["finding"]["source"] == {"filename": "agent/loop.py", "row": 27}
    assert not first["in_baseline"]
    assert json.loads(show("json", known(APPEND, BREAK)))["faults"][0]["in_baseline"]


def test_junit_fails_the_turns_that_break_the_policy_and_no_others() -> None:
    root = ET.fromstring(show("junit", verdict(APPEND, BREAK, APPEND)))
    assert (root.get("tests"), root.get("failures")) == ("4", "2")
    failed = [case.get("name") for case in root.iter("testcase") if case.find("failure") is not None]
    assert failed == ["max-breaks", "turn 1"]
    allowed = ET.fromstring(show("junit", verdict(APPEND, BREAK, max_breaks=1)))
    assert allowed.get("failures") == "0"
    skipped = ET.fromstring(show("junit", known(APPEND, BREAK)))
    assert (skipped.get("failures"), skipped.get("skipped")) == ("0", "1")


def test_github_remarks_stand_at_the_code_else_at_the_log() -> None:
    lines = show("github", verdict(APPEND, SOURCED, BREAK)).splitlines()
    assert lines[0].startswith(
        "::error file=agent/loop.py,line=27,title=prefixguard PG101%2C turn 1 of log.jsonl::PG101"
    )
    assert lines[1].startswith("::error file=log.jsonl,line=4,title=prefixguard PG101%2C turn 2::PG101")
    assert lines[2].startswith("::error title=prefixguard%3A the policy is broken::max-breaks: 2 breaks")
    assert not lines[3].startswith("::")
    allowed = show("github", verdict(APPEND, BREAK, max_breaks=1))
    assert allowed.startswith("::warning file=log.jsonl,line=2,")


def test_markdown_has_the_limits_and_the_causes() -> None:
    text = show("markdown", verdict(APPEND, SOURCED, max_avoidable_usd=1.0, max_rebilled_tokens=100))
    assert text.startswith("# Prompt cache gate: the policy is broken\n")
    assert "| `max-breaks` | at most 0 | 1 | **broken** |" in text
    assert "| `max-avoidable-usd` | at most $1 | $0.0018 | holds |" in text
    assert "### PG101 clock-in-prefix" in text
    assert "`turn 1 (agent/loop.py:27)`" in text


def test_sarif_is_valid_and_points_at_code_and_log() -> None:
    document = json.loads(show("sarif", verdict(APPEND, SOURCED, BREAK)))
    official_sarif.validate(document)
    (run,) = document["runs"]
    at_code, at_log = run["results"]
    place = at_code["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": "agent/loop.py", "uriBaseId": "SRCROOT"}
    assert place["region"] == {"startLine": 27}
    related = at_code["relatedLocations"][0]["physicalLocation"]
    assert (related["artifactLocation"]["uri"], related["region"]["startLine"]) == ("log.jsonl", 2)
    assert at_log["locations"][0]["physicalLocation"]["region"] == {"startLine": 4}
    assert at_code["partialFingerprints"] == at_log["partialFingerprints"]
    assert run["tool"]["driver"]["rules"][at_code["ruleIndex"]]["id"] == "PG101"
    assert run["artifacts"][0]["location"]["uri"] == "log.jsonl"
    accepted = json.loads(show("sarif", known(APPEND, BREAK)))["runs"][0]["results"]
    assert accepted[0]["suppressions"][0]["kind"] == "external"


def test_sarif_of_a_lint_run_is_valid_too() -> None:
    result = SarifResult(
        "PG101", "error", "a clock", Spot("src/é b.py", 3, 5, 3, 9),
        trace=[Spot("src/é b.py", 1, 1, note="read here"), Spot("/elsewhere/x.py", 9, note="sent here")],
        fix=("sort it", [Replacement(Spot("src/é b.py", 3, 5, 3, 9), "sorted(x)")]),
    )  # fmt: skip
    content = to_sarif(
        [result, SarifResult("PG999", "note", "new", Spot(None, logical="a session"))], FINDINGS,
        problems=["x.py: no Python"], help_uri="https://example.org/{code}", category="lint",
    )  # fmt: skip
    document = json.loads(content)
    official_sarif.validate(document)
    run = document["runs"][0]
    assert run["invocations"][0]["executionSuccessful"] is False
    assert run["tool"]["driver"]["rules"][0]["helpUri"] == "https://example.org/PG101"
    location = run["results"][0]["locations"][0]["physicalLocation"]
    assert location["artifactLocation"]["uri"] == "src/%C3%A9%20b.py"
    flow = run["results"][0]["codeFlows"][0]["threadFlows"][0]["locations"]
    assert flow[1]["location"]["physicalLocation"]["artifactLocation"]["uri"] == "file:///elsewhere/x.py"


@given(message=st.text(), title=st.text(), filename=st.none() | st.text(min_size=1))
def test_nothing_in_a_remark_ends_it_or_begins_another(
    message: str, title: str, filename: str | None
) -> None:
    line = annotation("error", message, title=title, filename=filename, row=3)
    assert len(line.splitlines()) == 1
    head, _, _ = line.removeprefix("::").partition("::")
    for part in head.partition(" ")[2].split(","):
        assert re.fullmatch(r"|(file|line|title)=[^:,]*", part)


@given(text=st.text(st.characters(codec=None)))
def test_any_text_can_stand_in_junit(text: str) -> None:
    content = to_junit([Suite(text, [Case(text, text, failure=(text, text)), Case("b", "c", skipped=text)])])
    assert ET.fromstring(content).get("failures") == "1"


@pytest.mark.parametrize("name", FORMATS)
@settings(max_examples=20, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(found=analyses)
def test_every_format_takes_whatever_an_analysis_may_say(name: str, found: Any) -> None:
    result = judge([Input("a\n\x1b[31m", found)], Policy(0, 0, 0.5, 0.0, select=("PG",)))
    content = written(name, result, FINDINGS, {})
    text = content.decode()
    assert text.endswith("\n")
    assert "\x1b" not in text
    if name == "sarif":
        official_sarif.validate(json.loads(text))
    elif name == "junit":
        ET.fromstring(text)
    elif name == "json":
        json.loads(text)
