"""What goes wrong with a database is said in one line, and nothing is lost by it."""

from __future__ import annotations

import os
import sqlite3
import stat
import sys
from typing import TYPE_CHECKING

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from prefixguard.errors import InputError, MissingExtraError
from prefixguard.store import (
    Store,
    StoreBusyError,
    StoreDamagedError,
    StoreError,
    StoreFullError,
    StoreVersionError,
    schema,
)
from prefixguard.store.database import Database, store_url

from .captures import KEY, capture

if TYPE_CHECKING:
    from pathlib import Path


def set_version(target: str, value: str) -> None:
    database = Database(store_url(target), False, 1.0)
    with database.writing() as connection:
        connection.execute(sa.update(schema.meta).where(schema.meta.c.name == "schema").values(value=value))
    database.close()


def test_a_newer_schema_is_refused_and_left_alone(target: str) -> None:
    Store.open(target).close()
    set_version(target, "99")
    with pytest.raises(
        StoreVersionError, match=r"newer PrefixGuard \(schema 99, this one knows 1\): upgrade"
    ):
        Store.open(target)


def test_an_older_schema_is_brought_up_to_date(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with Store.open(target) as store:
        one = capture({"n": 1})
        store.append(one, KEY)

    def step(connection: Connection) -> None:
        connection.execute(sa.text("CREATE TABLE later (n INTEGER)"))

    monkeypatch.setattr(schema, "VERSION", 2)
    monkeypatch.setitem(schema.MIGRATIONS, 1, step)
    with Store.open(target) as store:
        assert store.capture(one.id) == one
        with store._database.reading() as connection:
            assert connection.execute(sa.text("SELECT count(*) FROM later")).scalar() == 0
    Store.open(target).close()
    monkeypatch.setattr(schema, "VERSION", 1)
    with pytest.raises(StoreVersionError, match="schema 2"):
        Store.open(target)


def test_a_migration_that_fails_changes_nothing(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    Store.open(target).close()

    def step(connection: Connection) -> None:
        connection.execute(sa.text("CREATE TABLE later (n INTEGER)"))
        connection.execute(sa.text("SELECT nonsense FROM nowhere"))

    monkeypatch.setattr(schema, "VERSION", 2)
    monkeypatch.setitem(schema.MIGRATIONS, 1, step)
    with pytest.raises(StoreError, match="nowhere"):
        Store.open(target)
    monkeypatch.setattr(schema, "VERSION", 1)
    with Store.open(target) as store, store._database.reading() as connection:
        assert "later" not in sa.inspect(connection).get_table_names()


def test_reading_does_not_make_a_record(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="there is no record yet"):
        Store.open(tmp_path / "none.sqlite", create=False)
    assert list(tmp_path.iterdir()) == []


def test_an_empty_database_is_no_record_for_reading(target: str, postgres: str) -> None:
    if target.startswith("postgresql"):
        with pytest.raises(StoreError, match="holds no record"):
            Store.open(target, create=False)


@pytest.mark.parametrize("table", ["meta (name TEXT, value TEXT)", "meta (x TEXT)", "exchange (x TEXT)"])
def test_another_programs_database_is_refused(tmp_path: Path, table: str) -> None:
    path = tmp_path / "other.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute(f"CREATE TABLE {table}")
    with pytest.raises(StoreVersionError, match="belongs to another program"):
        Store.open(path)


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "text.sqlite"
    path.write_text("This is no database, and it is long enough to look at." * 100)
    with pytest.raises(StoreVersionError, match="is not a record"):
        Store.open(path)


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "record.sqlite"
    with Store.open(path) as store:
        for n in range(200):
            store.append(capture({"n": n, "text": os.urandom(2000).hex()}), KEY)
    content = bytearray(path.read_bytes())
    content[8192:] = os.urandom(len(content) - 8192)
    path.write_bytes(content)
    with pytest.raises(StoreDamagedError, match="damaged"), Store.open(path) as store:
        list(store.exchanges())


def test_places_where_no_record_can_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot make the record here"):
        Store.open(tmp_path / "file" / "record.sqlite")
    with pytest.raises(StoreError, match="unable to open"):
        Store.open(tmp_path)
    with pytest.raises(StoreError, match=r"mysql://me:\*\*\*@host/db is neither a file"):
        Store.open("mysql://me:secret@host/db")
    with pytest.raises(StoreError, match="is not an address") as caught:
        Store.open("postgresql://me:hunter2@host:port/db")
    assert "hunter2" not in str(caught.value)


def test_a_server_that_is_not_there(tmp_path: Path) -> None:
    pytest.importorskip("psycopg")
    with pytest.raises(StoreError) as caught:
        Store.open(f"postgresql://me:hunter2@/db?host={tmp_path}", wait=0.1)
    assert "hunter2" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_without_the_driver_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingExtraError, match="postgres"):
        Store.open("postgresql://me@/db")


def test_the_usual_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PREFIXGUARD_STORE", str(tmp_path / "a" / "b.sqlite"))
    with Store.open() as store:
        assert store.name == str(tmp_path / "a" / "b.sqlite")
    monkeypatch.delenv("PREFIXGUARD_STORE")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("HOME", str(tmp_path))
    assert str(store_url(None).database).startswith(str(tmp_path))
    assert store_url(f"sqlite:///{tmp_path}/x.sqlite").database == f"{tmp_path}/x.sqlite"
    assert store_url("postgres://h/db").drivername == "postgresql+psycopg"


def test_a_record_is_for_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "record.sqlite"
    with Store.open(path) as store:
        store.append(capture({}), KEY)
        for file in tmp_path.iterdir():
            assert stat.S_IMODE(file.stat().st_mode) == 0o600, file


def test_a_held_lock_is_waited_for_and_then_reported(target: str) -> None:
    with Store.open(target, wait=0.3) as store, Store.open(target, wait=0.3) as other:
        one = capture({"n": 1})
        with other._database.writing(), pytest.raises(StoreBusyError, match="another program is writing"):
            store.append(one, KEY)
        store.append(one, KEY)
        assert store.capture(one.id) == one


def test_a_reader_does_not_hold_the_writer_up(target: str) -> None:
    with Store.open(target, wait=0.3) as store:
        store.append_many([(capture({"n": n}), KEY) for n in range(3)])
        reading = store.exchanges()
        next(reading)
        store.append(capture({"n": 3}), KEY)
        assert len(list(reading)) == 2
        assert len(list(store.exchanges())) == 4


def test_a_full_disk_is_reported_and_what_was_recorded_stays(tmp_path: Path) -> None:
    with Store.open(tmp_path / "record.sqlite") as store:
        first = capture({"n": 1})
        store.append(first, KEY)
        # SQLite's own way to say that there are no more pages.
        with store._database.engine.connect() as connection:
            raw = connection.connection.driver_connection
            assert raw is not None
            (pages,) = raw.execute("PRAGMA page_count").fetchone()
            raw.execute(f"PRAGMA max_page_count={pages}")
        with pytest.raises(StoreFullError, match="no room left"):
            store.append(capture({"n": 2, "text": os.urandom(100_000).hex()}), KEY)
        with store._database.engine.connect() as connection:
            raw = connection.connection.driver_connection
            assert raw is not None
            raw.execute("PRAGMA max_page_count=1000000")
        last = capture({"n": 3, "text": "x" * 5000})
        store.append(last, KEY)
        assert [store.capture(one.id) for one in (first, last)] == [first, last]
        assert len(list(store.exchanges())) == 2


def test_a_bad_redaction_pattern_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"redaction pattern '\(': "):
        Store.open(tmp_path / "record.sqlite", mode="redacted", patterns=["("])
