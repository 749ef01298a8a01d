"""`[tool.prefixguard.lint]` in pyproject.toml: what a project asks of the linter.

Read once per run by `run`. Unknown keys are errors with their name, because a
misspelt key that does nothing is worse than none.
"""

from __future__ import annotations

import fnmatch
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from prefixguard.errors import InputError
from prefixguard.finding import SEVERITIES, Severity
from prefixguard.lint.knowledge import UserRules
from prefixguard.lint.tables import Named, SinkCall, Source

_CODE = re.compile(r"^PG\d{0,3}$|^ALL$")


class Config(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """The table, with the names as they are written there (`fail-on`).

    select, ignore: codes or their beginnings (`PG1`, `PG301`). exclude: glob
    patterns of paths. per_file_ignores: pattern to codes. severity: code to
    another severity, or `off`. sources, sinks: see `rules/sources` and
    `rules/sinks`; prompt_names, prompt_functions: regular expressions of names.
    """

    select: tuple[str, ...] = ("ALL",)
    ignore: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    fail_on: Severity = "error"
    baseline: str = ""
    per_file_ignores: Mapping[str, tuple[str, ...]] = {}
    severity: Mapping[str, str] = {}
    sources: tuple[Source, ...] = ()
    sinks: tuple[SinkCall, ...] = ()
    prompt_names: tuple[str, ...] = ()
    prompt_functions: tuple[str, ...] = ()

    def user_rules(self) -> UserRules | None:
        """The project's own sources and sinks, or None."""
        if self.sources or self.sinks or self.prompt_names or self.prompt_functions:
            return UserRules(self.sources, self.sinks, self.prompt_names, self.prompt_functions)
        return None

    def excluded(self) -> tuple[re.Pattern[str], ...]:
        """The exclude patterns, to be searched for in a path."""
        return tuple(path_pattern(pattern) for pattern in self.exclude)


def path_pattern(pattern: str) -> re.Pattern[str]:
    """A glob as a regular expression that may match anywhere from a folder's start."""
    body = (
        fnmatch.translate(pattern.rstrip("/")).removeprefix("(?s:").removesuffix(r")\Z").removesuffix(r")\z")
    )
    return re.compile(f"(^|/)(?s:{body})($|/)")


def check_codes(codes: tuple[str, ...], where: str) -> None:
    """Raises InputError for what cannot be a code."""
    for code in codes:
        if not _CODE.match(code):
            raise InputError(f"{where}: {code!r} is no code; write PG101, a beginning such as PG1, or ALL")


def find(start: Path) -> Path | None:
    """The nearest pyproject.toml with the table, from a folder upwards."""
    folder = start.resolve()
    if folder.is_file():
        folder = folder.parent
    for place in (folder, *folder.parents):
        candidate = place / "pyproject.toml"
        if candidate.is_file():
            try:
                if b"tool.prefixguard.lint" in candidate.read_bytes():
                    return candidate
            except OSError:
                return None
    return None


def read(path: Path | None) -> Config:
    """The configuration of a file; the defaults for None. Raises InputError with file and key."""
    if path is None:
        return Config()
    try:
        raw: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read: {error}") from error
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path}: is no valid TOML: {error}") from error
    table = raw.get("tool", {}).get("prefixguard", {}).get("lint", {})
    try:
        config = msgspec.convert(table, Config)
    except msgspec.ValidationError as error:
        raise InputError(f"{path}: [tool.prefixguard.lint]: {error}") from error
    check_codes((*config.select, *config.ignore), f"{path}: [tool.prefixguard.lint]")
    for code, severity in config.severity.items():
        check_codes((code,), f"{path}: [tool.prefixguard.lint.severity]")
        if severity not in {*SEVERITIES, "off"}:
            raise InputError(
                f"{path}: [tool.prefixguard.lint.severity]: {code} = {severity!r}; "
                "write info, warning, error or off"
            )
    return config


__all__ = ["Config", "Named", "check_codes", "find", "path_pattern", "read"]
