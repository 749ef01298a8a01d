"""The tables of a store, the same in SQLite and PostgreSQL, and their version.

A body is a list of slices; each slice is kept once. `recipe` holds the list,
as a difference to the list of an earlier exchange (`base`).
"""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Connection,
    Float,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    SmallInteger,
    String,
    Table,
)

VERSION = 1
MIGRATIONS: dict[int, Callable[[Connection], None]] = {}
"""By the version that a step starts from: what turns it into the next one."""

# SQLite's own row number must be INTEGER, and then costs no index of its own.
_Number = BigInteger().with_variant(Integer, "sqlite")

metadata = MetaData()

meta = Table(
    "meta",
    metadata,
    # schema: the version. deletions: counts deletions, after which numbers of
    # slices that a writer remembers are void. salt: of the digests, in hex.
    Column("name", String, primary_key=True),
    Column("value", String, nullable=False),
)

session = Table(
    "session",
    metadata,
    Column("id", String, primary_key=True),
    Column("key_kind", String, nullable=False),
    Column("key_name", String, nullable=False),
    Column("key_value", String, nullable=False),
    Column("agent", String),
)

exchange = Table(
    "exchange",
    metadata,
    Column("number", _Number, primary_key=True, autoincrement=False),
    Column("id", String, nullable=False, unique=True),
    Column("session", String, index=True),
    Column("started", Float, nullable=False),
    Column("method", String, nullable=False),
    Column("path", String, nullable=False),
    Column("upstream", String, nullable=False),
    Column("status", SmallInteger),
    Column("transport", String, nullable=False),
    Column("aborted", Boolean, nullable=False),
    Column("account", String),
    Column("agent", String),
    Column("first_token_ms", Float),
    Column("total_ms", Float),
    Column("recording", String, nullable=False),
    # The content encodings that were taken off, where they were.
    Column("request_encoding", String),
    Column("response_encoding", String),
    Column("response_type", String, nullable=False),
    # Both sides' headers as JSON, compressed with those of the exchange
    # `headers_base` as the dictionary.
    Column("headers", LargeBinary, nullable=False),
    Column("headers_base", BigInteger),
    Column("response_slice", BigInteger),
    Index("exchange_time", "started", "number"),
)

slice_ = Table(
    "slice",
    metadata,
    Column("number", _Number, primary_key=True, autoincrement=False),
    Column("digest", LargeBinary, nullable=False, unique=True),
    Column("packed", Boolean, nullable=False),
    Column("content", LargeBinary, nullable=False),
)

recipe = Table(
    "recipe",
    metadata,
    Column("exchange", BigInteger, primary_key=True, autoincrement=False),
    # request, prompt (token ids) or reply (token ids): see `recipes.Part`.
    Column("part", SmallInteger, primary_key=True, autoincrement=False),
    Column("base", BigInteger, index=True),
    # See `recipes.Recipe`.
    Column("steps", LargeBinary, nullable=False),
    Column("digest", LargeBinary, nullable=False),
    sqlite_with_rowid=False,
)

rendered = Table(
    "rendered",
    metadata,
    Column("exchange", _Number, primary_key=True, autoincrement=False),
    Column("engine", String, nullable=False),
)

turn = Table(
    "turn",
    metadata,
    Column("exchange", _Number, primary_key=True, autoincrement=False),
    Column("content", LargeBinary, nullable=False),
)
