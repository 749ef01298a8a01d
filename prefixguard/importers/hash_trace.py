"""Traces of hashed blocks in the format of Mooncake: JSON Lines with a hash per 512 tokens of a prompt.

`{"timestamp": ms, "input_length": n, "output_length": n, "hash_ids": [...]}`;
each id stands for its block and everything before it.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from prefixguard.errors import InputError

BLOCK = 512


class Row(msgspec.Struct, frozen=True):
    """One request of a trace. timestamp: milliseconds from its start."""

    timestamp: float
    input_length: int
    output_length: int
    hash_ids: tuple[int | str, ...]


def is_hash_trace(path: Path) -> bool:
    """Whether a file looks like one: its first line has hash ids."""
    try:
        with path.open("rb") as file:
            return b'"hash_ids"' in file.readline(1 << 20)
    except OSError:
        return False


def read_trace(path: Path) -> list[Row]:
    """All rows, in the order of their times. Raises InputError naming the line that is wrong."""
    rows = []
    decoder = msgspec.json.Decoder(Row)
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    rows.append(_checked(decoder.decode(line), path, number))
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path}:{len(rows) + 1}: not a row of a hash trace: {error}") from error
    if not rows:
        raise InputError(f"{path}: is empty")
    return sorted(rows, key=lambda row: row.timestamp)


def _checked(row: Row, path: Path, number: int) -> Row:
    need = -(-row.input_length // BLOCK)
    if row.input_length < 1 or row.output_length < 0 or len(row.hash_ids) != need:
        raise InputError(
            f"{path}:{number}: {row.input_length} tokens need {need} hashes of {BLOCK}, "
            f"not {len(row.hash_ids)}"
        )
    return row
