"""`report`, `show` and `diff` on real logs and a real store, with the real analysis."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import jsonschema
import pytest
from click.testing import CliRunner, Result

from prefixguard.cli import diff, report, show
from prefixguard.errors import InputError, PrefixGuardError
from prefixguard.exchange import Capture, SessionKey
from prefixguard.store import Store

SCHEMA = Path(__file__).parents[2] / "fixtures" / "analysis-1.schema.json"
RULES = " ".join(f"Rule {number}: check the tests before you say that you are done." for number in range(60))

Head = Callable[[int], str]


def clock(turn: int) -> str:
    """A system text with a clock in its first line."""
    return f"It is 14:02:{7 + 3 * turn:02}. You are a careful agent. {RULES}"


def still(turn: int) -> str:
    """The same, mended."""
    return f"You are a careful agent. {RULES}"


def bodies(head: Head, turns: int) -> list[dict[str, Any]]:
    """The requests of a chat agent that asks one question a turn."""
    history: list[dict[str, str]] = []
    found = []
    for turn in range(turns):
        history.append({"role": "user", "content": f"Question {turn}: what is in file number {turn}?"})
        messages = [{"role": "system", "content": head(turn)}, *history]
        found.append({"model": "gpt-4.1", "messages": messages})
        history.append({"role": "assistant", "content": f"File number {turn} holds the parser."})
    return found


def reply(turn: int, read: int) -> dict[str, Any]:
    message = {"role": "assistant", "content": f"File number {turn} holds the parser."}
    usage = {
        "prompt_tokens": 1400 + 30 * turn,
        "completion_tokens": 10,
        "prompt_tokens_details": {"cached_tokens": read},
    }
    return {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": usage}


def write(path: Path, head: Head, turns: int = 4) -> Path:
    lines = [
        {
            "t": 1.8e9 + 20 * turn,
            "path": "/v1/chat/completions",
            "upstream": "https://api.openai.com",
            "headers": {"x-session-id": path.stem},
            "request": body,
            "response": reply(turn, 1280 if turn and head is still else 0),
        }
        for turn, body in enumerate(bodies(head, turns))
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    return write(tmp_path / "broken.jsonl", clock)


@pytest.fixture
def mended(tmp_path: Path) -> Path:
    return write(tmp_path / "mended.jsonl", still)


def run(command: click.Command, *arguments: object) -> Result:
    result = CliRunner().invoke(command, [str(argument) for argument in arguments])
    if result.exception is not None and not isinstance(result.exception, (SystemExit, PrefixGuardError)):
        raise result.exception
    return result


def test_report_of_a_broken_log(broken: Path) -> None:
    result = run(report.command, broken)
    assert result.exit_code == 0
    assert "3 breaks" in result.stdout
    assert "PG101 clock-in-prefix" in result.stdout
    assert "To do:" in result.stdout
    assert "genai-prices" in result.stdout
    assert "\x1b" not in result.stdout


def test_report_of_a_mended_log_is_short(mended: Path) -> None:
    lines = run(report.command, mended).stdout.splitlines()
    assert lines[1].startswith("No break. ")
    assert len(lines) <= 5


def test_report_in_json_fits_the_schema(broken: Path, mended: Path) -> None:
    result = run(report.command, broken, mended, "--format", "json")
    document = json.loads(result.stdout)
    jsonschema.validate(document, json.loads(SCHEMA.read_text(encoding="utf-8")))
    assert [session["id"] for session in document["sessions"]] == ["broken", "mended"]
    assert document["sessions"][0]["totals"]["breaks"] == 3
    assert document["sessions"][1]["totals"]["breaks"] == 0
    assert document["sessions"][0]["turns"][1]["cost"]["actual"] > 0


def test_report_in_the_other_formats(broken: Path, tmp_path: Path) -> None:
    assert run(report.command, broken, "--format", "markdown").stdout.startswith("# Prompt cache report")
    rows = list(csv.DictReader(io.StringIO(run(report.command, broken, "--format", "csv").stdout)))
    assert [row["code"] for row in rows] == ["", "PG101", "PG101", "PG101"]
    assert "3 of 4 turns broke the prompt cache" in run(report.command, broken, "--format", "ticket").stdout
    page = tmp_path / "page.txt"
    assert run(report.command, broken, "-o", page).stdout == ""
    assert "PG101" in page.read_text(encoding="utf-8")


def test_show_finds_the_worst_turn_by_itself(broken: Path) -> None:
    text = run(show.command, broken).stdout
    assert re.match(r"Turn [123] of broken: break\n", text)
    for part in (
        "Where",
        "/messages/0/content",
        "before",
        "after",
        "Re-billed",
        "Money",
        "Why",
        "What to do",
    ):
        assert part in text, part


def test_show_a_named_turn(broken: Path) -> None:
    assert run(show.command, broken, 1).stdout.startswith("Turn 1 of broken: break")
    assert run(show.command, f"{broken}:1").stdout.startswith("Turn 1 of broken: break")
    assert run(show.command, broken, 0).stdout.startswith("Turn 0 of broken: no break")
    document = json.loads(run(show.command, broken, 1, "--format", "json").stdout)
    assert document["session"] == "broken"
    assert document["turn"]["findings"][0]["code"] == "PG101"


def test_show_of_a_clean_log_says_so(mended: Path) -> None:
    assert "Nothing to explain" in run(show.command, mended).stdout
    assert json.loads(run(show.command, mended, "--format", "json").stdout) is None


def test_diff_of_two_logs(broken: Path, mended: Path) -> None:
    text = run(diff.command, broken, mended).stdout
    assert text.startswith("broken -> mended: breaks 3 -> 0, read from the cache 0 % -> 66 %,")
    measures = json.loads(run(diff.command, broken, mended, "--format", "json").stdout)["measures"]
    assert measures["breaks"] == {"before": 3, "after": 0, "better": True}
    assert measures["cost"]["better"] is True


def test_diff_of_two_turns(broken: Path) -> None:
    text = run(diff.command, f"{broken}:0", f"{broken}:1").stdout
    assert "! /messages/0/content system text: changed" in text
    assert "+ /messages/2/content assistant text: new" in text
    document = json.loads(run(diff.command, f"{broken}:0", f"{broken}:1", "--format", "json").stdout)
    assert [step["change"] for step in document["steps"]] == ["changed", "same", "new", "new"]


@pytest.mark.parametrize(
    ("command", "arguments", "said"),
    [
        (show.command, ["{log}", "9"], "there is no turn 9; its turns are 0 to 3"),
        (show.command, ["{log}:9"], "there is no turn 9; its turns are 0 to 3"),
        (show.command, ["{log}:1", "2"], "two turns are named"),
        (diff.command, ["{log}", "{log}:1"], "not one of each"),
        (diff.command, ["{log}:0", "{log}:9"], "there is no turn 9; its turns are 0 to 3"),
        (report.command, ["{log}", "--server", "nobody"], "no such cache rule"),
        (report.command, ["{log}", "--all"], "not both"),
        (report.command, ["{log}.missing"], "no such file"),
        (report.command, ["{log}", "-o", "{log}/page"], "cannot be written"),
    ],
)
def test_a_wrong_word_is_one_clear_line(
    broken: Path, command: click.Command, arguments: list[str], said: str
) -> None:
    result = run(command, *[argument.replace("{log}", str(broken)) for argument in arguments])
    assert isinstance(result.exception, InputError)
    assert said in str(result.exception)
    assert "\n" not in str(result.exception)


@pytest.fixture
def record(tmp_path: Path) -> Path:
    path = tmp_path / "record.sqlite"
    with Store.open(path) as store:
        for number, head in enumerate((still, clock)):
            for turn, body in enumerate(bodies(head, 3)):
                store.append(
                    Capture(
                        id=f"{number}-{turn}",
                        t=1.8e9 + 1000 * number + turn,
                        method="POST",
                        path="/v1/chat/completions",
                        upstream="https://api.openai.com",
                        headers={"x-session-id": f"run-{number}", "content-type": "application/json"},
                        body=json.dumps(body).encode(),
                        status=200,
                        response_headers={"content-type": "application/json"},
                        response_body=json.dumps(reply(turn, 0)).encode(),
                    ),
                    SessionKey("header", "x-session-id", f"run-{number}"),
                )
    return path


def test_the_last_recorded_session_is_the_default(record: Path) -> None:
    assert "2 breaks" in run(report.command, "--store", record).stdout
    assert "PG101" in run(show.command, "--store", record).stdout
    assert "! /messages/0/content" in run(diff.command, "--store", record, "last:0", "last:1").stdout
    both = json.loads(run(report.command, "--store", record, "--all", "--format", "json").stdout)
    assert [session["totals"]["breaks"] for session in both["sessions"]] == [0, 2]


def test_an_unknown_session_names_the_command_that_lists_them(record: Path) -> None:
    result = run(report.command, "--store", record, "nobody")
    assert isinstance(result.exception, InputError)
    assert "prefixguard sessions" in str(result.exception)
