"""Expressions of Python source.

First step of the linter.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from tree_sitter import Node

from prefixguard.lint import facts as f
from prefixguard.lint.frontends.lowering import ExpressionReader, Lowering
from prefixguard.lint.frontends.python.words import number_of, unescape
from prefixguard.lint.frontends.tree import at, text


class Expressions(Lowering):
    """Readers of expressions. `yields`: for each function around, whether it yields."""

    def __init__(self) -> None:
        super().__init__()
        self.yields = [False]

    def _name(self, node: Node) -> f.Expr:
        return f.Name(at(node), text(node))

    def _attribute(self, node: Node) -> f.Expr:
        name = node.child_by_field_name("attribute")
        return f.Attr(at(node), self.field(node, "object"), text(name) if name else "")

    def _subscript(self, node: Node) -> f.Expr:
        base = self.field(node, "value")
        keys = node.children_by_field_name("subscript")
        if len(keys) == 1 and keys[0].type == "slice":
            low: f.Expr | None = None
            high: f.Expr | None = None
            colons = 0
            for child in keys[0].children:
                if child.type == ":":
                    colons += 1
                elif child.is_named and colons == 0:
                    low = self.expr(child)
                elif child.is_named and colons == 1:
                    high = self.expr(child)
            return f.Slice(at(node), base, low, high)
        key = self.expr(keys[0]) if keys else f.Lit(at(node), None)
        return f.Index(at(node), base, key)

    def _call(self, node: Node) -> f.Expr:
        func = self.field(node, "function")
        arguments = node.child_by_field_name("arguments")
        args: list[f.Arg] = []
        if arguments is not None and arguments.type == "generator_expression":
            args.append(f.Arg(self.expr(arguments)))
        elif arguments is not None:
            for child in arguments.named_children:
                if child.type == "keyword_argument":
                    args.append(f.Arg(self.field(child, "value"), self.name_of(child)))
                elif child.type == "list_splat":
                    args.append(f.Arg(self.expr(child.named_children[0]), star=1))
                elif child.type == "dictionary_splat":
                    args.append(f.Arg(self.expr(child.named_children[0]), star=2))
                elif child.type != "comment":
                    args.append(f.Arg(self.expr(child)))
        return f.Call(at(node), func, args)

    def _string(self, node: Node) -> f.Expr:
        children = node.children
        prefix = text(children[0]).lower() if children else ""
        raw = "r" in prefix
        parts: list[f.Expr] = []
        literal = ""
        start = at(node)
        for child in children[1:-1]:
            if child.type == "string_content":
                piece = text(child)
                piece = piece if raw else unescape(piece)
                if "f" in prefix:
                    piece = piece.replace("{{", "{").replace("}}", "}")
                literal += piece
            elif child.type == "interpolation":
                if literal:
                    parts.append(f.Lit(start, literal))
                    literal = ""
                parts.append(self._interpolation(child))
        if not parts:
            return f.Lit(at(node), literal)
        if literal:
            parts.append(f.Lit(start, literal))
        return f.Text(at(node), parts)

    def _interpolation(self, node: Node) -> f.Expr:
        value = self.field(node, "expression")
        for child in node.named_children:
            if child.type == "format_specifier":
                return f.Format(at(node), value, text(child)[1:])
        return value

    def _concatenated(self, node: Node) -> f.Expr:
        parts: list[f.Expr] = []
        for child in node.named_children:
            if child.type != "string":
                continue
            made = self._string(child)
            parts.extend(made.parts if isinstance(made, f.Text) else [made])
        if all(isinstance(part, f.Lit) for part in parts):
            return f.Lit(at(node), "".join(str(part.value) for part in parts if isinstance(part, f.Lit)))
        return f.Text(at(node), parts)

    def _literal(self, node: Node) -> f.Expr:
        kind = node.type
        if kind in {"integer", "float"}:
            return f.Lit(at(node), number_of(text(node)))
        return f.Lit(at(node), {"true": True, "false": False}.get(kind))

    def _operator(self, node: Node) -> f.Expr:
        operator = node.child_by_field_name("operator")
        return f.Op(
            at(node),
            text(operator) if operator else "?",
            [self.field(node, "left"), self.field(node, "right")],
        )

    def _compare(self, node: Node) -> f.Expr:
        signs = [child.type for child in node.children if not child.is_named]
        operands = [self.expr(child) for child in node.named_children if child.type != "comment"]
        return f.Op(at(node), "compare:" + " ".join(signs), operands)

    def _not(self, node: Node) -> f.Expr:
        return f.Op(at(node), "not", [self.field(node, "argument")])

    def _unary(self, node: Node) -> f.Expr:
        value = self.field(node, "argument")
        if (
            isinstance(value, f.Lit)
            and isinstance(value.value, (int, float))
            and node.children[0].type == "-"
        ):
            return f.Lit(at(node), -value.value)
        return f.Op(at(node), "u" + node.children[0].type, [value])

    def _choice(self, node: Node) -> f.Expr:
        parts = [child for child in node.named_children if child.type != "comment"]
        if len(parts) != 3:
            return f.Op(at(node), "?", [self.expr(part) for part in parts])
        then, test, other = parts
        return f.Choice(at(node), self.expr(test), self.expr(then), self.expr(other))

    def _sequence(self, node: Node) -> f.Expr:
        kind = "list" if node.type in {"list", "list_pattern"} else "set" if node.type == "set" else "tuple"
        return f.Seq(at(node), kind, [self.expr(c) for c in node.named_children if c.type != "comment"])

    def _spread(self, node: Node) -> f.Expr:
        children = node.named_children
        return f.Spread(at(node), self.expr(children[0])) if children else f.Lit(at(node), None)

    def _dictionary(self, node: Node) -> f.Expr:
        entries: list[tuple[f.Expr | None, f.Expr]] = []
        for child in node.named_children:
            if child.type == "pair":
                entries.append((self.field(child, "key"), self.field(child, "value")))
            elif child.type == "dictionary_splat" and child.named_children:
                entries.append((None, self.expr(child.named_children[0])))
        return f.Map(at(node), entries)

    def _comprehension(self, node: Node) -> f.Expr:
        kind = node.type.split("_", maxsplit=1)[0]
        kind = {"dictionary": "dict"}.get(kind, kind)
        clauses: list[f.Clause] = []
        for child in node.named_children:
            if child.type == "for_in_clause":
                clauses.append(f.Clause(self.field(child, "left"), self.field(child, "right"), []))
            elif child.type == "if_clause" and clauses and child.named_children:
                clauses[-1].tests.append(self.expr(child.named_children[0]))
        body = node.child_by_field_name("body")
        if body is not None and body.type == "pair":
            return f.Comp(at(node), "dict", self.field(body, "value"), clauses, self.field(body, "key"))
        element = self.expr(body) if body is not None else f.Lit(at(node), None)
        return f.Comp(at(node), kind, element, clauses)

    def _lambda(self, node: Node) -> f.Expr:
        return f.Function(at(node), self.function(node, "", []))

    def _walrus(self, node: Node) -> f.Expr:
        return f.Assigned(at(node), self.field(node, "name"), self.field(node, "value"))

    def _yield(self, node: Node) -> f.Expr:
        self.yields[-1] = True
        children = node.named_children
        spread = any(child.type == "from" for child in node.children)
        return f.Yield(at(node), self.expr(children[0]) if children else None, spread)

    def _parenthesized(self, node: Node) -> f.Expr:
        for child in node.named_children:
            if child.type != "comment":
                return self.expr(child)
        return f.Lit(at(node), None)

    expressions: ClassVar[Mapping[str, ExpressionReader]] = {
        "identifier": _name,
        "attribute": _attribute,
        "subscript": _subscript,
        "call": _call,
        "string": _string,
        "concatenated_string": _concatenated,
        "integer": _literal,
        "float": _literal,
        "true": _literal,
        "false": _literal,
        "none": _literal,
        "binary_operator": _operator,
        "boolean_operator": _operator,
        "comparison_operator": _compare,
        "not_operator": _not,
        "unary_operator": _unary,
        "conditional_expression": _choice,
        "list": _sequence,
        "tuple": _sequence,
        "set": _sequence,
        "pattern_list": _sequence,
        "tuple_pattern": _sequence,
        "list_pattern": _sequence,
        "expression_list": _sequence,
        "list_splat": _spread,
        "list_splat_pattern": _spread,
        "dictionary": _dictionary,
        "list_comprehension": _comprehension,
        "set_comprehension": _comprehension,
        "dictionary_comprehension": _comprehension,
        "generator_expression": _comprehension,
        "lambda": _lambda,
        "named_expression": _walrus,
        "yield": _yield,
        "parenthesized_expression": _parenthesized,
    }
