"""A table on a narrow terminal leaves out what tells least, and folds nothing that fits."""

from __future__ import annotations

import io

from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from rich.text import Text

from prefixguard.reports.text.fitting import Column, FittingTable, fitting

widths = st.lists(
    st.tuples(st.integers(1, 20), st.one_of(st.none(), st.integers(1, 9))), min_size=1, max_size=9
)


def needed(columns: list[Column]) -> int:
    return sum(column.width + 2 for column in columns) - 2


@given(widths, st.integers(1, 200))
def test_columns_go_in_their_order_and_no_sooner_than_they_must(
    made: list[tuple[int, int | None]], width: int
) -> None:
    columns = [Column("", drop=drop, cells=[Text("x" * size)]) for size, drop in made]
    kept = fitting(columns, width)
    gone = [column for column in columns if column not in kept]
    assert all(column.drop is not None for column in gone)
    staying = [column.drop for column in kept if column.drop is not None]
    if staying:
        assert needed(kept) <= width
        assert all((column.drop or 0) <= min(staying) for column in gone)
    for column in gone:  # the last that went was needed
        if (column.drop or 0) == max((c.drop or 0) for c in gone):
            assert needed([*kept, column]) > width or len(gone) > 1


def test_a_row_stays_a_line_where_its_columns_fit() -> None:
    table = FittingTable(
        [Column("turn"), Column("predicted", drop=1), Column("what happened", "left", least=27)]
    )
    table.add_row([Text("1"), Text("1.9k-2.0k"), Text("break: PG311 message-edited")])
    lines = {}
    for width in (80, 34, 20):
        stream = io.StringIO()
        Console(file=stream, width=width).print(table)
        lines[width] = [line.rstrip() for line in stream.getvalue().splitlines()]
    assert lines[80][-1] == "   1  1.9k-2.0k  break: PG311 message-edited"
    assert lines[34][-1] == "   1  break: PG311 message-edited"
    assert len(lines[20]) > 3, "what always stays is folded when nothing else can go"
