"""What a project says of itself: `[tool.prefixguard]` in pyproject.toml, or a file named with --config."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import msgspec

from prefixguard.errors import InputError

FILE = "pyproject.toml"


class CheckSettings(msgspec.Struct, frozen=True, rename="kebab", forbid_unknown_fields=True):
    """`[tool.prefixguard.check]`: what the gate lets pass. The options of `prefixguard check` go first.

    A misspelt name is an error here: a limit that is not read would let everything pass.
    """

    max_breaks: int | None = None
    max_rebilled_tokens: int | None = None
    min_hit_rate: float | None = None
    max_avoidable_usd: float | None = None
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    baseline: str | None = None


class Configuration(msgspec.Struct, frozen=True):
    """The settings of the analysis, and of the gate.

    server: the cache rule to judge by. deliberate: codes that were decided on,
    so that the gate does not count them. prices: a file with the project's own
    prices; it and the gate's baseline are relative to the configuration file.
    """

    server: str | None = None
    deliberate: tuple[str, ...] = ()
    prices: str | None = None
    check: CheckSettings = CheckSettings()


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
    if configuration.check.baseline is not None:
        baseline = str(path.parent / configuration.check.baseline)
        check = msgspec.structs.replace(configuration.check, baseline=baseline)
        configuration = msgspec.structs.replace(configuration, check=check)
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
