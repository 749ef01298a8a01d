"""Lowers the code cells of a Jupyter notebook to facts.

First step of the linter. The code is laid out on the rows on which it stands in
the `.ipynb` file, so that findings point into the file itself; a notebook that
is not written line by line counts its rows through the joined cells.
"""

from __future__ import annotations

import json
from typing import Any

from prefixguard.lint import facts as f
from prefixguard.lint.frontends import python


def lower(source: bytes) -> f.Module:
    """The facts of a notebook. One that is no JSON is one error at its start."""
    text = source.decode("utf-8", "replace")
    try:
        book: Any = json.loads(text)
        cells = [cell for cell in book.get("cells", []) if cell.get("cell_type") == "code"]
    except (ValueError, AttributeError, TypeError):
        return f.Module("python", [], [], [], [], [], [(1, 1, 1, 1)])
    expected = sum(len(_lines(cell)) for cell in cells)
    laid_out, placed = _in_place(text)
    if placed != expected:
        laid_out = "\n".join(_code(line) for cell in cells for line in _lines(cell))
    return python.lower(laid_out.encode())


def _lines(cell: dict[str, Any]) -> list[str]:
    source = cell.get("source", [])
    if isinstance(source, str):
        return source.splitlines()
    return [line for line in source if isinstance(line, str)]


def _in_place(text: str) -> tuple[str, int]:
    """The code on the rows of the file, and how many lines of it were found."""
    out: list[str] = []
    code = inside = False
    placed = 0
    for line in text.split("\n"):
        stripped = line.strip()
        kept = ""
        if stripped.startswith('"cell_type"'):
            code = '"code"' in stripped
        elif stripped.startswith('"source": [') and code and not stripped.endswith(("]", "],")):
            inside = True
        elif inside and stripped in {"]", "],"}:
            inside = False
        elif inside:
            try:
                value = json.loads(stripped.rstrip(","))
            except ValueError:
                value = ""
            if isinstance(value, str):
                kept = _code(value)
                placed += 1
        out.append(kept)
    return "\n".join(out), placed


def _code(line: str) -> str:
    """A line of a cell as Python; magics and shell lines are left out."""
    plain = line.rstrip("\n")
    return "" if plain.lstrip().startswith(("%", "!", "?")) else plain.replace("\n", " ")
