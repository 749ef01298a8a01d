"""`prefixguard import`: files in, sessions in the record, and every reading command on the file itself."""

from __future__ import annotations

import csv
import gzip
import io
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from prefixguard.cli import root
from prefixguard.errors import InputError

FIXTURES = Path(__file__).parent.parent.parent / "fixtures" / "imports"


def run(*arguments: object) -> Result:
    return CliRunner().invoke(root, [str(each) for each in arguments])


def session_of(result: Result) -> dict[str, object]:
    assert result.exit_code == 0, result.output
    found: dict[str, object] = json.loads(result.stdout)
    return found


@pytest.mark.parametrize(
    "name", ["langfuse-api.json", "otlp-openllmetry.jsonl", "claude-code.jsonl.gz", "codex-rollout.jsonl"]
)
def test_a_file_is_judged_alike_stored_or_read_directly(name: str, tmp_path: Path) -> None:
    store = tmp_path / "store.sqlite"
    done = run("import", FIXTURES / name, "--store", store)
    assert done.exit_code == 0
    assert "added; session" in done.stdout
    stored = session_of(run("report", "--all", "--store", store, "--format", "json"))
    direct = session_of(run("report", FIXTURES / name, "--format", "json"))
    assert isinstance(stored["sessions"], list)
    assert isinstance(direct["sessions"], list)

    def told(session: dict[str, object]) -> object:
        return session["turns"]

    assert sorted(map(str, map(told, stored["sessions"]))) == sorted(map(str, map(told, direct["sessions"])))


def test_importing_again_adds_nothing(tmp_path: Path) -> None:
    store = tmp_path / "store.sqlite"
    run("import", FIXTURES / "openai-v2.json", "--store", store)
    again = run("import", FIXTURES / "openai-v2.json", "--store", store)
    assert again.stdout.endswith(": 0 requests added, 4 were there already\n")
    assert again.exit_code == 0


def test_a_folder_and_a_name_for_the_run(tmp_path: Path) -> None:
    folder = tmp_path / "project"
    (folder / "s" / "side").mkdir(parents=True)
    (folder / "s.jsonl").write_bytes(gzip.decompress((FIXTURES / "claude-code.jsonl.gz").read_bytes()))
    (folder / "s" / "side" / "agent-a.jsonl").write_bytes(
        (FIXTURES / "claude-code-sub-agent.jsonl").read_bytes()
    )
    store = tmp_path / "store.sqlite"
    done = run("import", folder, "--session", "night", "--store", store)
    assert done.stdout.endswith("33 requests added; session night\n")
    (session,) = json.loads(run("sessions", "--store", store, "--format", "json").stdout)
    assert (session["id"], session["exchanges"], session["agent"]) == ("night", 33, "claude-code")
    report = json.loads(run("report", "night", "--store", store, "--format", "json").stdout)
    assert {turn["thread"] for turn in report["sessions"][0]["turns"]} == {0, 1}


def test_a_folder_s_other_files_are_named_and_passed_over(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"some": "thing"}\n')
    (tmp_path / "b.har.gz").write_bytes((FIXTURES / "chromium.har.gz").read_bytes())
    (tmp_path / "notes.txt").write_text("not looked at")
    done = run("import", tmp_path, "--store", tmp_path / "store.sqlite")
    assert done.exit_code == 1
    assert f"{tmp_path}/a.jsonl: as a whole: not a format that is known" in done.stderr
    assert "notes" not in done.stderr
    assert "5 requests added" in done.stdout


def test_damaged_entries_end_with_1_and_damaged_files_with_2(tmp_path: Path) -> None:
    store = tmp_path / "store.sqlite"
    lines = gzip.decompress((FIXTURES / "litellm-spend.jsonl.gz").read_bytes()).splitlines()
    (tmp_path / "log").write_bytes(lines[0] + b"\n{oops\n" + lines[1])
    done = run("import", tmp_path / "log", "--store", store)
    assert done.exit_code == 1
    assert "2 requests added" in done.stdout
    assert f"{tmp_path}/log: line 2: " in done.stderr
    (tmp_path / "log").write_bytes(b"{oops\n")
    assert run("import", tmp_path / "log", "--from", "litellm", "--store", store).exit_code == 2
    for arguments in (["missing.har"], [tmp_path / "log"], [tmp_path / "log", "--from", "x"]):
        result = run("import", *arguments, "--store", store)
        assert isinstance(result.exception, InputError)
        assert "\n" not in str(result.exception)


@pytest.mark.parametrize("command", ["analyze", "report", "show", "check", "simulate", "export"])
def test_reading_commands_take_a_file_in_place_of_a_log(command: str) -> None:
    name = FIXTURES / "otlp-openllmetry.jsonl"
    result = run(command, name, *(["--tokens", "100000"] if command == "simulate" else []))
    assert result.exit_code == 0, result.output
    (line,) = [line for line in result.stderr.splitlines() if "not in the file" in line]
    assert line.startswith(f"{name}: 4 requests (OpenTelemetry spans by opentelemetry")
    assert "not in the file" not in result.stdout


def test_two_turns_of_files_are_compared() -> None:
    name = FIXTURES / "langfuse-api.json"
    result = run("diff", f"{name}:2", f"{name}:3")
    assert result.exit_code == 0
    assert "system text: changed" in result.stdout


def test_the_report_says_what_was_not_seen() -> None:
    text = run("report", FIXTURES / "claude-code.jsonl.gz").stdout
    assert "Breaks cannot be seen: the record holds figures, no prompts" in text
    assert "No break" not in text
    assert "? avoidable" in text
    text = " ".join(run("report", FIXTURES / "openai-v2.json").stdout.split())
    assert "Not in the record, so not judged: parameters, tools." in text


def test_no_report_calls_unseen_prompts_unbroken(tmp_path: Path) -> None:
    name = FIXTURES / "claude-code.jsonl.gz"
    ticket = run("report", name, "--format", "ticket").stdout
    assert "30 turns without their prompts, so no break can be seen; 95 % of the tokens cached." in ticket
    page = run("report", name, "--format", "markdown").stdout
    assert "No break can be seen in 1 session: the record holds no prompts." in page
    assert "| 30 | ? | ? | 1 | 95 % | ? |" in page
    both = run("report", name, FIXTURES / "langfuse-api.json", "--format", "markdown").stdout
    assert "**No break** in 1 session. No break can be seen in 1 session" in both
    rows = list(csv.DictReader(io.StringIO(run("report", name, "--format", "csv").stdout)))
    assert {(row["break"], row["deliberate"], row["rebilled_tokens"]) for row in rows} == {("", "", "")}
    assert {row["shape"] for row in rows} == {"first", "append", ""}
    rows = list(
        csv.DictReader(io.StringIO(run("report", FIXTURES / "langfuse-api.json", "--format", "csv").stdout))
    )
    assert [row["break"] for row in rows] == ["0", "0", "0", "1"]


def test_a_policy_about_breaks_is_not_judged_by_figures() -> None:
    name = FIXTURES / "claude-code.jsonl.gz"
    refused = run("check", name)
    assert isinstance(refused.exception, InputError)
    assert "hold it to a hit rate, with --min-hit-rate" in str(refused.exception)
    assert run("check", name, "--min-hit-rate", "0.9").exit_code == 0
    assert run("check", name, "--min-hit-rate", "0.99").exit_code == 1


def test_turns_that_nobody_saw_are_not_called_the_same() -> None:
    name = FIXTURES / "claude-code.jsonl.gz"
    result = run("diff", f"{name}:1", f"{name}:2")
    assert isinstance(result.exception, InputError)
    assert "the record holds no prompt of it" in str(result.exception)
    table = run("diff", name, FIXTURES / "codex-rollout.jsonl").stdout
    assert not [line for line in table.splitlines() if line.startswith("breaks")]
    assert "what it continues was not recorded" in " ".join(run("show", name, "22").stdout.split())


def test_every_format_of_the_rules_can_be_read() -> None:
    from prefixguard.importers import foreign
    from prefixguard.importers.formats import packaged_formats

    assert {*foreign._READERS, foreign.OWN, foreign.TRACE} == set(packaged_formats())
