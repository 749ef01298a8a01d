"""Opens the database of a store: SQLite in WAL mode, or PostgreSQL.

One writer at a time, readers at any time. The database's own errors are turned
into ours here, so that nothing above needs to know which database it is.
"""

from __future__ import annotations

import os
import re
import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import (
    URL,
    Connection,
    Engine,
    create_engine,
    event,
    insert,
    inspect,
    make_url,
    select,
    update,
)
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError, SQLAlchemyError
from sqlalchemy.pool import ConnectionPoolEntry

from prefixguard.errors import MissingExtraError
from prefixguard.store import schema
from prefixguard.store.errors import (
    StoreBusyError,
    StoreDamagedError,
    StoreError,
    StoreFullError,
    StoreVersionError,
)
from prefixguard.store.place import place

_WRITING = "prefixguard_writing"


def store_url(target: str | Path | None) -> URL:
    """The address of a store: a path or URL; None for PREFIXGUARD_STORE or the user's data directory."""
    target = place(target)
    if isinstance(target, str) and re.match(r"[A-Za-z][\w+.-]*://", target):
        try:
            url = make_url(target)
        except (ArgumentError, ValueError) as error:
            raise StoreError(f"store: {_masked(target)} is not an address that can be read") from error
        if url.drivername in ("postgresql", "postgres"):
            url = url.set(drivername="postgresql+psycopg")
        if url.get_backend_name() not in ("sqlite", "postgresql"):
            raise StoreError(
                f"store: {url.render_as_string()} is neither a file, sqlite:// nor postgresql://"
            )
        return url
    return URL.create("sqlite", database=str(Path(target).expanduser()))


def _masked(target: str) -> str:
    return re.sub(r"(?<=://)[^/@]*@", "***@", target)


class Database:
    """A connection pool with our way of locking, and our errors."""

    def __init__(self, url: URL, create: bool, wait: float) -> None:
        self.url = url
        self.name = url.render_as_string() if url.get_backend_name() != "sqlite" else str(url.database)
        self.is_sqlite = url.get_backend_name() == "sqlite"
        self.engine = self._engine(create, wait)
        try:
            with self.errors():
                self._prepare(create)
        except BaseException:
            self.close()
            raise

    def _engine(self, create: bool, wait: float) -> Engine:
        if self.is_sqlite:
            path = Path(str(self.url.database))
            if not path.exists():
                if not create:
                    raise StoreError(
                        f"{path}: there is no record yet; make one with `prefixguard run -- COMMAND`"
                    )
                self._create_file(path)
            engine = create_engine(self.url, connect_args={"timeout": wait, "check_same_thread": False})
            event.listen(engine, "connect", _set_up_sqlite)
            event.listen(engine, "begin", _begin_sqlite)
            return engine
        milliseconds = int(wait * 1000)
        try:
            return create_engine(
                self.url,
                isolation_level="REPEATABLE READ",
                connect_args={
                    "options": f"-c lock_timeout={milliseconds}",
                    "connect_timeout": max(2, int(wait)),
                },
            )
        except (ModuleNotFoundError, NoSuchModuleError) as error:
            raise MissingExtraError("--store postgresql://...", "postgres") from error

    def _create_file(self, path: Path) -> None:
        # Prompts are private: the file is made before SQLite would make it, for its owner only.
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
        except OSError as error:
            raise StoreError(f"{path}: cannot make the record here: {error.strerror or error}") from error

    def _prepare(self, create: bool) -> None:
        """Makes the tables, or checks that they are ours and of a version that we know."""
        with self.engine.connect() as connection:
            found = self._version(connection)
        if found == schema.VERSION:
            return
        if found is not None and found > schema.VERSION:
            raise StoreVersionError(
                f"{self.name}: written by a newer PrefixGuard (schema {found}, this one knows "
                f"{schema.VERSION}): upgrade PrefixGuard, or use another --store"
            )
        if found is None and not create:
            raise StoreError(f"{self.name}: this database holds no record")
        with self.writing() as connection:
            found = self._version(connection)
            if found is None:
                schema.metadata.create_all(connection)
                rows = {"schema": str(schema.VERSION), "deletions": "0", "salt": secrets.token_hex(16)}
                connection.execute(insert(schema.meta), [{"name": n, "value": v} for n, v in rows.items()])
                return
            while found < schema.VERSION:
                schema.MIGRATIONS[found](connection)
                found += 1
            connection.execute(
                update(schema.meta).where(schema.meta.c.name == "schema").values(value=str(found))
            )

    def _version(self, connection: Connection) -> int | None:
        tables = set(inspect(connection).get_table_names())
        if schema.meta.name not in tables:
            if tables & set(schema.metadata.tables):
                raise StoreVersionError(
                    f"{self.name}: this database belongs to another program; use another --store"
                )
            return None
        columns = {column["name"] for column in inspect(connection).get_columns(schema.meta.name)}
        value = None
        if columns == {"name", "value"}:
            query = select(schema.meta.c.value).where(schema.meta.c.name == "schema")
            value = connection.execute(query).scalar_one_or_none()
        if value is None or not value.isdecimal():
            raise StoreVersionError(
                f"{self.name}: this database belongs to another program; use another --store"
            )
        return int(value)

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection that sees one state of the store, whatever is written meanwhile."""
        with self.errors(), self.engine.connect() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction that holds the write lock. Raises StoreBusyError when it is not to be had in time."""
        # In PostgreSQL what is read behind the lock must be the newest, as it is in SQLite.
        options = {_WRITING: True} if self.is_sqlite else {"isolation_level": "READ COMMITTED"}
        with self.errors(), self.engine.connect() as plain:
            connection = plain.execution_options(**options)
            with connection.begin():
                if not self.is_sqlite:
                    connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_LOCK})")
                yield connection

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Turns the database's errors into ours."""
        try:
            yield
        except DBAPIError as error:
            raise self._ours(error) from error
        except SQLAlchemyError as error:
            raise StoreError(f"{self.name}: {_one_line(error)}") from error

    def _ours(self, error: DBAPIError) -> StoreError:
        cause: Any = error.orig
        text = _one_line(cause)
        code = getattr(cause, "sqlite_errorname", None) or getattr(cause, "sqlstate", None) or ""
        if code.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")) or code in ("55P03", "40001", "40P01"):
            return StoreBusyError(f"{self.name}: another program is writing to the record: {text}")
        if code.startswith("SQLITE_FULL") or code == "53100":
            return StoreFullError(f"{self.name}: no room left: {text}")
        if code.startswith("SQLITE_NOTADB"):
            return StoreVersionError(f"{self.name}: this file is not a record; use another --store")
        if code.startswith("SQLITE_CORRUPT"):
            return StoreDamagedError(f"{self.name}: the record is damaged: {text}")
        return StoreError(f"{self.name}: {text}")

    def shrink(self) -> None:
        """Gives freed room back and empties the write-ahead log, as far as nobody is using them."""
        if not self.is_sqlite:
            return
        with self.errors(), self.engine.connect() as connection:
            raw = connection.connection.driver_connection
            assert raw is not None
            (wait,) = raw.execute("PRAGMA busy_timeout").fetchone()
            raw.execute("PRAGMA busy_timeout=100")
            try:
                raw.execute("PRAGMA incremental_vacuum").fetchall()
                raw.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            except sqlite3.OperationalError:
                # Somebody reads or writes: SQLite reuses the room later.
                pass
            finally:
                raw.execute(f"PRAGMA busy_timeout={int(wait)}")

    def close(self) -> None:
        """Closes all connections."""
        self.engine.dispose()


_LOCK = 0x50474152
"""Number of our advisory lock in PostgreSQL."""


def _one_line(error: object) -> str:
    return " ".join(str(error).split())


def _set_up_sqlite(connection: Any, _entry: ConnectionPoolEntry) -> None:
    # Transactions are begun by us (below); sqlite3 would begin them later than we need.
    connection.isolation_level = None
    # Freed pages can be given back, and what is deleted is overwritten.
    connection.execute("PRAGMA auto_vacuum=INCREMENTAL")
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=NORMAL")
    connection.execute("PRAGMA secure_delete=ON")
    connection.execute("PRAGMA journal_size_limit=8388608")


def _begin_sqlite(connection: Connection) -> None:
    connection.exec_driver_sql(
        "BEGIN IMMEDIATE" if connection.get_execution_options().get(_WRITING) else "BEGIN"
    )
