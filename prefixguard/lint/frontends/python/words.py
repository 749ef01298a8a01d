"""Literals of Python source: escapes in strings, numbers.

First step of the linter.
"""

from __future__ import annotations

import ast
import re

from prefixguard.lint.frontends.lowering import number
from prefixguard.lint.frontends.tree import character

_ESCAPE = re.compile(r"\\(\n|[\\'\"abfnrtv]|[0-7]{1,3}|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})")
_SIMPLE = {"\\": "\\", "'": "'", '"': '"', "n": "\n", "t": "\t", "r": "\r", "\n": "", "a": "\a", "b": "\b"}


def unescape(raw: str) -> str:
    """A string as it is once read."""

    def one(match: re.Match[str]) -> str:
        code = match[1]
        if code in _SIMPLE:
            return _SIMPLE[code]
        if code[0] in "xuU":
            number = int(code[1:], 16)
            return character(number)
        return chr(int(code, 8)) if code[0].isdigit() else match[0]

    return _ESCAPE.sub(one, raw) if "\\" in raw else raw


def number_of(raw: str) -> int | float | None:
    """A number as it is written; None for one that is no real number."""
    try:
        return number(ast.literal_eval(raw))
    except (ValueError, SyntaxError):
        return None
