"""Front ends: source text to facts, one file per language.

First step of the linter. A front end never raises on bad source: what cannot
be parsed is listed in `Module.errors`, and the rest is lowered all the same.
"""

from __future__ import annotations

from collections.abc import Callable

from prefixguard.lint.facts import Module

type Lower = Callable[[bytes], Module]

LANGUAGES: dict[str, str] = {
    ".py": "python",
    ".pyi": "python",
    ".ipynb": "notebook",
    ".ts": "typescript",
    ".mts": "typescript",
    ".cts": "typescript",
    ".tsx": "tsx",
    ".jsx": "tsx",
    ".js": "tsx",
    ".mjs": "tsx",
    ".cjs": "tsx",
}
"""File name endings and the language they are read as. JavaScript is read with the TSX grammar."""


def lower(source: bytes, language: str) -> Module:
    """The facts of one file. `language` is a value of `LANGUAGES`."""
    if language == "python":
        from prefixguard.lint.frontends import python

        return python.lower(source)
    if language == "notebook":
        from prefixguard.lint.frontends import notebook

        return notebook.lower(source)
    from prefixguard.lint.frontends import typescript

    return typescript.lower(source, tsx=language == "tsx")
