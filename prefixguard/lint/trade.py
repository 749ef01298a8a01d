"""What a cut of the history costs against keeping it, in figures.

Beside the last step of the linter. Prices are multiples of the price of an
uncached token (`rules/trade.toml`): a cut pays `again` for all that stands
behind it, keeping pays `read` for what could have been cut, on every turn.
The linter knows no sizes, so the answer is a rule with an example.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import msgspec

from prefixguard.rulebook import Dated, Rulebook

type Kind = Literal["window", "cut", "summary"]

KINDS: dict[str, Kind] = {
    "PG301": "window",
    "PG302": "cut",
    "PG303": "summary",
    "PG304": "cut",
    "PG306": "cut",
    "PG313": "cut",
}
"""The codes that take something out of the history, and how."""


class Row(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Prices of a token that is read, or sent again, in units of an uncached token."""

    apis: tuple[str, ...]
    terms: str
    read: float
    again: float


class TradeTable(Dated, frozen=True, forbid_unknown_fields=True):
    """`rules/trade.toml`. freed, behind: tokens of the example."""

    freed: int
    behind: int
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Trade:
    """Both choices for one edit of the history.

    factor: a cut is paid back once `factor` x (tokens behind it / tokens freed)
    turns follow. turns: that number for the example.
    """

    kind: Kind
    terms: str
    read: float
    again: float
    factor: float
    freed: int
    behind: int
    turns: int
    text: str

    def as_json(self) -> dict[str, object]:
        """The figures by name."""
        return {
            "terms": self.terms,
            "read": self.read,
            "again": self.again,
            "break_even": {
                "turns_per_behind_over_freed": self.factor,
                "freed": self.freed,
                "behind": self.behind,
                "turns": self.turns,
            },
            "text": self.text,
        }


def trade(rulebook: Rulebook, code: str, api: str = "") -> Trade | None:
    """What trimming costs against keeping, for a finding; None where nothing is taken out."""
    kind = KINDS.get(code)
    if kind is None:
        return None
    table = rulebook.table("trade", TradeTable)
    row = next((row for row in table.rows if not row.apis or api in row.apis), table.rows[-1])
    factor = round(row.again / row.read - 1, 2)
    turns = _turns(factor, table.freed, table.behind)
    read, again = f"{row.read:g}", f"{row.again:g}"

    def after(freed: int, behind: int) -> str:
        number = _turns(factor, freed, behind)
        return f"after {number} turn{'s' if number != 1 else ''}"

    if kind == "window":
        rule = (
            f"a window that moves pays {again} for all that it holds, on each turn; keeping everything pays "
            f"{read}, which is less until the history is {factor + 1:g} times the window. "
            f"Half of the history cut at once is paid back {after(1, 1)}"
        )
    elif kind == "summary":
        rule = (
            f"a summary in place of nine tenths of the history is paid back {after(9, 1)}, one in place of "
            f"half {after(1, 1)}. The request that writes it reads all of the history, at {read} "
            f"when it keeps the prefix, at {again} when it does not"
        )
    else:
        freed, behind = table.freed, table.behind
        rule = (
            f"a cut is paid back after {factor:g} x (tokens behind it / tokens freed) turns, each time it is "
            f"made: {freed:,} freed with {behind:,} behind {after(freed, behind)}, {10 * freed:,} freed at "
            f"once {after(10 * freed, behind)}. Before that, keeping is cheaper"
        )
    head = (
        f"A token sent again costs {again} of an uncached one, one read from the cache {read} ({row.terms})"
    )
    return Trade(
        kind,
        row.terms,
        row.read,
        row.again,
        factor,
        table.freed,
        table.behind,
        turns,
        f"{head}. So {rule}.",
    )


def _turns(factor: float, freed: float, behind: float) -> int:
    """How many turns must follow until a cut is paid back: the first whole number."""
    return math.ceil(round(factor * behind / freed, 6))


def trades(rulebook: Rulebook, code: str) -> list[Trade]:
    """Both choices at each set of prices that differs; none for a code that takes nothing out."""
    found: dict[tuple[float, float], Trade] = {}
    for row in rulebook.table("trade", TradeTable).rows:
        both = trade(rulebook, code, row.apis[0] if row.apis else "")
        if both is not None:
            found.setdefault((both.read, both.again), both)
    return list(found.values())
