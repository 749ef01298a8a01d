"""Deletes a session and every slice that only it used; what builds on it is written anew first."""

from __future__ import annotations

from sqlalchemy import Connection, delete, select, update

from prefixguard.store import headers, schema
from prefixguard.store.reading import Reader
from prefixguard.store.recipes import Part, pack_numbers, slices_named, steps, unpack_numbers

_AT_ONCE = 900


def delete_exchanges(connection: Connection, numbers: list[int]) -> None:
    """Deletes the exchanges with these numbers. Needs the write lock."""
    gone = set(numbers)
    reader = Reader(connection)
    _detach_recipes(connection, reader, gone)
    _detach_headers(connection, reader, gone)
    candidates = _slices_of(connection, gone)
    for some in _batches(sorted(gone)):
        for table in (schema.recipe, schema.rendered, schema.turn):
            connection.execute(delete(table).where(table.c.exchange.in_(some)))
        connection.execute(delete(schema.exchange).where(schema.exchange.c.number.in_(some)))
    for some in _batches(sorted(candidates - _used(connection, candidates))):
        connection.execute(delete(schema.slice_).where(schema.slice_.c.number.in_(some)))
    count = connection.execute(
        select(schema.meta.c.value).where(schema.meta.c.name == "deletions")
    ).scalar_one()
    # Tells every writer that slice numbers it remembers may be gone.
    connection.execute(
        update(schema.meta).where(schema.meta.c.name == "deletions").values(value=str(int(count) + 1))
    )


def _detach_recipes(connection: Connection, reader: Reader, gone: set[int]) -> None:
    columns = schema.recipe.c
    query = select(columns.exchange, columns.part).where(columns.base.is_not(None))
    for some in _batches(sorted(gone)):
        for exchange, part in connection.execute(query.where(columns.base.in_(some))).all():
            if exchange in gone:
                continue
            whole = pack_numbers(steps(reader.numbers(exchange, Part(part))))
            connection.execute(
                update(schema.recipe)
                .where(columns.exchange == exchange, columns.part == part)
                .values(base=None, steps=whole)
            )


def _detach_headers(connection: Connection, reader: Reader, gone: set[int]) -> None:
    columns = schema.exchange.c
    for some in _batches(sorted(gone)):
        rows = (
            connection.execute(select(columns.number).where(columns.headers_base.in_(some))).scalars().all()
        )
        for number in rows:
            if number in gone:
                continue
            document = reader.header_document(number)
            connection.execute(
                update(schema.exchange)
                .where(columns.number == number)
                .values(headers=headers.pack(document), headers_base=None)
            )


def _slices_of(connection: Connection, gone: set[int]) -> set[int]:
    """Slices that these exchanges brought in or list themselves."""
    found: set[int] = set()
    for some in _batches(sorted(gone)):
        recipes = select(schema.recipe.c.steps).where(schema.recipe.c.exchange.in_(some))
        for packed in connection.execute(recipes).scalars():
            found.update(slices_named(unpack_numbers(packed)))
        responses = select(schema.exchange.c.response_slice).where(schema.exchange.c.number.in_(some))
        found.update(number for number in connection.execute(responses).scalars() if number is not None)
    return found


def _used(connection: Connection, candidates: set[int]) -> set[int]:
    """Which of the candidates some remaining exchange needs.

    Every slice of a body is named by its own recipe or by one that it builds
    on, so that reading all recipes once is enough.
    """
    used: set[int] = set()
    lists = select(schema.recipe.c.steps).execution_options(yield_per=1000)
    for packed in connection.execute(lists).scalars():
        used.update(candidates & slices_named(unpack_numbers(packed)))
    for some in _batches(sorted(candidates)):
        query = select(schema.exchange.c.response_slice).where(schema.exchange.c.response_slice.in_(some))
        used.update(connection.execute(query).scalars())
    return used


def _batches(values: list[int]) -> list[list[int]]:
    return [values[start : start + _AT_ONCE] for start in range(0, len(values), _AT_ONCE)]
