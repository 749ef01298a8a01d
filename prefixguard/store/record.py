"""The store: recorded exchanges, written by the proxy and read by every command.

One writer at a time and any number of readers, in any number of processes.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

import zstandard
from sqlalchemy import Connection, delete, func, insert, select, update

from prefixguard.errors import InputError
from prefixguard.exchange import Capture, Exchange, Rendered, SessionKey
from prefixguard.store import schema
from prefixguard.store.database import Database, store_url
from prefixguard.store.deleting import delete_exchanges
from prefixguard.store.errors import StoreError
from prefixguard.store.names import LAST, UNASSIGNED
from prefixguard.store.reading import Reader
from prefixguard.store.recording import Mode, Recording
from prefixguard.store.searching import Hit, find_text
from prefixguard.store.watching import Watch
from prefixguard.store.writing import Writer

if TYPE_CHECKING:
    from types import TracebackType


@dataclass(frozen=True, slots=True)
class SessionRow:
    """A recorded session.

    key_kind, key_name, key_value: what named it; kind "content" when only the
    content did. agent: the client, as far as known. first_t, last_t: start of
    its first and last exchange, in seconds since the epoch. recording: the
    modes of its exchanges.
    """

    id: str
    key_kind: Literal["header", "body", "content"]
    key_name: str
    key_value: str
    agent: str | None
    first_t: float
    last_t: float
    exchanges: int
    recording: frozenset[Mode]


class Store:
    """A record of exchanges. Use `Store.open`; close it, or use it in a `with` statement.

    May be shared between threads. Every method raises StoreError when the
    database fails: StoreBusyError when somebody else holds the write lock for
    too long, StoreFullError when there is no room.
    """

    def __init__(self, database: Database, mode: Mode, patterns: Sequence[str]) -> None:
        self._database = database
        self._lock = threading.Lock()
        self._writer = Writer()
        with database.reading() as connection:
            query = select(schema.meta.c.value).where(schema.meta.c.name == "salt")
            self.salt = bytes.fromhex(connection.execute(query).scalar_one())
        self._recording = Recording(mode, patterns, self.salt)

    @classmethod
    def open(
        cls,
        target: str | Path | None = None,
        *,
        create: bool = True,
        mode: Mode = "full",
        patterns: Sequence[str] = (),
        wait: float = 5.0,
    ) -> Self:
        """Opens a record, and makes it when it is not there and `create` is set.

        target: a path, a URL (`sqlite:///...`, `postgresql://...`), or None
        for PREFIXGUARD_STORE or the user's data directory. mode, patterns:
        what is kept of the exchanges appended here, see `Recording`. wait:
        seconds to wait for the write lock. Raises StoreError, InputError for a
        bad pattern, MissingExtraError for PostgreSQL without its driver.
        """
        database = Database(store_url(target), create, wait)
        try:
            return cls(database, mode, patterns)
        except BaseException:
            database.close()
            raise

    @property
    def name(self) -> str:
        """The path or address, without its password."""
        return self._database.name

    @property
    def mode(self) -> Mode:
        """What is kept of the exchanges appended here."""
        return self._recording.mode

    def close(self) -> None:
        """Closes the record."""
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # Writing.

    def append(self, capture: Capture, session: SessionKey | str | None = None) -> None:
        """Records one exchange. session: what names it, or the id of a session that was found by content."""
        self.append_many([(capture, session)])

    def append_many(self, captures: Iterable[tuple[Capture, SessionKey | str | None]]) -> None:
        """Records several exchanges in one transaction: all of them, or, when it raises, none."""
        kept = [self._recording.keep(capture, session) for capture, session in captures]
        if not kept:
            return
        with self._writing() as connection:
            for one in kept:
                self._writer.exchange(connection, one)

    def assign(self, exchange_id: str, session: SessionKey | str) -> None:
        """Files an exchange under a session, whatever session it was in."""
        with self._writing() as connection:
            number, _, _, agent = self._find(connection, exchange_id)
            name = self._writer.session(connection, self._recording.session(session), agent)
            connection.execute(
                update(schema.exchange).where(schema.exchange.c.number == number).values(session=name)
            )

    def save_turn(self, exchange_id: str, turn_json: bytes) -> bool:
        """Keeps what was found about an exchange, for reading later; replaces what was kept before.

        False, and nothing kept, where recording is hashes only: findings quote the prompt.
        """
        with self._writing() as connection:
            number, _, recording, _ = self._find(connection, exchange_id)
            text = self._recording.text(turn_json)
            if text is None or recording == "hashes":
                return False
            connection.execute(delete(schema.turn).where(schema.turn.c.exchange == number))
            row = {"exchange": number, "content": zstandard.ZstdCompressor(level=3).compress(text)}
            connection.execute(insert(schema.turn), row)
            return True

    def save_rendered(self, exchange_id: str, rendered: Rendered) -> bool:
        """Keeps the token ids of an exchange; those kept first stay.

        False, and nothing kept, unless recording is full: token ids can be read as text.
        """
        with self._writing() as connection:
            number, session, recording, _ = self._find(connection, exchange_id)
            if recording != "full":
                return False
            self._writer.rendered(connection, number, session or "", rendered)
            return True

    def delete(self, session: str) -> int:
        """Deletes a session and the slices that nobody else uses; how many exchanges that were."""
        with self._writing() as connection:
            numbers = connection.execute(select(schema.exchange.c.number).where(_of(session))).scalars().all()
            if numbers:
                delete_exchanges(connection, list(numbers))
            connection.execute(delete(schema.session).where(schema.session.c.id == session))
            self._writer.forget()
        self._database.shrink()
        return len(numbers)

    # Reading.

    def sessions(self) -> list[SessionRow]:
        """The sessions, the one that was active last at the end; exchanges without one come as UNASSIGNED."""
        columns = schema.exchange.c
        with self._database.reading() as connection:
            named = {row.id: row for row in connection.execute(select(schema.session))}
            query = (
                select(
                    columns.session,
                    columns.recording,
                    func.min(columns.started),
                    func.max(columns.started),
                    func.count(),
                    func.max(columns.agent),
                )
                .group_by(columns.session, columns.recording)
                .order_by(func.max(columns.started))
            )
            rows: dict[str | None, SessionRow] = {}
            for session, recording, first, last, count, agent in connection.execute(query):
                known = rows.pop(session, None)
                key = named.get(session)
                rows[session] = SessionRow(
                    id=session or UNASSIGNED,
                    key_kind=key.key_kind if key else "content",
                    key_name=key.key_name if key else "",
                    key_value=key.key_value if key else "",
                    agent=(key.agent if key else None) or agent,
                    first_t=min(first, known.first_t) if known else first,
                    last_t=max(last, known.last_t) if known else last,
                    exchanges=count + (known.exchanges if known else 0),
                    recording=frozenset({recording}) | (known.recording if known else frozenset()),
                )
            return list(rows.values())

    def resolve(self, prefix: str) -> str:
        """The id of the session that starts with `prefix`; the newest for "last". Raises InputError."""
        rows = self.sessions()
        if not rows:
            raise InputError(f"{self.name}: nothing is recorded yet; start with `prefixguard run -- COMMAND`")
        ids = [row.id for row in rows]
        if prefix in ids:
            return prefix
        if prefix == LAST:
            return ids[-1]
        found = [identity for identity in ids if identity.startswith(prefix)] if prefix else []
        if len(found) == 1:
            return found[0]
        if found:
            some = ", ".join(found[:4]) + (", ..." if len(found) > 4 else "")
            raise InputError(
                f"{prefix}: {len(found)} sessions of {self.name} start so ({some}); give more of the id"
            )
        raise InputError(f"{prefix}: no session of {self.name} starts so; `prefixguard sessions` lists them")

    def exchanges(self, session: str | None = None) -> Iterator[Exchange]:
        """The exchanges of a session, or all of them, in order of time, as they were when the reading began.

        `extra` holds each one's "id" and, where they are known, "session",
        "agent" and "account"; "recording" where it is not full. Raises
        StoreDamagedError when a body is not the one that was written.
        """
        with self._database.reading() as connection:
            yield from Reader(connection).exchanges(*_where(session))

    def capture(self, exchange_id: str) -> Capture:
        """An exchange in its raw form: a stream's bytes as they came.

        Content encodings have been taken off the bodies; the header that named
        one is then called `x-original-content-encoding`.
        """
        with self._database.reading() as connection:
            for capture in Reader(connection).captures(schema.exchange.c.id == exchange_id):
                return capture
        raise StoreError(f"{self.name}: no exchange {exchange_id} in this record")

    def turns(self, session: str | None = None) -> Iterator[tuple[str, bytes]]:
        """(exchange id, what was found about it) in order of time, for those where it was kept."""
        columns = schema.exchange.c
        unpacker = zstandard.ZstdDecompressor()
        with self._database.reading() as connection:
            query = (
                select(columns.id, schema.turn.c.content)
                .join(schema.turn, schema.turn.c.exchange == columns.number)
                .where(*_where(session))
                .order_by(columns.started, columns.number)
            )
            for identity, content in connection.execute(query.execution_options(yield_per=256)):
                yield identity, unpacker.decompress(content)

    def search(self, text: str, most: int = 100) -> list[Hit]:
        """Where a text came into recorded requests, at most so many places, the newest first."""
        with self._database.reading() as connection:
            return find_text(connection, text, most)

    def watch(self) -> Watch:
        """What notices the exchanges that others record."""
        return Watch(self._database)

    def _find(self, connection: Connection, identity: str) -> tuple[int, str | None, Mode, str | None]:
        columns = schema.exchange.c
        query = select(columns.number, columns.session, columns.recording, columns.agent)
        row = connection.execute(query.where(columns.id == identity)).first()
        if row is None:
            raise StoreError(f"{self.name}: no exchange {identity} in this record")
        return row[0], row[1], row[2], row[3]

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        with self._lock:
            try:
                with self._database.writing() as connection:
                    self._writer.begin(connection)
                    yield connection
                    self._writer.flush(connection)
            except BaseException:
                # What the writer remembers may be numbers that were never written.
                self._writer.forget()
                raise


def _of(session: str) -> Any:
    column = schema.exchange.c.session
    return column.is_(None) if session == UNASSIGNED else column == session


def _where(session: str | None) -> tuple[Any, ...]:
    return () if session is None else (_of(session),)
