"""What a project says of itself: `[tool.prefixguard]` in pyproject.toml, or a file named with --config."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import msgspec

from prefixguard.errors import InputError

FILE = "pyproject.toml"


class Configuration(msgspec.Struct, frozen=True):
    """The settings of the analysis.

    server: the cache rule to judge by. deliberate: codes that were decided on,
    so that the gate does not count them. prices: a file with the project's own
    prices, relative to the configuration file.
    """

    server: str | None = None
    deliberate: tuple[str, ...] = ()
    prices: str | None = None


def find(start: Path) -> Path | None:
    """The nearest pyproject.toml with a `[tool.prefixguard]` table, from `start` upwards."""
    for folder in (start, *start.parents):
        path = folder / FILE
        if path.is_file() and _table(path) is not None:
            return path
    return None


def read(path: Path | None) -> Configuration:
    """The configuration in a file; the defaults for None. Raises InputError naming file and field."""
    if path is None:
        return Configuration()
    table = _table(path)
    if table is None:
        raise InputError(f"{path}: no [tool.prefixguard] table")
    try:
        configuration = msgspec.convert(table, Configuration)
    except msgspec.ValidationError as error:
        raise InputError(f"{path}: [tool.prefixguard]: {error}") from error
    if configuration.prices is not None:
        prices = str(path.parent / configuration.prices)
        configuration = msgspec.structs.replace(configuration, prices=prices)
    return configuration


def _table(path: Path) -> dict[str, Any] | None:
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: {error}") from error
    table = content.get("tool", {}).get("prefixguard")
    return table if isinstance(table, dict) else None
