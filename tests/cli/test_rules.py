"""`prefixguard rules`: what it lists, what it says of one rule, and what it says to a wrong name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from prefixguard.cli.rules import command
from prefixguard.errors import InputError
from prefixguard.rulebook import Rulebook


def run(*arguments: str) -> Result:
    return CliRunner().invoke(command, arguments, catch_exceptions=True)


def test_the_catalogue_has_a_line_for_every_finding() -> None:
    result = run()
    assert result.exit_code == 0
    for rule in Rulebook().findings.values():
        assert f"{rule.code}  {rule.name} " in result.output
    assert "History rewritten" in result.output
    assert "(can be a decision)" in result.output


@pytest.mark.parametrize("word", ["PG101", "pg101", "clock-in-prefix"])
def test_one_finding_in_full(word: str) -> None:
    result = run(word)
    assert result.exit_code == 0
    assert "PG101 clock-in-prefix: A time of day" in result.output
    assert "Why it hurts" in result.output
    assert "With anthropic-messages" in result.output
    assert "datetime.now()" in result.output


def test_a_family_is_a_table() -> None:
    result = run("PG8")
    assert result.exit_code == 0
    assert "Figures missing" in result.output
    assert "PG801" in result.output
    assert "PG101" not in result.output
    assert "Why it hurts" not in result.output


def test_only_what_the_linter_can_see() -> None:
    codes = {rule["code"] for rule in json.loads(run("--seen-by", "lint", "--format", "json").output)}
    assert "PG209" in codes
    assert "PG601" not in codes


def test_json_holds_the_whole_entry() -> None:
    (rule,) = json.loads(run("PG101", "--format", "json").output)
    assert rule["severity"] == "error"
    assert rule["mend_for"]["openai-chat"]


def test_cache_rules_come_with_date_and_source() -> None:
    result = run("caches")
    assert result.exit_code == 0
    assert "anthropic" in result.output
    assert "source" in result.output
    for rule in json.loads(run("caches", "--format", "json").output):
        assert rule["date"]
        assert rule["source"]
    page = run("caches", "vllm").output
    assert "Grain" in page
    assert "16 tokens" in page


def test_the_page_in_the_docs_is_current() -> None:
    page = Path(__file__).parents[2] / "docs" / "findings.md"
    made = run("--format", "markdown").output
    assert page.read_text(encoding="utf-8") == made, "prefixguard rules --format markdown > docs/findings.md"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["PG999"], "no finding is called 'PG999'"),
        (["clock-in-prefx"], "did you mean clock-in-prefix?"),
        (["PGX"], "no finding is called 'PGX'"),
        (["caches", "nobody"], "no cache rule is called 'nobody'; have anthropic"),
    ],
)
def test_a_wrong_name_is_one_clear_line(arguments: list[str], said: str) -> None:
    result = run(*arguments)
    assert isinstance(result.exception, InputError)
    assert said in str(result.exception)
    assert "\n" not in str(result.exception)
