"""A table that fits its terminal: on a narrow one the columns that tell least are left out, not folded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions
from rich.table import Table
from rich.text import Text

_GAP = 2


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a fitting table.

    drop: where it stands in the order in which columns are left out, from 1;
        None for one that always stays. least: the width in cells down to which
        it may fold; None for one that never folds.
    """

    name: str
    justify: Literal["left", "right"] = "right"
    drop: int | None = None
    least: int | None = None
    cells: list[Text] = field(default_factory=list)

    @property
    def width(self) -> int:
        """The width in cells that it needs: all that it holds, or what it may be folded to."""
        texts = [*self.name.split("\n"), *(line for cell in self.cells for line in cell.plain.split("\n"))]
        longest = max(map(cell_len, texts), default=0)
        return longest if self.least is None else min(longest, self.least)


class FittingTable:
    """Columns, of which a narrow terminal is shown those that it has room for."""

    def __init__(self, columns: Sequence[Column]) -> None:
        self._columns = columns

    def add_row(self, cells: Sequence[Text]) -> None:
        """Adds a cell to each column."""
        for column, cell in zip(self._columns, cells, strict=True):
            column.cells.append(cell)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Table]:
        table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
        columns = fitting(self._columns, options.max_width)
        for column in columns:
            folds = column.least is not None
            last = folds and column is columns[-1]
            table.add_column(
                column.name, justify=column.justify, no_wrap=not folds,
                overflow="fold", ratio=1 if last else None,
            )  # fmt: skip
        for row in zip(*(column.cells for column in columns), strict=True):
            table.add_row(*row)
        yield table


def fitting(columns: Sequence[Column], width: int) -> list[Column]:
    """The columns that stay at a width in cells; those that always stay may be wider together."""
    kept = list(columns)
    for column in sorted((c for c in columns if c.drop is not None), key=lambda c: c.drop or 0):
        if sum(c.width + _GAP for c in kept) - _GAP <= width:
            break
        kept.remove(column)
    return kept
