"""`prefixguard completion`: the script by which a shell completes our commands, options and names."""

from __future__ import annotations

import os
from pathlib import PurePath

import click
from click.shell_completion import get_completion_class

from prefixguard.errors import InputError

SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", required=False, type=click.Choice(SHELLS))
def command(shell: str | None) -> None:
    """Print the script that completes commands, options and names in a shell.

    Without a name, for the shell that SHELL names. A new shell reads it.

    \b
    Examples:
      prefixguard completion bash > ~/.local/share/bash-completion/completions/prefixguard
      prefixguard completion zsh > ~/.zfunc/_prefixguard
      prefixguard completion fish > ~/.config/fish/completions/prefixguard.fish
      eval "$(prefixguard completion bash)"
    """
    name = shell or PurePath(os.environ.get("SHELL", "")).name
    if name not in SHELLS:
        raise InputError(f"completion: name the shell: {', '.join(SHELLS)}")
    kind = get_completion_class(name)
    assert kind is not None
    root = click.get_current_context().find_root()
    click.echo(kind(root.command, {}, "prefixguard", "_PREFIXGUARD_COMPLETE").source())
