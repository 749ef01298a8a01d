"""One figure of a bench, and how it is printed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple


class Row(NamedTuple):
    """A figure. target: what the project promises, or "" for a remark; held: whether it is met."""

    what: str
    value: str
    target: str = ""
    held: bool | None = None


def show(name: str, rows: Iterable[Any], seconds: float | None = None) -> None:
    """Prints the figures of one bench: anything with the fields of a row."""
    print(f"\n{name}" + (f"  ({seconds:.0f} s)" if seconds is not None else ""))
    for row in rows:
        verdict = {True: "held", False: "MISSED", None: ""}[row.held]
        print(f"  {row.what:<44} {row.value:<56} {row.target:<12} {verdict}".rstrip())
