"""Reads what users write on the command line of the proxy, and says what is wrong with it."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from prefixguard.errors import InputError, MissingExtraError
from prefixguard.proxy.upstreams import parse_target

if TYPE_CHECKING:
    from prefixguard.proxy.upstreams import Target

_HIGHEST_PORT = 65535


def host_and_port(text: str) -> tuple[str, int]:
    """ "127.0.0.1:8787", "8787", ":8787" or "[::1]:8787" as host and port. Raises InputError."""
    host, _, port = text.strip().rpartition(":")
    host = host.strip("[]") or "127.0.0.1"
    if not port.isdigit() or int(port) > _HIGHEST_PORT:
        raise InputError(f"--listen {text!r}: write it as HOST:PORT, for example 127.0.0.1:8787")
    return host, int(port)


def named_targets(texts: Sequence[str]) -> dict[str, Target]:
    """NAME=URL, each. Raises InputError."""
    targets: dict[str, Target] = {}
    for text in texts:
        name, equals, url = text.partition("=")
        if not equals or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name):
            raise InputError(f"--to {text!r}: write it as NAME=URL, for example local=http://127.0.0.1:8080")
        targets[name] = parse_target(url)
    return targets


def proxy_folder() -> Path:
    """Where the proxy keeps its own files: the user's data directory."""
    import platformdirs

    return Path(platformdirs.user_data_path("prefixguard", appauthor=False))


def need_mitmproxy(command: str) -> None:
    """Raises MissingExtraError where the proxy's extra is not installed."""
    if importlib.util.find_spec("mitmproxy") is None:
        raise MissingExtraError(command, "proxy")
