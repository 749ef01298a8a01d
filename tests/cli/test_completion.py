"""What shells offer: scripts that real shells read, names that are there, nothing slow at a key stroke."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner

from prefixguard.cli import COMMANDS, root
from prefixguard.cli.completion import SHELLS, command
from prefixguard.errors import InputError
from prefixguard.exchange import Capture, SessionKey
from prefixguard.rulebook import Rulebook
from prefixguard.store import Store
from prefixguard.store.glance import session_ids

PROGRAM = Path(sys.executable).parent / "prefixguard"


@pytest.fixture
def record(tmp_path: Path) -> Path:
    path = tmp_path / "record.sqlite"
    with Store.open(path) as store:
        for number in range(3):
            capture = Capture(
                id=f"e{number}", t=1.8e9 + number, method="POST", path="/v1/chat/completions",
                upstream="https://api.example.org", headers={}, body=b"{}", status=200,
                response_headers={}, response_body=b"{}", agent="an-agent",
            )  # fmt: skip
            store.append(capture, SessionKey("header", "x-session-id", f"run-{number}"))
    return path


def offered(*words: str) -> list[str]:
    """What follows these words; the last is incomplete."""
    found = ShellComplete(root, {}, "prefixguard", "").get_completions(list(words[:-1]), words[-1])
    return [item.value for item in found if item.type == "plain"]


def test_commands_come_from_the_table() -> None:
    assert offered("") == list(COMMANDS)
    assert offered("re") == ["report"]
    assert "--version" in offered("--")


def test_options_and_choices_of_a_command() -> None:
    assert offered("show", "--st") == ["--store"]
    assert "json" in offered("report", "--format", "j")


@pytest.mark.parametrize(
    "line", [("rules", "pg10"), ("lint", "--explain", "PG10"), ("check", "--ignore", "PG10")]
)
def test_codes(line: tuple[str, ...]) -> None:
    assert offered(*line) == [code for code in Rulebook().findings if code.startswith("PG10")]


def test_the_last_code_of_a_list() -> None:
    assert offered("lint", "--select", "PG1,PG301") == ["PG1,PG301"]


def test_names_that_rules_know() -> None:
    assert offered("report", "--server", "open") == ["openai-5.6", "openai", "openrouter"]
    assert offered("rules", "ca") == ["caches"]
    assert offered("rules", "caches", "vl") == ["vllm"]
    assert offered("rules", "agents", "cod") == ["codex"]
    assert offered("kv", "--gpu", "h10") == ["H100"]
    assert offered("import", "--from", "lite") == ["litellm"]
    assert "smollm2-135m" in offered("kv", "smol")


def test_sessions_of_the_record_that_the_line_names(record: Path) -> None:
    with Store.open(record) as store:
        newest_first = [row.id for row in reversed(store.sessions())]
    assert offered("show", "--store", str(record), "") == ["last", *newest_first]
    assert offered("export", "--store", str(record), newest_first[1]) == [newest_first[1]]
    assert offered("sessions", "--store", str(record), "--delete", "no-such") == []


def test_sessions_of_the_record_that_the_environment_names(
    record: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PREFIXGUARD_STORE", str(record))
    assert offered("diff", "last", "la") == ["last"]
    assert [agent for _, agent in session_ids()] == ["an-agent"] * 3


def test_a_record_that_cannot_be_read_offers_nothing(tmp_path: Path) -> None:
    broken = tmp_path / "broken.sqlite"
    broken.write_text("not a database")
    for target in (broken, tmp_path / "none.sqlite", tmp_path, "postgresql://nobody@127.0.0.1:1/none"):
        assert session_ids(target) == []
    assert not (tmp_path / "none.sqlite").exists()


def test_the_script_of_each_shell() -> None:
    for shell in SHELLS:
        result = CliRunner().invoke(root, ["completion", shell])
        assert result.exit_code == 0
        assert "_PREFIXGUARD_COMPLETE" in result.output


def test_without_a_name_the_shell_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHELL", "/usr/bin/fish")
    assert "complete --no-files --command prefixguard" in CliRunner().invoke(root, ["completion"]).output
    monkeypatch.setenv("SHELL", "/bin/tcsh")
    result = CliRunner().invoke(root, ["completion"])
    assert isinstance(result.exception, InputError)
    assert isinstance(command, click.Command)


SCRIPTS = {
    "bash": """source "$1"; COMP_WORDS=(prefixguard rules PG10); COMP_CWORD=2
        _prefixguard_completion prefixguard; printf '%s\\n' "${COMPREPLY[@]}" """,
    "zsh": """compdef() { }; source "$1"; words=(prefixguard rules PG10); CURRENT=3
        _describe() { print -l -- ${completions_with_descriptions%%:*} }; compadd() { }
        _prefixguard_completion""",
    "fish": """source $argv[2]; complete -C 'prefixguard rules PG10' | string split -f1 \\t""",
}


@pytest.mark.parametrize("shell", SHELLS)
def test_a_real_shell_completes(shell: str, tmp_path: Path) -> None:
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"{shell} is not installed")
    script = tmp_path / "script"
    environment = {
        **os.environ,
        "PATH": f"{PROGRAM.parent}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(tmp_path),
    }
    made = subprocess.run([PROGRAM, "completion", shell], capture_output=True, text=True, check=True)
    script.write_text(made.stdout)
    quiet = {"bash": ["--norc"], "zsh": ["-f"], "fish": ["--no-config"]}[shell]
    result = subprocess.run(
        [program, *quiet, "-c", SCRIPTS[shell], shell, str(script)],
        capture_output=True, text=True, env=environment, timeout=60, check=False,
    )  # fmt: skip
    codes = [code for code in Rulebook().findings if code.startswith("PG10")]
    assert sorted(result.stdout.split()) == codes, result.stderr


@pytest.mark.parametrize(
    ("line", "too_much"),
    [
        ("prefixguard ", {"msgspec", "rich", "platformdirs"}),
        ("prefixguard lint --select P", {"rich", "sqlalchemy", "tree_sitter"}),
        ("prefixguard sessions --delete ", {"sqlalchemy", "tiktoken", "jinja2"}),
        ("prefixguard export ", {"sqlalchemy", "mitmproxy"}),
        ("prefixguard report ", {"sqlalchemy", "mitmproxy", "tree_sitter"}),
        ("prefixguard run --", {"sqlalchemy", "mitmproxy", "rich"}),
    ],
)
def test_nothing_slow_is_loaded_between_two_key_strokes(line: str, too_much: set[str], record: Path) -> None:
    code = (
        "import atexit, sys\n"
        f"slow = {too_much!r}\n"
        "atexit.register(lambda: print('loaded', sorted(slow & set(sys.modules)), file=sys.stderr))\n"
        "sys.argv = ['prefixguard']\n"
        "from prefixguard.cli import main; main()"
    )
    words = line.split()
    environment = {
        **os.environ,
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(words) - (not line.endswith(" "))),
        "_PREFIXGUARD_COMPLETE": "bash_complete",
        "PREFIXGUARD_STORE": str(record),
    }
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False
    )
    assert result.stdout.startswith(("plain,", "file,"))
    assert result.stderr.splitlines()[-1] == "loaded []"
