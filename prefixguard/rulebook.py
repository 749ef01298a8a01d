"""Reads, checks and dates `rules/`; hands out immutable values.

Knowledge about the world (what a finding means, how a server caches, which
header names a session) is data: TOML files with a date and a source. This
module is the only door to it. A file that does not say what it must say is an
error with its name, never a silent default.
"""

from __future__ import annotations

import datetime
import tomllib
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import msgspec

from prefixguard.errors import RuleError
from prefixguard.finding import Severity

type SeenBy = Literal["lint", "wire", "server"]

_PACKAGED = Path(__file__).parent / "rules"
_CHECKOUT = Path(__file__).parent.parent / "rules"


def rules_folder() -> Path:
    """Where the rules lie: inside the installed package, or beside it in a checkout."""
    return _PACKAGED if _PACKAGED.is_dir() else _CHECKOUT


class Example(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Source code that has the fault, and the same code mended.

    The examples are the linter's tests and the page's illustrations.
    """

    language: Literal["python", "typescript"]
    bad: str
    good: str


class FindingRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One entry of the catalogue: `rules/findings/PG###.toml`.

    mend: what to do; `mend_for` refines it per API or SDK.
    """

    code: str
    name: str
    title: str
    seen_by: tuple[SeenBy, ...]
    severity: Severity
    why: str
    mend: str
    can_be_deliberate: bool = False
    mend_for: Mapping[str, str] = {}
    examples: tuple[Example, ...] = ()


def read_tables[T](folder: Path, kind: type[T]) -> Iterator[tuple[Path, T]]:
    """Every TOML file of a folder as a value of `kind`, in the order of their names.

    Raises RuleError naming the file and the field that is wrong.
    """
    for path in sorted(folder.glob("*.toml")):
        yield path, read_table(path, kind)


def read_table[T](path: Path, kind: type[T]) -> T:
    """One TOML file as a value of `kind`. Raises RuleError naming the file and the field."""
    try:
        raw: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
        return msgspec.convert(raw, kind)
    except OSError as error:
        raise RuleError(f"{path}: {error.strerror or error}") from error
    except (tomllib.TOMLDecodeError, msgspec.ValidationError, UnicodeDecodeError) as error:
        raise RuleError(f"{path}: {error}") from error


class Dated(msgspec.Struct, frozen=True, kw_only=True):
    """What every table of facts says of itself: when it was true, and who says so."""

    date: datetime.date
    source: str
    verified: bool = False


class Rulebook:
    """All rules of one folder, read on first use."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or rules_folder()
        self._tables: dict[str, Any] = {}

    @cached_property
    def findings(self) -> Mapping[str, FindingRule]:
        """The catalogue by code, in the order of the codes."""
        rules: dict[str, FindingRule] = {}
        for path, rule in read_tables(self.folder / "findings", FindingRule):
            if path.stem != rule.code:
                raise RuleError(f"{path}: holds code {rule.code}, so it must be named {rule.code}.toml")
            rules[rule.code] = rule
        return rules

    def tables[T](self, name: str, kind: type[T]) -> tuple[T, ...]:
        """Every file of `rules/NAME/`, in the order of their names, read once."""
        key = f"{name}/"
        if key not in self._tables:
            self._tables[key] = tuple(table for _, table in read_tables(self.folder / name, kind))
        found: tuple[T, ...] = self._tables[key]
        return found

    def table[T](self, name: str, kind: type[T]) -> T:
        """The single file `rules/NAME.toml`, read once."""
        if name not in self._tables:
            self._tables[name] = read_table(self.folder / f"{name}.toml", kind)
        found: T = self._tables[name]
        return found
