"""The reference of the command line, docs/cli.md: made from the commands themselves.

What `--help` says, in the same words, as Markdown.
"""

from __future__ import annotations

import re

import click

from docs.site.generated import NOTICE
from prefixguard.cli import COMMANDS, root

_NAME = "prefixguard"


def reference() -> str:
    """The page, with a final line end."""
    group = click.Context(root, info_name=_NAME)
    parts = [
        "# Commands",
        "`prefixguard COMMAND --help` says the same in the terminal. Exit codes, unless a command says "
        "otherwise: 0 is fine, 1 means findings or a broken policy, 2 means that an input, an option or a "
        "setting could not be read.",
        NOTICE,
        "\n".join(f"- [{name}](#{_NAME}-{name}): {about}" for name, about in COMMANDS.items()),
    ]
    for name in COMMANDS:
        command = root.get_command(group, name)
        assert command is not None
        parts.append(_command(command, click.Context(command, parent=group, info_name=name)))
    return "\n\n".join(parts) + "\n"


def _command(command: click.Command, context: click.Context) -> str:
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    parts = [f"## {context.command_path}", f"```text\n{usage}\n```", *_paragraphs(command.help or "")]
    rows = [_row(option.get_help_record(context)) for option in command.params if _is_shown(option)]
    parts.append("\n".join(["| option | meaning |", "| --- | --- |", *rows]))
    return "\n\n".join(parts)


def _is_shown(parameter: click.Parameter) -> bool:
    return isinstance(parameter, click.Option) and not parameter.hidden


def _row(record: tuple[str, str] | None) -> str:
    assert record is not None
    names, meaning = record
    return f"| `{_bar(names)}` | {_bar(_flow([meaning]))} |"


def _bar(text: str) -> str:
    """Text for a table's cell, where a bar would end it."""
    return " ".join(text.split()).replace("|", r"\|")


def _paragraphs(text: str) -> list[str]:
    """A command's description: flowing paragraphs, and blocks that click leaves as they are."""
    found = []
    for block in re.split(r"\n[ \t]*\n", text.strip("\n")):
        lines = block.splitlines()
        if lines[0].strip() != "\b":
            found.append(_flow(lines))
            continue
        heading, *body = [line for line in lines[1:] if line.strip()]
        if heading.rstrip().endswith(":"):
            found.append(heading.strip())
        else:
            body.insert(0, heading)
        indent = min(len(line) - len(line.lstrip()) for line in body)
        found.append("\n".join(["```text", *(line[indent:].rstrip() for line in body), "```"]))
    return found


def _flow(lines: list[str]) -> str:
    """One paragraph; options in it as code, so that no dash or star is taken for markup."""
    text = " ".join(line.strip() for line in lines)
    return re.sub(r"(?<![\w`-])(--[a-z][a-z-]*[a-z])(?![\w`-])", r"`\1`", text)
