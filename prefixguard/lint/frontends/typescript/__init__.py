"""Lowers TypeScript and JavaScript source to facts.

First step of the linter. Types are read only where they name a class; JSX is
kept for the values in it. `this` is the name of a method's own object.
"""

from __future__ import annotations

from functools import cache

import tree_sitter_typescript
from tree_sitter import Language, Parser

from prefixguard.lint import facts as f
from prefixguard.lint.frontends.tree import comments, errors
from prefixguard.lint.frontends.typescript.statements import Statements


@cache
def _parser(tsx: bool) -> Parser:
    grammar = tree_sitter_typescript.language_tsx() if tsx else tree_sitter_typescript.language_typescript()
    return Parser(Language(grammar))


def lower(source: bytes, *, tsx: bool = False) -> f.Module:
    """The facts of a TypeScript or JavaScript file. `tsx`: with JSX, and for plain JavaScript."""
    root = _parser(tsx).parse(source).root_node
    lowering = Statements()
    body = lowering.block(root)
    return f.Module(
        language="typescript",
        body=body,
        functions=lowering.functions,
        classes=lowering.classes,
        imports=lowering.imports,
        comments=comments(source, b"//"),
        errors=errors(root),
        exports=lowering.exports,
        rows=root.end_point[0] + 1,
    )
