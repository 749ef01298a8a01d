"""Functions, classes and enumerations of TypeScript and JavaScript source.

First step of the linter.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from tree_sitter import Node

from prefixguard.lint import facts as f
from prefixguard.lint.frontends.lowering import StatementReader
from prefixguard.lint.frontends.tree import at, text
from prefixguard.lint.frontends.typescript.expressions import Expressions


class Definitions(Expressions):
    """Readers of what gives a name to code."""

    def _function_declaration(self, node: Node, out: list[f.Stmt]) -> None:
        name = node.child_by_field_name("name")
        named = text(name) if name else "default"
        out.append(f.Define(at(node), named, self.function(node, named)))

    def function(self, node: Node, name: str, decorators: list[f.Expr] | None = None) -> int:
        index = len(self.functions)
        made = f.FunctionFacts(name, at(node), [], [], decorators or [])
        self.functions.append(made)
        returns = node.child_by_field_name("return_type")
        made.returns = text(returns).lstrip(": ") if returns else ""
        params = node.child_by_field_name("parameters")
        single = node.child_by_field_name("parameter")
        if single is not None:
            made.params = [f.Param(text(single))]
        else:
            made.params = self.parameters(params)
        body = node.child_by_field_name("body")
        made.kind = "lambda" if node.type == "arrow_function" and not name else "function"
        if body is not None and body.type == "statement_block":
            made.body = self.block(body)
        elif body is not None:
            made.body = [f.Return(at(body), self.expr(body))]
        made.generator = "generator" in node.type or any(c.type == "*" for c in node.children)
        if any(c.type == "static" for c in node.children):
            made.static = True
        if any(c.type == "get" for c in node.children):
            made.kind = "getter"
        return index

    def parameters(self, node: Node | None) -> list[f.Param]:
        params: list[f.Param] = []
        for child in node.named_children if node is not None else []:
            if child.type not in {"required_parameter", "optional_parameter"}:
                if child.type == "identifier":
                    params.append(f.Param(text(child)))
                elif child.type in {"object_pattern", "array_pattern"}:
                    params.append(f.Param(f"{{{len(params)}}}", fields=self._pattern_fields(child)))
                elif child.type == "assignment_pattern":
                    left = child.child_by_field_name("left")
                    name = (
                        text(left) if left is not None and left.type == "identifier" else f"{{{len(params)}}}"
                    )
                    fields = (
                        self._pattern_fields(left)
                        if left is not None and left.type == "object_pattern"
                        else []
                    )
                    params.append(f.Param(name, self.field(child, "right"), fields=fields))
                elif child.type == "rest_pattern":
                    params.append(f.Param(text(child).lstrip("."), star=1))
                continue
            pattern = child.child_by_field_name("pattern")
            note = child.child_by_field_name("type")
            value = child.child_by_field_name("value")
            noted = text(note).lstrip(": ") if note else ""
            default = self.expr(value) if value is not None else None
            if pattern is None:
                continue
            if pattern.type in {"identifier", "this"}:
                params.append(f.Param(text(pattern), default, noted))
            elif pattern.type == "rest_pattern":
                params.append(f.Param(text(pattern).lstrip("."), None, noted, 1))
            else:
                params.append(f.Param(f"{{{len(params)}}}", default, "", 0, self._pattern_fields(pattern)))
        return [param for param in params if param.name != "this"]

    def _pattern_fields(self, node: Node) -> list[tuple[str, str]]:
        fields: list[tuple[str, str]] = []
        for child in node.named_children:
            if child.type == "shorthand_property_identifier_pattern":
                fields.append((text(child), text(child)))
            elif child.type == "pair_pattern":
                key = child.child_by_field_name("key")
                value = child.child_by_field_name("value")
                if key is not None and value is not None:
                    inner = value.child_by_field_name("left") if value.type == "assignment_pattern" else value
                    if inner is not None and inner.type == "identifier":
                        fields.append((text(key), text(inner)))
            elif child.type == "object_assignment_pattern":
                left = child.child_by_field_name("left")
                if left is not None:
                    fields.append((text(left), text(left)))
        return fields

    def _class(self, node: Node, out: list[f.Stmt]) -> None:
        name = node.child_by_field_name("name")
        named = text(name) if name else "default"
        index = self.class_(node, named)
        out.append(f.DefineClass(at(node), named, index))

    def class_(self, node: Node, name: str) -> int:
        index = len(self.classes)
        bases: list[f.Expr] = []
        for child in node.named_children:
            if child.type == "class_heritage":
                for clause in child.named_children:
                    value = clause.child_by_field_name("value")
                    if value is not None:
                        bases.append(self.expr(value))
        made = f.ClassFacts(name, at(node), bases, [])
        self.classes.append(made)
        body = node.child_by_field_name("body")
        decorators: list[f.Expr] = []
        for child in body.named_children if body else []:
            if child.type == "decorator":
                if child.named_children:
                    decorators.append(self.expr(child.named_children[0]))
                continue
            if child.type == "method_definition":
                method = child.child_by_field_name("name")
                label = text(method) if method else ""
                number = self.function(child, label, decorators)
                self.functions[number].owner = index
                if self.functions[number].kind == "lambda":
                    self.functions[number].kind = "function"
                if not any(c.type == "set" for c in child.children):
                    made.methods.setdefault(label, number)
                    made.body.append(f.Define(at(child), label, number))
                if label == "constructor":
                    self._parameter_properties(child, number, made)
            elif child.type == "public_field_definition":
                self._field_definition(child, index, made)
            decorators = []
        return index

    def _field_definition(self, child: Node, index: int, made: f.ClassFacts) -> None:
        label = child.child_by_field_name("name")
        value = child.child_by_field_name("value")
        note = child.child_by_field_name("type")
        if label is None:
            return
        named = text(label)
        if note is not None:
            made.annotations[named] = text(note).lstrip(": ")
        if value is None:
            return
        if value.type in {"arrow_function", "function_expression"}:
            number = self.function(value, named)
            self.functions[number].owner = index
            made.methods.setdefault(named, number)
            made.body.append(f.Define(at(child), named, number))
        else:
            made.body.append(f.Assign(at(child), [f.Name(at(label), named)], self.expr(value)))

    def _parameter_properties(self, node: Node, number: int, made: f.ClassFacts) -> None:
        """`constructor(private x: X)` assigns `this.x`."""
        params = node.child_by_field_name("parameters")
        extra: list[f.Stmt] = []
        for child in params.named_children if params else []:
            if not any(c.type in {"accessibility_modifier", "readonly"} for c in child.children):
                continue
            pattern = child.child_by_field_name("pattern")
            note = child.child_by_field_name("type")
            if pattern is not None and pattern.type == "identifier":
                name = text(pattern)
                place = at(child)
                extra.append(
                    f.Assign(place, [f.Attr(place, f.Name(place, "this"), name)], f.Name(place, name))
                )
                if note is not None:
                    made.annotations.setdefault(name, text(note).lstrip(": "))
        self.functions[number].body[:0] = extra

    def _enum(self, node: Node, out: list[f.Stmt]) -> None:
        name = node.child_by_field_name("name")
        body = node.child_by_field_name("body")
        if name is None or body is None:
            return
        entries: list[tuple[f.Expr | None, f.Expr]] = []
        for child in body.named_children:
            if child.type == "enum_assignment":
                entries.append((f.Lit(at(child), text(child.named_children[0])), self.field(child, "value")))
            elif child.type == "property_identifier":
                entries.append((f.Lit(at(child), text(child)), f.Lit(at(child), text(child))))
        out.append(f.Assign(at(node), [f.Name(at(name), text(name))], f.Map(at(body), entries)))

    statements: ClassVar[Mapping[str, StatementReader]] = {
        "function_declaration": _function_declaration,
        "generator_function_declaration": _function_declaration,
        "class_declaration": _class,
        "abstract_class_declaration": _class,
        "enum_declaration": _enum,
    }
