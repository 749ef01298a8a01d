"""Notices what other processes write to a store, cheaply enough to ask several times a second.

An exchange comes into the record in steps: it is stored, maybe its token ids
are added, maybe it is filed under a session that only its content told, and
last what was found about it is kept. A reader that wants what a later reader
will see waits for the last step.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import func, select

from prefixguard.exchange import Exchange
from prefixguard.store import schema
from prefixguard.store.names import UNASSIGNED
from prefixguard.store.reading import Reader

if TYPE_CHECKING:
    from sqlalchemy import PoolProxiedConnection

    from prefixguard.store.database import Database


@dataclass(frozen=True, slots=True)
class Arrival:
    """One exchange as far as it has come.

    number: its place in the order of recording. session: UNASSIGNED until it is
    known. rendered: its token ids are there. analysed: what was found is kept.
    """

    number: int
    session: str
    started: float
    agent: str | None
    rendered: bool
    analysed: bool


class Watch:
    """Asks one store what is new. Made by `Store.watch`; not for several threads at once."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._plain: PoolProxiedConnection | None = None
        self._last: object = None

    def close(self) -> None:
        """Gives its connection back."""
        if self._plain is not None:
            self._plain.close()
            self._plain = None

    def changed(self) -> bool:
        """Whether anything was written since it was asked last; True the first time."""
        now = self._version()
        changed, self._last = now != self._last, now
        return changed

    def _version(self) -> object:
        if not self._database.is_sqlite:
            return self.state()
        # SQLite counts, per connection, what the others commit: no table is read.
        with self._database.errors():
            if self._plain is None:
                self._plain = self._database.engine.raw_connection()
            cursor = self._plain.cursor()
            try:
                cursor.execute("PRAGMA data_version")
                return cursor.fetchone()
            finally:
                cursor.close()

    def state(self) -> tuple[str, int]:
        """(count of deletions, highest number). After a deletion numbers may be given again."""
        query = select(
            select(schema.meta.c.value).where(schema.meta.c.name == "deletions").scalar_subquery(),
            select(func.max(schema.exchange.c.number)).scalar_subquery(),
        )
        with self._database.reading() as connection:
            deletions, highest = connection.execute(query).one()
        return str(deletions), highest or 0

    def arrivals(self, after: int, again: Sequence[int] = ()) -> list[Arrival]:
        """The exchanges with a higher number than `after`, and those numbered in `again` that still exist."""
        columns = schema.exchange.c
        query = (
            select(
                columns.number,
                columns.session,
                columns.started,
                columns.agent,
                schema.rendered.c.exchange.is_not(None),
                schema.turn.c.exchange.is_not(None),
            )
            .outerjoin(schema.rendered, schema.rendered.c.exchange == columns.number)
            .outerjoin(schema.turn, schema.turn.c.exchange == columns.number)
            .order_by(columns.number)
        )
        # Two queries: with "or" between them, SQLite would read through the whole table.
        wanted = [query.where(columns.number.in_(again))] if again else []
        wanted.append(query.where(columns.number > after))
        with self._database.reading() as connection:
            rows = {row[0]: row for one in wanted for row in connection.execute(one)}
        return [
            Arrival(number, session or UNASSIGNED, started, agent, bool(rendered), bool(analysed))
            for number, session, started, agent, rendered, analysed in rows.values()
        ]

    def exchanges(
        self, session: str | None = None, numbers: Sequence[int] | None = None
    ) -> Iterator[tuple[int, Exchange]]:
        """(number, exchange) of a session, or of the numbers given, in order of time.

        Raises StoreDamagedError when a body is not the one that was written.
        """
        column = schema.exchange.c.session
        where = []
        if session is not None:
            where.append(column.is_(None) if session == UNASSIGNED else column == session)
        if numbers is not None:
            where.append(schema.exchange.c.number.in_(numbers))
        with self._database.reading() as connection:
            yield from Reader(connection).numbered(*where)
