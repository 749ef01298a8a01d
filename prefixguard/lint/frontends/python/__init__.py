"""Lowers Python source to facts.

First step of the linter. Only what moves values is kept; an unknown construct
becomes an expression of its parts, so that nothing that flows is lost.
"""

from __future__ import annotations

from functools import cache

import tree_sitter_python
from tree_sitter import Language, Parser

from prefixguard.lint import facts as f
from prefixguard.lint.frontends.python.statements import Statements
from prefixguard.lint.frontends.tree import comments, errors


@cache
def _parser() -> Parser:
    return Parser(Language(tree_sitter_python.language()))


def lower(source: bytes) -> f.Module:
    """The facts of a Python file."""
    root = _parser().parse(source).root_node
    lowering = Statements()
    body = lowering.block(root)
    return f.Module(
        language="python",
        body=body,
        functions=lowering.functions,
        classes=lowering.classes,
        imports=lowering.imports,
        comments=comments(source, b"#"),
        errors=errors(root),
        rows=root.end_point[0] + 1,
    )
