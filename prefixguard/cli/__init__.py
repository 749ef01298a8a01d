"""The command line: one file per command, loaded only when it is called.

A command's file `cli/NAME.py` holds a click command named `command`. It parses,
calls the library and prints; it holds no logic of its own.
"""

from __future__ import annotations

import contextlib
import importlib
import keyword
import os
import sys
from typing import TYPE_CHECKING

import click

from prefixguard import __version__
from prefixguard.errors import PrefixGuardError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

COMMANDS: dict[str, str] = {
    "demo": "See it work: a real small model, an agent with a clock in its prompt, then mended.",
    "run": "Run an agent behind the proxy and report on it at the end.",
    "proxy": "Record an agent's requests: point its base URL here.",
    "sessions": "List the recorded sessions.",
    "show": "Explain one turn: where it parted, why, what was billed again, what to do.",
    "report": "Report on recorded sessions.",
    "ui": "Watch sessions in a browser on this machine, while they are recorded.",
    "analyze": "Analyse exchange logs.",
    "check": "Hold recorded requests to a policy: the gate for a build.",
    "diff": "Compare two sessions, or two turns.",
    "import": "Read other tools' records into the store: HAR, flows, transcripts, logs, spans.",
    "export": "Write sessions as an exchange log, OpenTelemetry spans or metrics, or a trace of hashes.",
    "lint": "Find cache-breaking code before it runs.",
    "measure": "Ask a recorded session again of a real server: predicted against measured, turn by turn.",
    "doctor": "Ask a running server for its settings and figures, and say what wastes its cache.",
    "kv": "KV memory of a model: bytes per token and sequence, and how many fit a GPU.",
    "measure-kv": "Measure what fewer bits for keys and values do to memory and to a model's answers.",
    "simulate": "Play recorded sessions or a trace against a KV pool: hit rate, evictions, capacity.",
    "rules": "The catalogue of findings, and the cache rules with their dates and sources.",
    "completion": "Print the script that completes commands and names in bash, zsh or fish.",
}
"""Every command with its one-line help, so that `--help` loads none of them."""


_M_MMAP_THRESHOLD = -3
"""From glibc's malloc.h."""


class LazyGroup(click.Group):
    """A group whose commands are imported when they are called, not before."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        name = cmd_name.replace("-", "_") + "_" * keyword.iskeyword(cmd_name)
        module = importlib.import_module(f"prefixguard.cli.{name}")
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem[str]]:
        """What can follow: offered from the table, so that no command is imported to be named."""
        from click.shell_completion import CompletionItem

        names = [CompletionItem(n, help=text) for n, text in COMMANDS.items() if n.startswith(incomplete)]
        return [*names, *click.Command.shell_complete(self, ctx, incomplete)]


@click.group(
    cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(__version__, prog_name="prefixguard")
def root() -> None:
    """Find where an agent's prompt stops matching the server's cache, why, and what it costs.

    \b
    Start with:
      prefixguard demo                 see it work, no key needed
      prefixguard run -- my-agent      run your agent and get a report
      prefixguard lint src/            check your code
    """


def settle_heap() -> None:
    """Tells glibc to keep request bodies out of the heap of what stays.

    They come and go by the hundred kilobytes and would tear it into holes:
    some eight per cent of all memory in a long log. Other systems go without.
    """
    if sys.platform == "linux":
        import ctypes

        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, 128 * 1024)


def main() -> None:
    """Entry point: errors of our own are one line on standard error and exit code 2."""
    settle_heap()
    try:
        root.main(standalone_mode=False)
    except PrefixGuardError as error:
        click.echo(f"prefixguard: {error}", err=True)
        sys.exit(2)
    except click.ClickException as error:
        error.show()
        sys.exit(2)
    except click.exceptions.Exit as stop:
        sys.exit(stop.exit_code)
    except (click.Abort, KeyboardInterrupt):
        sys.exit(130)
    except BrokenPipeError:
        # The reader closed the pipe (`| head`): not an error, but Python would complain at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
