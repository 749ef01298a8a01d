"""One figure of a bench, and how it is printed."""

from __future__ import annotations

from typing import NamedTuple


class Row(NamedTuple):
    """A figure. target: what the project promises, or "" for a remark; held: whether it is met."""

    what: str
    value: str
    target: str = ""
    held: bool | None = None


def show(name: str, rows: list[Row]) -> None:
    """Prints the figures of one bench."""
    print(f"\n{name}")
    for row in rows:
        verdict = {True: "held", False: "MISSED", None: ""}[row.held]
        print(f"  {row.what:<48} {row.value:<48} {row.target:<12} {verdict}".rstrip())
