"""Literals of TypeScript and JavaScript source: escapes in strings, numbers.

First step of the linter.
"""

from __future__ import annotations

import re

from prefixguard.lint.frontends.lowering import number
from prefixguard.lint.frontends.tree import character

_ESCAPE = re.compile(r"\\(u\{[0-9a-fA-F]+\}|u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|\r?\n|.)", re.DOTALL)
_SIMPLE = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "0": "\0", "\n": "", "\r\n": ""}


def unescape(raw: str) -> str:
    """A string as it is once read."""

    def one(match: re.Match[str]) -> str:
        code = match[1]
        if code in _SIMPLE:
            return _SIMPLE[code]
        if code[0] in "ux" and len(code) > 1:
            number = int(code[1:].strip("{}"), 16)
            return character(number)
        return code

    return _ESCAPE.sub(one, raw) if "\\" in raw else raw


def number_of(raw: str) -> int | float | None:
    """A number as it is written; None for one that cannot be read."""
    plain = raw.replace("_", "").rstrip("n")
    try:
        return number(int(plain, 0))
    except ValueError:
        try:
            return number(float(plain))
        except ValueError:
            return None
