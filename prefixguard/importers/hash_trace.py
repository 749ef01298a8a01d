"""Traces of hashed blocks in the format of Mooncake: JSON Lines with a hash per 512 tokens of a prompt.

`{"timestamp": ms, "input_length": n, "output_length": n, "hash_ids": [...]}`;
each id stands for its block and everything before it. Our own exports add what
the format has no place for: the size of a block, and the blocks of the reply.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from prefixguard.errors import InputError

BLOCK = 512


class Row(msgspec.Struct, frozen=True):
    """One request of a trace. timestamp: milliseconds from its start.

    block_size: tokens that an id stands for. reply_length: tokens of the reply
    that are known; output_hash_ids: their blocks behind those of the prompt.
    """

    timestamp: float
    input_length: int
    output_length: int
    hash_ids: tuple[int | str, ...]
    block_size: int = BLOCK
    reply_length: int = 0
    output_hash_ids: tuple[int | str, ...] = ()


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
    if len({row.block_size for row in rows}) > 1:
        raise InputError(f"{path}: its rows have blocks of different sizes")
    return sorted(rows, key=lambda row: row.timestamp)


def _checked(row: Row, path: Path, number: int) -> Row:
    if row.block_size < 1 or row.reply_length < 0:
        raise InputError(f"{path}:{number}: a block has one token or more, a reply none or more")
    for tokens, ids in (
        (row.input_length, row.hash_ids),
        (row.input_length + row.reply_length, row.hash_ids + row.output_hash_ids),
    ):
        need = -(-tokens // row.block_size)
        if row.input_length < 1 or row.output_length < 0 or len(ids) != need:
            raise InputError(
                f"{path}:{number}: {tokens} tokens need {need} hashes of {row.block_size}, not {len(ids)}"
            )
    return row
