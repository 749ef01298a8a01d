"""A run as a project sees it: suppression, baseline, changed lines, configuration, fixes, formats."""

from __future__ import annotations

import json
import subprocess
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from prefixguard.errors import InputError
from prefixguard.lint import baseline, config, fixes
from prefixguard.lint.cache import FactCache
from prefixguard.lint.formats import FORMATS, printed
from prefixguard.lint.frontends import lower
from prefixguard.lint.run import Options, Report, lint
from prefixguard.rulebook import Rulebook
from tests import official_sarif

SETS = """def turn(client, messages, registry):
    names = {"a", "b", "c"}
    tools = [registry[n] for n in names]
    return client.chat.completions.create(model="m", messages=messages, tools=tools)
"""


def write(folder: Path, text: str, name: str = "agent.py") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def run(path: Path, **options: Any) -> Report:
    return lint([path], Options(**options))


CLOCKED = 'import datetime\ndef turn(client, history):\n    system = f"héé {datetime.datetime.now()}"%s\n    return client.chat.completions.create(model="m", messages=[{"role": "system", "content": system}, *history])\n'  # noqa: E501


def said(report: Report) -> list[str]:
    return [remark.message for remark in report.remarks]


def test_a_suppression_with_a_reason_hides_the_finding(tmp_path: Path) -> None:
    report = run(
        write(tmp_path, CLOCKED % "  # prefixguard: ignore[PG101] the clock is frozen in production")
    )
    assert report.findings == []
    assert [(f.code, reason) for f, reason in report.suppressed] == [
        ("PG101", "the clock is frozen in production")
    ]
    assert said(report) == []


@pytest.mark.parametrize(
    ("comment", "remark"),
    [
        ("  # prefixguard: ignore[PG101]", "a suppression needs a reason after its codes"),
        ("  # prefixguard: ignore[PG101, PG301] why not", "unused suppression of PG301"),
        ("  # prefixguard: ignore[PG999] why not", "unknown code 'PG999' in a suppression"),
        ("  # prefixguard: ignore why not", "a suppression needs its codes: ignore[PG101]"),
        (
            "  # prefixguard: igmore[PG101] typo",
            "unknown instruction 'igmore[PG101] typo'; write ignore[PG101] and a reason",
        ),
    ],
)
def test_a_suppression_that_says_too_little_is_reported(tmp_path: Path, comment: str, remark: str) -> None:
    assert remark in said(run(write(tmp_path, CLOCKED % comment)))


def test_a_comment_of_its_own_line_speaks_for_the_next(tmp_path: Path) -> None:
    text = (CLOCKED % "").replace(
        "    system", "    # prefixguard: ignore[PG101] known\n    # more words\n    system"
    )
    assert run(write(tmp_path, text)).findings == []


def test_a_suppression_in_typescript_at_the_sink(tmp_path: Path) -> None:
    text = (
        'import { generateText } from "ai";\nexport const turn = (model: any, messages: any[]) =>\n'
        "  // prefixguard: ignore[PG101] shown to the user on purpose\n"
        "  generateText({ model, messages, system: `${new Date()}` });\n"
    )
    report = run(write(tmp_path, text, "agent.ts"))
    assert report.findings == []
    assert said(report) == []


def test_a_baseline_holds_while_lines_move(tmp_path: Path) -> None:
    path, known = write(tmp_path, CLOCKED % ""), tmp_path / "known.json"
    baseline.write(known, run(path))
    write(tmp_path, "\n\n" + CLOCKED % "")
    moved = run(path)
    baseline.apply(known, moved)
    assert (moved.findings, moved.known_before) == ([], 1)
    write(tmp_path, CLOCKED % "" + (CLOCKED % "").replace("def turn", "def other"))
    twice = run(path)
    baseline.apply(known, twice)
    assert len(twice.findings) == 1


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"schema": "other/1", "findings": []}', '{"schema": 3}'])
def test_what_is_no_baseline_is_said_in_one_line(tmp_path: Path, text: str) -> None:
    known = write(tmp_path, text, "known.json")
    with pytest.raises(InputError, match=r"known\.json"):
        baseline.apply(known, run(write(tmp_path, CLOCKED % "")))


def git(folder: Path, *arguments: str) -> None:
    subprocess.run(
        ["git", "-c", "user.name=t", "-c", "user.email=t@t", "-c", "commit.gpgsign=false", *arguments],
        cwd=folder,
        check=True,
        capture_output=True,
    )


def test_only_changed_lines_or_new_ways_count(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    write(tmp_path, CLOCKED % "", "old.py")
    write(tmp_path, "import datetime\ndef stamp(): return str(datetime.datetime.now())\n", "clock.py")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "one")
    write(tmp_path, CLOCKED % "", "new.py")
    write(
        tmp_path,
        "from clock import stamp\n" + (CLOCKED % "").replace("{datetime.datetime.now()}", "{stamp()}"),
        "uses.py",
    )
    report = run(tmp_path, diff="HEAD")
    assert {report.path(finding).name for finding in report.findings} == {"new.py", "clock.py"}


def test_a_revision_that_does_not_exist_is_an_input_error(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    write(tmp_path, CLOCKED % "")
    with pytest.raises(InputError, match="--diff"):
        run(tmp_path, diff="nothing")


def settings(tmp_path: Path, table: str) -> config.Config:
    return config.read(write(tmp_path, "[tool.prefixguard.lint]\n" + table, "pyproject.toml"))


def test_the_project_has_its_say(tmp_path: Path) -> None:
    path = write(tmp_path, CLOCKED % "")
    assert run(path, config=settings(tmp_path, 'ignore = ["PG1"]')).findings == []
    assert run(path, config=settings(tmp_path, 'ignore = ["PG1"]\nselect = ["PG101"]')).findings != []
    assert run(path, config=settings(tmp_path, 'exclude = ["agent.py"]')).findings == []
    assert run(tmp_path, config=settings(tmp_path, 'exclude = ["agent.py"]')).findings == []
    assert (
        run(path, config=settings(tmp_path, '[tool.prefixguard.lint.severity]\nPG101 = "info"')).worst()
        == "info"
    )
    assert (
        run(path, config=settings(tmp_path, '[tool.prefixguard.lint.severity]\nPG101 = "off"')).worst()
        is None
    )
    ignores = '[tool.prefixguard.lint.per-file-ignores]\n"agent.py" = ["PG101"]'
    assert run(path, config=settings(tmp_path, ignores)).findings == []


def test_a_project_adds_its_own_sources_and_sinks(tmp_path: Path) -> None:
    text = "import house\ndef turn(history):\n    return house.ask(preface=f'{house.weather()} rules', turns=history)\n"  # noqa: E501
    path = write(tmp_path, text + "# messages\n")
    assert run(path).findings == []
    own = (
        '[[tool.prefixguard.lint.sources]]\ncode = "PG106"\nwhat = "the weather"\nnames = ["house.weather"]\n'
        '[[tool.prefixguard.lint.sinks]]\nmatch = "house.ask"\nsystem = "preface"\nmessages = "turns"\n'
    )
    (tmp_path / "pyproject.toml").write_text(own)
    found = run(path, config=config.read(tmp_path / "pyproject.toml")).findings
    assert [(f.code, f.severity, f.message) for f in found] == [
        ("PG106", "error", "The weather reaches the system text, read on every request")
    ]


@pytest.mark.parametrize(
    "table",
    [
        "selekt = []",
        'select = "PG101"',
        'select = ["E501"]',
        'fail-on = "never"',
        '[tool.prefixguard.lint.severity]\nPG101 = "loud"',
    ],
)
def test_a_wrong_setting_names_the_file(tmp_path: Path, table: str) -> None:
    with pytest.raises(InputError, match=r"pyproject\.toml"):
        settings(tmp_path, table)


def test_a_fix_sorts_and_the_finding_is_gone(tmp_path: Path) -> None:
    path = write(tmp_path, SETS)
    report = run(path)
    assert [f.code for f in report.findings] == ["PG209"]
    assert fixes.applied(report.project, report.findings) == (1, [])
    assert "for n in sorted(names)]" in path.read_text()
    assert run(path).findings == []


def test_every_fix_of_the_fixtures_parses(tmp_path: Path) -> None:
    folder = Path(__file__).parent.parent.parent / "fixtures" / "lint" / "faulty"
    for source in folder.glob("*.py"):
        (tmp_path / source.name).write_bytes(source.read_bytes())
    report = run(tmp_path)
    made, left = fixes.applied(report.project, report.findings)
    assert made >= 1
    assert left == []
    assert all(not lower(path.read_bytes(), "python").errors for path in tmp_path.glob("*.py"))


def test_columns_count_characters(tmp_path: Path) -> None:
    entry = json.loads(printed("json", run(write(tmp_path, CLOCKED % "")), Rulebook()))[0]
    line = (CLOCKED % "").split("\n")[entry["location"]["row"] - 1]
    assert line[entry["location"]["column"] - 1 :].startswith("datetime.datetime.now()")
    assert entry["end_location"]["column"] - entry["location"]["column"] == len("datetime.datetime.now()")


def test_json_says_what_the_contract_says(tmp_path: Path) -> None:
    entry = json.loads(printed("json", run(write(tmp_path, SETS)), Rulebook()))[0]
    assert {
        "code",
        "name",
        "severity",
        "message",
        "filename",
        "location",
        "end_location",
        "lifetime",
        "confidence",
        "position",
        "trace",
        "fix",
        "url",
    } <= set(entry)
    assert entry["position"] == "tools"
    assert entry["fix"]["edits"][0]["content"] == "sorted("
    assert entry["trace"][-1]["row"] == 4


def test_sarif_is_valid_and_within_the_limits_of_code_scanning(tmp_path: Path) -> None:
    write(tmp_path, CLOCKED % "")
    write(tmp_path, SETS, "sets.py")
    write(tmp_path, "def broken(:\nm = {'role': 'user'}\n", "broken.py")
    log = json.loads(printed("sarif", run(tmp_path), Rulebook()))
    official_sarif.validate(log)
    results = log["runs"][0]["results"]
    assert {result["ruleId"] for result in results} == {"PG101", "PG209"}
    for result in results:
        flow = result["codeFlows"][0]["threadFlows"][0]["locations"]
        assert 2 <= len(flow) <= 10_000
        assert result["partialFingerprints"]
        region = result["locations"][0]["physicalLocation"]["region"]
        assert region["startLine"] >= 1
        assert region["endColumn"] >= 1
    assert log["runs"][0]["invocations"][0]["executionSuccessful"] is False


def test_junit_and_github_name_each_finding(tmp_path: Path) -> None:
    report = run(write(tmp_path, CLOCKED % ""))
    root = ET.fromstring(printed("junit", report, Rulebook()))
    assert [case.get("name") for case in root.iter("testcase")] == ["PG101 clock-in-prefix line 3"]
    assert len(list(root.iter("failure"))) == 1
    assert printed("github", report, Rulebook()).startswith("::error file=")


@pytest.mark.parametrize("name", FORMATS)
def test_each_format_has_words_for_nothing(tmp_path: Path, name: str) -> None:
    text = printed(name, run(write(tmp_path, "x = 1\n")), Rulebook())
    assert name == "github" or text


def test_the_cache_gives_the_same_findings_and_survives_damage(tmp_path: Path) -> None:
    code, kept = tmp_path / "code", tmp_path / "kept"
    code.mkdir()
    path = write(code, CLOCKED % "")
    first = run(path, cache=kept)
    entries = [entry for entry in kept.rglob("*") if entry.is_file()]
    assert len(entries) == 1
    assert FactCache(kept).get(path.read_bytes(), "python") is not None
    assert run(path, cache=kept).findings == first.findings
    entries[0].write_bytes(b"damaged")
    assert run(path, cache=kept).findings == first.findings


def test_tests_are_only_remarked_on(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    write(tmp_path / "tests", CLOCKED % "")
    assert {f.severity for f in run(tmp_path).findings} == {"info"}


def test_a_path_that_does_not_exist_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        run(tmp_path / "nothing")


def test_built_javascript_is_not_read(tmp_path: Path) -> None:
    call = (
        'import { generateText } from "ai";'
        "export const turn = (model, messages) =>"
        " generateText({ model, messages, system: `It is ${Date.now()}` });"
    )
    (tmp_path / "written.js").write_text(call)
    (tmp_path / "minified.js").write_text(call * 200)
    (tmp_path / "bundled.js").write_text(call + "\n// filler" * 100_000)
    assert {finding.file for finding in run(tmp_path).findings} == {2}
    assert run(tmp_path).project.files[2].path.name == "written.js"


def test_what_the_linter_stumbles_over_hides_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from prefixguard.lint.expressions import containers, evaluation

    def stumble(*_: object) -> None:
        raise ZeroDivisionError("on purpose")

    monkeypatch.setattr(containers, "comprehension", stumble)
    monkeypatch.setattr(evaluation, "READERS", {})
    write(tmp_path, CLOCKED % "" + "def odd(messages): return [m for m in messages]\n")
    report = run(tmp_path, jobs=1)
    assert [f.code for f in report.findings] == ["PG101"]
    assert ["on purpose" in problem.message for problem in report.problems] == [True]


@pytest.mark.parametrize("threads", [1, 2], ids=["forked", "started"])
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_several_processes_find_what_one_finds(
    threads: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from prefixguard.lint import parallel
    from prefixguard.lint import run as module

    for number in range(6):
        (tmp_path / f"p{number}").mkdir()
        write(tmp_path / f"p{number}", CLOCKED % "" if number % 2 else SETS)
    alone = run(tmp_path, jobs=1).findings
    monkeypatch.setattr(module, "_PARALLEL_FROM", 2)
    monkeypatch.setattr(parallel, "threads", lambda: threads)
    assert run(tmp_path, jobs=2).findings == alone
    assert len(alone) == 6


def test_beside_other_threads_nothing_is_forked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import os
    import threading

    from prefixguard.lint import run as module

    write(tmp_path, CLOCKED % "")
    (tmp_path / "p").mkdir()
    write(tmp_path / "p", SETS)
    monkeypatch.setattr(module, "_PARALLEL_FROM", 2)
    monkeypatch.setattr(os, "fork", None)
    done = threading.Event()
    other = threading.Thread(target=done.wait)
    other.start()
    try:
        assert len(run(tmp_path, jobs=2).findings) == 2
    finally:
        done.set()
        other.join()
