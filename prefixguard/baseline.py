"""The baseline: faults that a project knows and has not mended yet, as a file that lies in its repository.

The gate accepts what the file names as often as it names it. A fault is told
by its code, its API and its place in the body, so that a new recording of the
same fault is known, and one more of it is not.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import msgspec

from prefixguard.errors import InputError
from prefixguard.gate import Known

SCHEMA = "prefixguard-baseline/1"


class _Entry(msgspec.Struct, forbid_unknown_fields=True):
    code: str
    api: str
    place: str
    count: int


class _File(msgspec.Struct):
    schema: str
    faults: list[_Entry]


def read_baseline(path: Path) -> Counter[Known]:
    """What the file accepts. Raises InputError naming the file and the field."""
    try:
        file = msgspec.json.decode(path.read_bytes(), type=_File)
    except OSError as error:
        raise InputError(
            f"{path}: {error.strerror or error}; --write-baseline {path} makes a baseline"
        ) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: not a baseline: {error}") from error
    if file.schema != SCHEMA:
        raise InputError(f"{path}: not a baseline: its schema is {file.schema!r}, expected {SCHEMA!r}")
    known: Counter[Known] = Counter()
    for entry in file.faults:
        known[Known(entry.code, entry.api, entry.place)] += entry.count
    return known


def write_baseline(path: Path, known: Counter[Known]) -> None:
    """Writes the file, sorted, so that a change of it reads well. Raises InputError."""
    faults = [_Entry(key.code, key.api, key.place, count) for key, count in sorted(known.items())]
    content = msgspec.json.format(msgspec.json.encode(_File(SCHEMA, faults)), indent=2) + b"\n"
    try:
        path.write_bytes(content)
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror or error}") from error
