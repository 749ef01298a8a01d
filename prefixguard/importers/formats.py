"""Which format a file is in, told by its content: the signs lie in `rules/importers/`.

First stop of every file that is read. The signs are the names of members that
a record of the format has; a file is never recognised by its name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from prefixguard.errors import InputError, RuleError
from prefixguard.rulebook import Dated, read_tables, rules_folder

if TYPE_CHECKING:
    from io import BufferedIOBase

HEAD = 256 * 1024
"""Bytes at the start of a file that are looked at. A first record may hold a whole prompt."""
_DEPTH = 3

_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*+"(\s*+:)?|[{}\[\]]|"', re.DOTALL)


class FormatRule(Dated, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`rules/importers/NAME.toml`: one format that files are read from.

    title: what people call it. signs: sets of dotted member names; a record that has all
    of a set is of this format. magic: in place of signs, a pattern that the
    file's first bytes match. lost: what the format never keeps of a request.
    names: by what we call a thing, the names that the format has for it, the
    newest first.
    """

    name: str
    title: str
    signs: tuple[tuple[str, ...], ...] = ()
    magic: str = ""
    lost: tuple[str, ...] = ()
    names: Mapping[str, tuple[str, ...]] = {}
    notes: str = ""


def read_formats(folder: Path | None = None) -> dict[str, FormatRule]:
    """The formats of a rules folder by name, in the order of the files. Raises RuleError."""
    found = {}
    for path, rule in read_tables((folder or rules_folder()) / "importers", FormatRule):
        if path.stem != rule.name:
            raise RuleError(f"{path}: holds format {rule.name}, so it must be named {rule.name}.toml")
        if bool(rule.signs) == bool(rule.magic):
            raise RuleError(f"{path}: a format is known by signs or by magic, one of them")
        found[rule.name] = rule
    return found


@cache
def packaged_formats() -> Mapping[str, FormatRule]:
    """The formats that came with the program."""
    return read_formats()


def named_format(name: str) -> FormatRule:
    """The format of that name. Raises InputError."""
    formats = packaged_formats()
    if name not in formats:
        raise InputError(f"--from {name}: no such format; have {', '.join(formats)}")
    return formats[name]


def recognise(stream: BufferedIOBase) -> FormatRule | None:
    """The format of what a stream holds, or None; reads up to `HEAD` bytes of it."""
    head = stream.read(HEAD)
    for rule in packaged_formats().values():
        if rule.magic and re.match(rule.magic.encode(), head):
            return rule
    for keys in records_of(head):
        for rule in packaged_formats().values():
            if any(keys.issuperset(sign) for sign in rule.signs):
                return rule
    return None


def records_of(head: bytes) -> Iterator[frozenset[str]]:
    """For each JSON object that begins in `head`: the dotted names of its members, lists looked through.

    The last object may be cut off; what is there of it counts.
    """
    found: set[str] = set()
    path: list[str] = []
    open_: list[bool] = []  # for each bracket that is open: whether it is an object
    key = ""
    objects = 0
    for match in _TOKEN.finditer(head):
        token = match[0]
        if token == b"{":
            objects += 1
            open_.append(True)
            path.append(key)
        elif token == b"[":
            open_.append(False)
        elif token in (b"}", b"]"):
            if not open_:
                return
            if open_.pop():
                objects -= 1
                key = path.pop()
                if not objects:
                    yield frozenset(found)
                    found, key = set(), ""
        elif token == b'"':
            break  # a string that was cut off: what follows is no structure
        elif match[1] is not None and objects <= _DEPTH:
            key = token[1 : token.rindex(b'"')].decode("utf-8", "replace")
            found.add(".".join([*(name for name in path if name), key]))
    if found:
        yield frozenset(found)
