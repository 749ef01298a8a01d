"""A glance at a record's session ids, for the completion of names on a command line.

Read with sqlite3 alone: between two key strokes there is no time to load what
the store is made with. Whatever is wrong with the record, there are no names.
"""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

from prefixguard.store.place import place

_MOST = 200
_PATIENCE = 0.2  # seconds to wait for a record that is being written


def session_ids(target: str | Path | None = None) -> list[tuple[str, str]]:
    """(id, agent or "") of the sessions that began last, the newest first; none of a record that is no file.

    target: as for `Store.open`.
    """
    name = str(place(target)).removeprefix("sqlite:///")
    path = Path(name).expanduser()
    with contextlib.suppress(sqlite3.Error, OSError, ValueError):
        if not path.is_file():
            return []
        address = f"{path.absolute().as_uri()}?mode=ro"
        with contextlib.closing(sqlite3.connect(address, uri=True, timeout=_PATIENCE)) as connection:
            rows = connection.execute(
                "SELECT id, agent FROM session ORDER BY rowid DESC LIMIT ?", (_MOST,)
            ).fetchall()
            return [(str(identity), str(agent or "")) for identity, agent in rows]
    return []
