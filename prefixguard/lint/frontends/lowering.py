"""What both front ends share: one walk over the tree, with a reader for each kind of node.

First step of the linter. A language gives the tables of its readers; functions
and classes are collected in flat lists as they are met.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from tree_sitter import Node

from prefixguard.lint import facts as f
from prefixguard.lint.frontends.tree import at, text

type StatementReader = Callable[[Any, Node, list[f.Stmt]], None]
type ExpressionReader = Callable[[Any, Node], f.Expr]


class Lowering(ABC):
    """Walks the tree once. A node without a reader becomes an expression of its parts."""

    statements: ClassVar[Mapping[str, StatementReader]] = {}
    expressions: ClassVar[Mapping[str, ExpressionReader]] = {}
    skipped: ClassVar[frozenset[str]] = frozenset()

    def __init__(self) -> None:
        self.functions: list[f.FunctionFacts] = []
        self.classes: list[f.ClassFacts] = []
        self.imports: list[f.Import] = []
        self.exports: dict[str, str] = {}

    def block(self, node: Node | None) -> list[f.Stmt]:
        """The statements of a block; none for no block."""
        out: list[f.Stmt] = []
        if node is not None:
            for child in node.named_children:
                self.statement(child, out)
        return out

    def statement(self, node: Node, out: list[f.Stmt]) -> None:
        """Adds what a statement says."""
        reader = self.statements.get(node.type)
        if reader is not None:
            reader(self, node, out)
        elif node.type not in self.skipped:
            out.append(f.Do(at(node), self.expr(node)))

    def expr(self, node: Node) -> f.Expr:
        """An expression."""
        reader = self.expressions.get(node.type)
        if reader is not None:
            return reader(self, node)
        children = [child for child in node.named_children if child.type != "comment"]
        if len(children) == 1:
            return self.expr(children[0])
        return f.Op(at(node), node.type, [self.expr(child) for child in children])

    def field(self, node: Node, name: str) -> f.Expr:
        """The expression in a field of a node; a literal without a value where there is none."""
        child = node.child_by_field_name(name)
        return self.expr(child) if child is not None else f.Lit(at(node), None)

    def name_of(self, node: Node, otherwise: str = "") -> str:
        """The text of a node's `name`."""
        child = node.child_by_field_name("name")
        return text(child) if child is not None else otherwise

    def imported(self, made: f.Import, out: list[f.Stmt]) -> None:
        """Notes an import where it stands, and for the module."""
        self.imports.append(made)
        out.append(made)

    @abstractmethod
    def function(self, node: Node, name: str, decorators: list[f.Expr] | None = None) -> int:
        """Adds a function; its index."""


def number(value: object) -> int | float | None:
    """A number that both languages can hold exactly, or its nearest float; None for anything else."""
    if isinstance(value, int) and abs(value) < 2**53:
        return value
    return float(value) if isinstance(value, (int, float)) else None
