"""What the documentation says of the command line is what the command line has, and all of it is said.

Every command line that a page or a help text shows is parsed as the shell and
click would; every option that is named somewhere exists; every command with
all of its options has its place in docs/cli.md.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from prefixguard.cli import COMMANDS, root

ROOT = Path(__file__).parents[2]
DOCS = sorted((ROOT / "docs").glob("*.md"))
PAGES = ["README.md", "CONTRIBUTING.md", *(f"docs/{path.name}" for path in DOCS)]
OTHERS = {
    "llama-server": {
        "--port", "--metrics", "--jinja", "--chat-template-file", "--swa-full", "--cache-ram",
        "--cache-reuse", "--slot-prompt-similarity", "--ctx-checkpoints",
    },
    "vllm": {
        "--enable-prompt-tokens-details", "--load-format", "--gpu-memory-utilization", "--kv-cache-dtype",
        "--max-num-batched-tokens", "--kv-events-config",
        "--prefix-cache-retention-interval",
    },
    "sglang": {"--enable-cache-report", "--enable-metrics"},
    "bench.gpu": {"--allow-cpu", "--install"},
    "uv, ruff, git": {"--all-extras", "--group", "--check", "--short"},
    "agents": {"--resume", "--continue", "--restore-chat-history", "--id", "--last"},
}  # fmt: skip
"""Options of other programs that pages name, by the program."""
PLUGIN = re.compile(r"--prefixguard-[a-z-]+$")


def command_of(name: str) -> click.Command:
    found = root.get_command(click.Context(root, info_name="prefixguard"), name)
    assert found is not None, f"there is no command {name!r}"
    return found


def options_of(command: click.Command) -> set[str]:
    context = click.Context(command)
    return {name for option in command.get_params(context) for name in (*option.opts, *option.secondary_opts)}


ALL_OPTIONS = {"--version", *(name for command in COMMANDS for name in options_of(command_of(command)))}


def help_text(name: str) -> str:
    return (command_of(name).help or "").replace("\b", "")


def shown(text: str) -> Iterator[str]:
    """The command lines of ours in a text: behind a prompt, or at the start of a line of code."""
    for block in re.findall(r"^```[a-z]*\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        lines = re.sub(r"\\\n\s*", "", block)
        for line in lines.splitlines():
            found = re.match(
                r"(?:\s*-\s)?(?:\s*run:\s*)?(?:\$ )?(?:[A-Z_]+=\S+ )*(prefixguard [a-z-].*)$", line
            )
            if found and "[OPTIONS]" not in line:
                yield found[1]


def words_of(line: str) -> list[str]:
    """A line's words up to what the shell takes: comments, pipes, redirections, remarks behind two spaces."""
    words: list[str] = []
    for word in shlex.split(re.split(r"\s{2,}|\s#\s", line)[0]):
        if word in ("|", ">", ">>", "&&", ";") or word == "...":
            break
        words.append(word)
    return words


def parsed(line: str, folder: Path) -> None:
    """Raises click.ClickException where click would not take the line. Files that it names are there."""
    _, name, *arguments = words_of(line)
    if name.startswith("-"):
        root.make_context("prefixguard", [name], resilient_parsing=True)
        return
    command = command_of(name)
    for parameter in command.params:
        if isinstance(parameter.type, click.Path) and parameter.type.exists:
            for option, word in pairwise(arguments):
                if option in parameter.opts:
                    (folder / word).mkdir(exist_ok=True)
    command.make_context(name, arguments, resilient_parsing=False)


LINES = sorted(
    {(page, line) for page in PAGES for line in shown((ROOT / page).read_text(encoding="utf-8"))}
    | {
        (f"{name} --help", found[0].strip())
        for name in COMMANDS
        for found in re.finditer(r"^\s*prefixguard .+$", help_text(name), re.MULTILINE)
    }
)


@pytest.mark.parametrize(("where", "line"), LINES, ids=[f"{where}: {line}" for where, line in LINES])
def test_a_command_line_that_is_shown_is_understood(
    where: str, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    parsed(line, tmp_path)


def test_a_wrong_line_is_seen(tmp_path: Path) -> None:
    assert len(LINES) > 80
    for line in ("prefixguard report --no-such", "prefixguard show a b", "prefixguard kv --tp none"):
        with pytest.raises(click.ClickException):
            parsed(line, tmp_path)
    with pytest.raises(AssertionError):
        parsed("prefixguard no-such", tmp_path)


@pytest.mark.parametrize("page", PAGES)
def test_every_option_that_is_named_exists(page: str) -> None:
    named = set(
        re.findall(r"(?<![\w-])--[a-z][a-z-]*[a-z](?![\w-])", (ROOT / page).read_text(encoding="utf-8"))
    )
    known = ALL_OPTIONS.union(*OTHERS.values())
    assert {name for name in named - known if not PLUGIN.match(name)} == set()


OFFLINE = ("rules", "kv", "completion", "lint --explain")
"""Whose examples need nothing but what is installed."""
OWN_FILES = {line for _, line in LINES if re.search(r"[\w/]\.(gguf|json)\b", line)}


@pytest.mark.parametrize(
    "line",
    sorted(
        {line for where, line in LINES if where.endswith("--help") and line[12:].startswith(OFFLINE)}
        - OWN_FILES
    ),
)
def test_an_example_runs(line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = words_of(line)[1:]
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(root, words)
    assert result.exit_code == 0, result.output
    assert len(result.output) > 100


def test_no_exception_is_kept_that_no_page_needs() -> None:
    told = "\n".join((ROOT / page).read_text(encoding="utf-8") for page in PAGES)
    assert [name for names in OTHERS.values() for name in sorted(names) if name not in told] == []


@pytest.mark.parametrize("page", PAGES)
def test_every_command_that_is_named_exists(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    named = set(re.findall(r"`prefixguard ([a-z][a-z-]*)", text))
    assert named <= set(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_described_with_its_options(name: str) -> None:
    page = (ROOT / "docs/cli.md").read_text(encoding="utf-8")
    section = page.partition(f"\n## prefixguard {name}\n")[2].partition("\n## ")[0]
    visible = {
        word for option in command_of(name).params if isinstance(option, click.Option) and not option.hidden
        for word in option.opts
    }  # fmt: skip
    for option in visible:
        assert re.search(rf"`[^`]*{re.escape(option)}\b", section), f"{name} {option}"


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_says_what_it_does_and_shows_how(name: str) -> None:
    assert len(COMMANDS[name]) < 110
    assert re.search(rf"^\s*prefixguard {name}\b", help_text(name), re.MULTILINE), "no example"
    for option in command_of(name).params:
        if isinstance(option, click.Option) and not {"--format", "--output-format"} & set(option.opts):
            assert option.help, f"{name} {option.opts}"


def test_every_command_has_its_place_in_a_page_beside_the_reference() -> None:
    """A reference alone does not say what a command is for."""
    told = "\n".join((ROOT / page).read_text(encoding="utf-8") for page in PAGES if page != "docs/cli.md")
    assert [name for name in COMMANDS if f"prefixguard {name}" not in told] == []
