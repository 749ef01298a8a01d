"""Finds a text in recorded requests: each slice is looked at once, however many turns it stands in.

Nothing is indexed: a store that is some megabytes small is read through in a
moment. A text is found where it came into a session, not in every turn that
carried it on.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

import zstandard
from sqlalchemy import Connection, select

from prefixguard.store import schema
from prefixguard.store.names import UNASSIGNED
from prefixguard.store.recipes import Part, slices_named, unpack_numbers

_AROUND = 90
"""Characters of an excerpt on each side of what was looked for."""
_ESCAPE = re.compile(r'\\(u[0-9a-fA-F]{4}|["\\/bfnrt])')
_MOST_SLICES = 5_000


@dataclass(frozen=True, slots=True)
class Hit:
    """index: the exchange's place in its session, in order of time. excerpt: what stands around the text."""

    session: str
    index: int
    excerpt: str


def find_text(connection: Connection, text: str, most: int) -> list[Hit]:
    """Where a text came in, at most so many places, the newest exchanges first.

    Upper and lower case of ASCII letters are the same.
    """
    needles = spellings(text)
    found = _slices(connection, needles)
    if not found:
        return []
    exchange, recipe = schema.exchange.c, schema.recipe.c
    query = (
        select(exchange.number, exchange.session, recipe.steps)
        .join(schema.recipe, recipe.exchange == exchange.number)
        .where(recipe.part == int(Part.REQUEST))
        .order_by(exchange.number)
    )
    places: list[tuple[int, str, str]] = []
    seen: set[tuple[str, int]] = set()
    for number, session, steps in connection.execute(query.execution_options(yield_per=256)):
        name = session or UNASSIGNED
        for slice_ in sorted(slices_named(unpack_numbers(steps)) & found.keys()):
            if (name, slice_) not in seen:
                seen.add((name, slice_))
                places.append((number, name, found[slice_]))
    places = places[::-1][:most]
    at = _places(connection, {name for _, name, _ in places})
    return [Hit(name, at[number], excerpt) for number, name, excerpt in places if number in at]


def spellings(text: str) -> tuple[bytes, ...]:
    """A text as it stands in JSON, in lower case: with and without escapes."""
    forms = {json.dumps(text, ensure_ascii=only)[1:-1] for only in (True, False)}
    return tuple(sorted(form.encode("utf-8", "surrogatepass").lower() for form in forms))


def excerpt(content: bytes, needles: tuple[bytes, ...]) -> str | None:
    """What stands around the first of the needles, as text; None where there is none."""
    plain = content.lower()
    for needle in needles:
        at = plain.find(needle)
        if at >= 0:
            window = content[max(0, at - _AROUND) : at + len(needle) + _AROUND]
            return _ESCAPE.sub(_unescaped, window.decode("utf-8", "ignore"))
    return None


def _unescaped(match: re.Match[str]) -> str:
    name = match[1]
    if name[0] == "u":
        return chr(int(name[1:], 16))
    return " " if name in "bfnrt" else name


def _slices(connection: Connection, needles: tuple[bytes, ...]) -> dict[int, str]:
    """Excerpts of the slices that hold the text, by their numbers, the newest slices first."""
    columns = schema.slice_.c
    query = select(columns.number, columns.packed, columns.content).order_by(columns.number.desc())
    unpacker = zstandard.ZstdDecompressor()
    found: dict[int, str] = {}
    for number, packed, content in connection.execute(query.execution_options(yield_per=256)):
        try:
            plain = unpacker.decompress(content) if packed else bytes(content)
        except zstandard.ZstdError:
            continue  # reading what it belongs to says that it is damaged
        around = excerpt(plain, needles)
        if around is not None:
            found[number] = around
            if len(found) >= _MOST_SLICES:
                break
    return found


def _places(connection: Connection, sessions: set[str]) -> dict[int, int]:
    """By number, the place of each exchange in its session, in order of time."""
    columns = schema.exchange.c
    places: dict[int, int] = {}
    for session in sessions:
        where = columns.session.is_(None) if session == UNASSIGNED else columns.session == session
        query = select(columns.number).where(where).order_by(columns.started, columns.number)
        places |= {number: i for i, number in enumerate(connection.execute(query).scalars())}
    return places
