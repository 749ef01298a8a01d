"""Expressions and patterns of TypeScript and JavaScript source.

First step of the linter.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import ClassVar

from tree_sitter import Node

from prefixguard.lint import facts as f
from prefixguard.lint.frontends.lowering import ExpressionReader, Lowering
from prefixguard.lint.frontends.tree import at, text
from prefixguard.lint.frontends.typescript.words import number_of, unescape


class Expressions(Lowering):
    """Readers of expressions and of the targets of assignments."""

    @abstractmethod
    def class_(self, node: Node, name: str) -> int:
        """Adds a class; its index."""

    def pattern(self, node: Node) -> f.Expr:
        """A target of an assignment: a name, or an object or array pattern."""
        kind = node.type
        if kind == "object_pattern":
            entries: list[tuple[f.Expr | None, f.Expr]] = []
            for child in node.named_children:
                if child.type == "shorthand_property_identifier_pattern":
                    name = text(child)
                    entries.append((f.Lit(at(child), name), f.Name(at(child), name)))
                elif child.type == "pair_pattern":
                    key = child.child_by_field_name("key")
                    value = child.child_by_field_name("value")
                    if key is not None and value is not None:
                        entries.append((f.Lit(at(key), text(key)), self.pattern(value)))
                elif child.type == "object_assignment_pattern":
                    left = child.child_by_field_name("left")
                    if left is not None:
                        entries.append((f.Lit(at(child), text(left)), f.Name(at(child), text(left))))
            return f.Map(at(node), entries)
        if kind == "array_pattern":
            return f.Seq(
                at(node), "tuple", [self.pattern(c) for c in node.named_children if c.type != "comment"]
            )
        if kind == "assignment_pattern":
            left = node.child_by_field_name("left")
            return self.pattern(left) if left is not None else f.Lit(at(node), None)
        if kind == "rest_pattern" and node.named_children:
            return f.Spread(at(node), self.pattern(node.named_children[0]))
        return self.expr(node)

    def _name(self, node: Node) -> f.Expr:
        return f.Name(at(node), text(node))

    def _member(self, node: Node) -> f.Expr:
        name = node.child_by_field_name("property")
        return f.Attr(at(node), self.field(node, "object"), text(name) if name else "")

    def _subscript(self, node: Node) -> f.Expr:
        return f.Index(at(node), self.field(node, "object"), self.field(node, "index"))

    def _call(self, node: Node) -> f.Expr:
        func = self.field(node, "function")
        arguments = node.child_by_field_name("arguments")
        if arguments is not None and arguments.type == "template_string":
            return self._template(arguments)
        return f.Call(at(node), func, self.arguments(arguments))

    def _new(self, node: Node) -> f.Expr:
        return f.Call(
            at(node),
            self.field(node, "constructor"),
            self.arguments(node.child_by_field_name("arguments")),
            new=True,
        )

    def arguments(self, node: Node | None) -> list[f.Arg]:
        args: list[f.Arg] = []
        for child in node.named_children if node is not None else []:
            if child.type == "spread_element":
                args.append(f.Arg(self.expr(child.named_children[0]), star=1))
            elif child.type != "comment":
                args.append(f.Arg(self.expr(child)))
        return args

    def _string(self, node: Node) -> f.Expr:
        return f.Lit(at(node), unescape(text(node)[1:-1]))

    def _template(self, node: Node) -> f.Expr:
        parts: list[f.Expr] = []
        literal = ""
        for child in node.named_children:
            if child.type in {"string_fragment", "escape_sequence"}:
                literal += unescape(text(child))
            elif child.type == "template_substitution":
                if literal:
                    parts.append(f.Lit(at(node), literal))
                    literal = ""
                if child.named_children:
                    parts.append(self.expr(child.named_children[0]))
        if not parts:
            return f.Lit(at(node), literal)
        if literal:
            parts.append(f.Lit(at(node), literal))
        return f.Text(at(node), parts)

    def _literal(self, node: Node) -> f.Expr:
        if node.type == "number":
            return f.Lit(at(node), number_of(text(node)))
        return f.Lit(at(node), {"true": True, "false": False}.get(node.type))

    def _binary(self, node: Node) -> f.Expr:
        operator = node.child_by_field_name("operator")
        sign = text(operator) if operator else "?"
        if sign in {"<", ">", "<=", ">=", "===", "!==", "==", "!=", "in", "instanceof"}:
            sign = "compare:" + sign
        return f.Op(at(node), sign, [self.field(node, "left"), self.field(node, "right")])

    def _unary(self, node: Node) -> f.Expr:
        sign = node.children[0].type
        value = self.field(node, "argument")
        if sign == "!":
            return f.Op(at(node), "not", [value])
        if sign == "-" and isinstance(value, f.Lit) and isinstance(value.value, (int, float)):
            return f.Lit(at(node), -value.value)
        return f.Op(at(node), "u" + sign, [value])

    def _ternary(self, node: Node) -> f.Expr:
        return f.Choice(
            at(node),
            self.field(node, "condition"),
            self.field(node, "consequence"),
            self.field(node, "alternative"),
        )

    def _array(self, node: Node) -> f.Expr:
        return f.Seq(at(node), "list", [self.expr(c) for c in node.named_children if c.type != "comment"])

    def _spread(self, node: Node) -> f.Expr:
        return (
            f.Spread(at(node), self.expr(node.named_children[0]))
            if node.named_children
            else f.Lit(at(node), None)
        )

    def _object(self, node: Node) -> f.Expr:
        entries: list[tuple[f.Expr | None, f.Expr]] = []
        for child in node.named_children:
            kind = child.type
            if kind == "pair":
                key = child.child_by_field_name("key")
                value = child.child_by_field_name("value")
                if key is None or value is None:
                    continue
                made = self.expr(value)
                label = self.key(key)
                if (
                    isinstance(made, f.Function)
                    and isinstance(label, f.Lit)
                    and not self.functions[made.index].name
                ):
                    self.functions[made.index].name = str(label.value)
                entries.append((label, made))
            elif kind == "shorthand_property_identifier":
                entries.append((f.Lit(at(child), text(child)), f.Name(at(child), text(child))))
            elif kind == "spread_element" and child.named_children:
                entries.append((None, self.expr(child.named_children[0])))
            elif kind == "method_definition":
                name = child.child_by_field_name("name")
                label_text = text(name).strip("'\"") if name else ""
                entries.append(
                    (f.Lit(at(child), label_text), f.Function(at(child), self.function(child, label_text)))
                )
        return f.Map(at(node), entries)

    def key(self, node: Node) -> f.Expr:
        if node.type in {"property_identifier", "private_property_identifier", "number"}:
            return f.Lit(at(node), text(node))
        if node.type == "computed_property_name" and node.named_children:
            return self.expr(node.named_children[0])
        return self.expr(node)

    def _function_expression(self, node: Node) -> f.Expr:
        name = node.child_by_field_name("name")
        return f.Function(at(node), self.function(node, text(name) if name else ""))

    def _class_expression(self, node: Node) -> f.Expr:
        self.class_(node, "")
        return f.Lit(at(node), None)

    def _assigned(self, node: Node) -> f.Expr:
        left = node.child_by_field_name("left")
        target = self.pattern(left) if left is not None else f.Lit(at(node), None)
        return f.Assigned(at(node), target, self.field(node, "right"))

    def _cast(self, node: Node) -> f.Expr:
        for child in node.named_children:
            if child.type != "comment":
                return self.expr(child)
        return f.Lit(at(node), None)

    def _yield(self, node: Node) -> f.Expr:
        children = node.named_children
        return f.Yield(
            at(node), self.expr(children[0]) if children else None, any(c.type == "*" for c in node.children)
        )

    def _nothing(self, node: Node) -> f.Expr:
        return f.Lit(at(node), None)

    expressions: ClassVar[Mapping[str, ExpressionReader]] = {
        "identifier": _name,
        "this": _name,
        "super": _name,
        "undefined": _literal,
        "member_expression": _member,
        "subscript_expression": _subscript,
        "call_expression": _call,
        "new_expression": _new,
        "string": _string,
        "template_string": _template,
        "number": _literal,
        "true": _literal,
        "false": _literal,
        "null": _literal,
        "binary_expression": _binary,
        "unary_expression": _unary,
        "ternary_expression": _ternary,
        "array": _array,
        "array_pattern": lambda self, node: self.pattern(node),
        "object_pattern": lambda self, node: self.pattern(node),
        "spread_element": _spread,
        "object": _object,
        "arrow_function": _function_expression,
        "function_expression": _function_expression,
        "generator_function": _function_expression,
        "class": _class_expression,
        "assignment_expression": _assigned,
        "as_expression": _cast,
        "satisfies_expression": _cast,
        "non_null_expression": _cast,
        "type_assertion": lambda self, node: self.expr(node.named_children[-1]),
        "parenthesized_expression": _cast,
        "await_expression": _cast,
        "yield_expression": _yield,
        "regex": _nothing,
        "type_arguments": _nothing,
    }
