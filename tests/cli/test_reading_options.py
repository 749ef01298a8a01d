"""Every command that analyses takes the same options, and each of them changes what it says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner
from tokenizers import Tokenizer, models, pre_tokenizers

from prefixguard.cli import analyze, check, diff, report, show
from prefixguard.errors import InputError

COMMANDS = {
    "analyze": analyze.command, "check": check.command, "diff": diff.command, "report": report.command,
    "show": show.command,
}  # fmt: skip
SHARED = {"--store", "--server", "--chat-template", "--tokenizer", "--price-date", "--config"}
WORDS = "check the tests before you say that you are done. " * 40


def log(path: Path, *, clock: bool = False, model: str = "qwen") -> str:
    """Three turns with a server's figures; with `clock` as a gateway stamps them."""
    rows, history = [], []
    for turn in range(3):
        history.append({"role": "user", "content": f"question {turn}"})
        stamp = f"It is 12:0{turn}:07. " if clock else ""
        messages = [{"role": "system", "content": stamp + WORDS}, *history]
        said = {"role": "assistant", "content": f"answer {turn}"}
        usage = {"prompt_tokens": 500, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 0}}
        rows.append(
            {
                "t": float(turn), "path": "/v1/chat/completions",
                "request": {"model": model, "messages": messages},
                "response": {"choices": [{"index": 0, "message": said}], "usage": usage},
            }
        )  # fmt: skip
        history.append(said)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def run(command: click.Command, *arguments: str) -> Any:
    return CliRunner().invoke(command, list(arguments))


def told(command: click.Command, *arguments: str) -> Any:
    """The command's JSON; with `check` as with the others."""
    flag = "--output-format" if command is check.command else "--format"
    done = run(command, *arguments, flag, "json")
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", list(COMMANDS))
def test_the_same_options_everywhere(name: str) -> None:
    given = {option for parameter in COMMANDS[name].params for option in parameter.opts}
    assert given >= SHARED
    assert ("--upstream-log" in given) == (name != "diff")


@pytest.mark.parametrize("name", ["analyze", "report"])
def test_a_template_that_renders_anew_is_found(name: str, tmp_path: Path) -> None:
    """The requests only grow; the template puts the number of messages in front."""
    template = tmp_path / "template.jinja"
    template.write_text("{{ messages|length }} {% for m in messages %}{{ m.content }}\n{% endfor %}")
    source = log(tmp_path / "log.jsonl")
    for options, found in (([], False), (["--chat-template", str(template)], True)):
        sessions = told(COMMANDS[name], source, "--server", "vllm:block=16", *options)["sessions"]
        codes = {f["code"] for s in sessions for t in s["turns"] for f in t["findings"]}
        assert ("PG701" in codes) == found


def test_show_and_check_see_it_too(tmp_path: Path) -> None:
    template = tmp_path / "template.jinja"
    template.write_text("{{ messages|length }} {% for m in messages %}{{ m.content }}\n{% endfor %}")
    arguments = [log(tmp_path / "log.jsonl"), "--server", "vllm:block=16", "--chat-template", str(template)]
    assert "PG701" in {
        f["code"] for f in told(show.command, arguments[0], "1", *arguments[1:])["turn"]["findings"]
    }
    assert run(check.command, *arguments).exit_code == 1
    assert run(check.command, *arguments[:3]).exit_code == 0


def test_a_tokenizer_counts(tmp_path: Path) -> None:
    """Every word is one token, and nothing else is: counts that no other tokenizer gives."""
    tokenizer = Tokenizer(models.WordLevel({"[UNK]": 0}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    source = log(tmp_path / "log.jsonl", clock=True)
    plain, counted = (
        told(report.command, source, *options)["sessions"][0]["turns"][1]["tokens"]["shared"]
        for options in ([], ["--tokenizer", str(tmp_path / "tokenizer.json")])
    )
    assert 0 < counted < plain  # words against pieces of words
    steps = told(diff.command, f"{source}:0", f"{source}:1", "--tokenizer", str(tmp_path / "tokenizer.json"))
    assert steps["kind"] == "turns"


@pytest.mark.parametrize("name", ["analyze", "report", "check"])
def test_a_gateway_is_named(name: str, tmp_path: Path) -> None:
    client, behind = log(tmp_path / "client.jsonl"), log(tmp_path / "behind.jsonl", clock=True)
    alone = run(COMMANDS[name], client, "--server", "vllm:block=16")
    both = run(COMMANDS[name], client, "--server", "vllm:block=16", "--upstream-log", behind)
    assert "PG705" not in alone.stdout
    assert "PG705" in both.stdout
    assert (both.exit_code, alone.exit_code) == ((1, 0) if name == "check" else (0, 0))


@pytest.mark.parametrize("name", ["analyze", "report", "check"])
def test_a_second_tap_goes_with_one_log(name: str, tmp_path: Path) -> None:
    one, other = log(tmp_path / "1.jsonl"), log(tmp_path / "2.jsonl")
    done = run(COMMANDS[name], one, other, "--upstream-log", one)
    assert isinstance(done.exception, InputError)
    assert "exactly one log" in str(done.exception)


def test_a_page_shows_one_tap(tmp_path: Path) -> None:
    one = log(tmp_path / "1.jsonl")
    done = run(report.command, one, "--upstream-log", one, "--format", "html", "-o", str(tmp_path / "p.html"))
    assert isinstance(done.exception, InputError)
    assert "--upstream-log" in str(done.exception)


@pytest.mark.parametrize("name", list(COMMANDS))
@pytest.mark.parametrize("option", ["--chat-template", "--tokenizer", "--config"])
def test_a_file_that_is_missing_is_said_in_one_line(name: str, option: str, tmp_path: Path) -> None:
    source = log(tmp_path / "log.jsonl")
    names = [source, source] if name == "diff" else [source]
    done = run(COMMANDS[name], *names, option, str(tmp_path / "nowhere"))
    assert isinstance(done.exception, InputError), done.output
    assert "nowhere" in str(done.exception)
    assert "\n" not in str(done.exception)
