"""`prefixguard check` as a user calls it: exit codes, configuration, baseline, formats."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SYSTEM = "You keep the log of a lighthouse. Weather first, then ships, then birds. " * 5


def write_log(path: Path, *, clock: bool, turns: int = 3, blank: bool = False) -> Path:
    """A conversation with vLLM, whose cache reads what it can."""
    messages: list[dict[str, str]] = []
    lines = []
    for turn in range(turns):
        messages.append({"role": "user", "content": f"What passed in watch {turn}, and when did it pass?"})
        head = f"It is 10:00:0{turn}. {SYSTEM}" if clock else SYSTEM
        reply = f"In watch {turn} a barque passed, northbound, under topsails."
        usage = {
            "prompt_tokens": 150 + 30 * turn,
            "prompt_tokens_details": {"cached_tokens": 0 if clock or not turn else 128 + 16 * turn},
            "completion_tokens": 12,
        }
        lines.append(
            json.dumps(
                {
                    "t": turn * 5,
                    "path": "/v1/chat/completions",
                    "request": {
                        "model": "m",
                        "messages": [{"role": "system", "content": head}, *messages],
                    },
                    "response": {
                        "choices": [{"message": {"role": "assistant", "content": reply}}],
                        "usage": usage,
                    },
                }
            )
        )
        messages.append({"role": "assistant", "content": reply})
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(("\n\n" if blank else "\n").join(lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("GITHUB_STEP_SUMMARY", "PREFIXGUARD_STORE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PREFIXGUARD_STORE", str(tmp_path / "none.sqlite"))


@pytest.fixture
def check(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs the command in this process; (exit code, standard output, standard error)."""
    from prefixguard.cli import main

    def run(*arguments: object) -> tuple[int, str, str]:
        words = ["prefixguard", "check", "--server", "vllm", *[str(argument) for argument in arguments]]
        monkeypatch.setattr(sys, "argv", words)
        try:
            main()
            code = 0
        except SystemExit as stop:
            code = int(stop.code or 0)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


def test_exit_codes(check: Any, tmp_path: Path) -> None:
    assert check(write_log(tmp_path / "good.jsonl", clock=False))[0] == 0
    code, out, _ = check(write_log(tmp_path / "bad.jsonl", clock=True))
    assert code == 1
    assert "max-breaks: 2 breaks, 0 allowed" in out
    code, out, err = check(tmp_path / "bad.jsonl", tmp_path / "none.jsonl")
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert "none.jsonl: no such file" in err


def test_the_shell_sees_the_exit_code(tmp_path: Path) -> None:
    write_log(tmp_path / "bad.jsonl", clock=True)
    program = "from prefixguard.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", program, "check", "bad.jsonl", "--server", "vllm"], check=False
    )
    assert done.returncode == 1


def test_limits(check: Any, tmp_path: Path) -> None:
    bad = write_log(tmp_path / "bad.jsonl", clock=True)
    good = write_log(tmp_path / "good.jsonl", clock=False)
    assert check(bad, "--max-breaks", 2)[0] == 0
    assert check(bad, "--max-breaks", 2, "--max-rebilled-tokens", 10)[0] == 1
    assert check(good, "--min-hit-rate", 0.5)[0] == 0
    assert check(good, "--min-hit-rate", 0.9)[0] == 1
    assert check(bad, "--ignore", "pg101,PG3")[0] == 0
    assert check(bad, "--select", "PG2")[0] == 0
    assert check(bad, "--select", "ALL")[0] == 1
    code, out, _ = check(good, "--max-avoidable-usd", 1)
    assert code == 1
    assert "the avoidable cost is unknown" in out


def test_a_folder_is_read_log_by_log(check: Any, tmp_path: Path) -> None:
    write_log(tmp_path / "logs" / "a.jsonl", clock=False)
    write_log(tmp_path / "logs" / "deep" / "b.jsonl", clock=True)
    (tmp_path / "logs" / "notes.txt").write_text("no log")
    code, out, _ = check("logs", "--output-format", "json")
    document = json.loads(out)
    assert (code, document["figures"]["inputs"], document["figures"]["turns"]) == (1, 2, 6)
    assert {fault["input"] for fault in document["faults"]} == {"logs/deep/b.jsonl"}


def test_rows_are_those_of_the_file(check: Any, tmp_path: Path) -> None:
    log = write_log(tmp_path / "bad.jsonl", clock=True, blank=True)
    _, out, _ = check(log, "--output-format", "json")
    assert [fault["row"] for fault in json.loads(out)["faults"]] == [3, 5]


def test_a_baseline_is_written_read_and_outgrown(check: Any, tmp_path: Path) -> None:
    log = write_log(tmp_path / "bad.jsonl", clock=True)
    code, out, err = check(log, "--write-baseline", "known.json")
    assert (code, out) == (0, "")
    assert "known.json: 2 accepted, 1 different" in err
    assert check(log, "--baseline", "known.json")[0] == 0
    write_log(tmp_path / "bad.jsonl", clock=True, turns=4)
    code, out, _ = check(log, "--baseline", "known.json")
    assert code == 1
    assert "1 break, 0 allowed" in out
    write_log(tmp_path / "bad.jsonl", clock=False)
    code, out, _ = check(log, "--baseline", "known.json")
    assert code == 0
    assert "The baseline accepts PG101 at /messages/*/content 2 times more than it occurs" in out
    assert check(log, "--baseline", "nowhere.json")[0] == 2


def test_the_configuration_gives_limits_and_options_go_first(check: Any, tmp_path: Path) -> None:
    log = write_log(tmp_path / "bad.jsonl", clock=True)
    project = tmp_path / "pyproject.toml"
    project.write_text("[tool.prefixguard.check]\nmax-breaks = 5\nmin-hit-rate = 0.0\n")
    assert check(log)[0] == 0
    assert check(log, "--max-breaks", 0)[0] == 1
    project.write_text('[tool.prefixguard.check]\nignore = ["PG101"]\n')
    assert check(log)[0] == 0
    project.write_text("[tool.prefixguard]\ndeliberate = []\n[tool.prefixguard.check]\n")
    assert check(log)[0] == 1
    check(log, "--write-baseline", "known.json")
    project.write_text('[tool.prefixguard.check]\nbaseline = "known.json"\n')
    assert check(log)[0] == 0


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ("max-break = 1", "max-break"),
        ('max-breaks = "many"', "max-breaks"),
        ("min-hit-rate = 80", "a share between 0 and 1"),
        ('select = ["PG9999"]', "'PG9999' is no code"),
    ],
)
def test_a_wrong_configuration_is_told_in_one_line(
    check: Any, tmp_path: Path, table: str, words: str
) -> None:
    log = write_log(tmp_path / "good.jsonl", clock=False)
    (tmp_path / "pyproject.toml").write_text(f"[tool.prefixguard.check]\n{table}\n")
    code, _, err = check(log)
    assert code == 2
    assert words in err
    assert err.count("\n") == 1


def test_github_writes_remarks_and_appends_to_the_job_summary(
    check: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = write_log(tmp_path / "bad.jsonl", clock=True)
    summary = tmp_path / "summary.md"
    summary.write_text("# Before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    _, out, _ = check(log, "--output-format", "github")
    assert out.startswith("::error file=bad.jsonl,line=2,")
    assert summary.read_text().startswith("# Before\n# Prompt cache gate: the policy is broken\n")
    check(log, "--output-format", "text")
    assert summary.read_text().count("# Prompt cache gate") == 1


def test_an_output_file_holds_what_would_be_printed(check: Any, tmp_path: Path) -> None:
    log = write_log(tmp_path / "bad.jsonl", clock=True)
    _, printed, _ = check(log, "--output-format", "sarif")
    code, out, _ = check(log, "--output-format", "sarif", "-o", "out.sarif")
    assert (code, out) == (1, "")
    assert (tmp_path / "out.sarif").read_text() == printed
    assert check(log, "-o", "no/such/folder.txt")[0] == 2
