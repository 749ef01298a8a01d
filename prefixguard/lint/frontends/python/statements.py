"""Statements, functions, classes and imports of Python source.

First step of the linter.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from tree_sitter import Node

from prefixguard.lint import facts as f
from prefixguard.lint.frontends.lowering import StatementReader
from prefixguard.lint.frontends.python.expressions import Expressions
from prefixguard.lint.frontends.tree import at, text


class Statements(Expressions):
    """Readers of statements, over those of expressions."""

    def _expression_statement(self, node: Node, out: list[f.Stmt]) -> None:
        for child in node.named_children:
            kind = child.type
            if kind == "assignment":
                self._assignment(child, out)
            elif kind == "augmented_assignment":
                operator = child.child_by_field_name("operator")
                out.append(
                    f.Assign(
                        at(child),
                        [self.field(child, "left")],
                        self.field(child, "right"),
                        text(operator) if operator else "+=",
                    )
                )
            elif kind == "comment":
                continue
            elif kind != "string":
                out.append(f.Do(at(child), self.expr(child)))

    def _assignment(self, node: Node, out: list[f.Stmt]) -> None:
        annotation = node.child_by_field_name("type")
        targets = [self.field(node, "left")]
        right = node.child_by_field_name("right")
        while right is not None and right.type == "assignment":
            targets.append(self.field(right, "left"))
            right = right.child_by_field_name("right")
        noted = text(annotation) if annotation else ""
        if right is None:
            if noted:
                out.append(f.Assign(at(node), targets, f.Lit(at(node), None), "declare", noted))
            return
        out.append(f.Assign(at(node), targets, self.expr(right), "=", noted))

    def _return(self, node: Node, out: list[f.Stmt]) -> None:
        children = node.named_children
        out.append(f.Return(at(node), self.expr(children[0]) if children else None))

    def _if(self, node: Node, out: list[f.Stmt]) -> None:
        first = f.If(
            at(node), self.field(node, "condition"), self.block(node.child_by_field_name("consequence")), []
        )
        last = first
        for branch in node.children_by_field_name("alternative"):
            if branch.type == "elif_clause":
                inner = f.If(
                    at(branch),
                    self.field(branch, "condition"),
                    self.block(branch.child_by_field_name("consequence")),
                    [],
                )
                last.other.append(inner)
                last = inner
            else:
                last.other.extend(self.block(branch.child_by_field_name("body")))
        out.append(first)

    def _for(self, node: Node, out: list[f.Stmt]) -> None:
        body = self.block(node.child_by_field_name("body"))
        out.append(f.Loop(at(node), self.field(node, "left"), self.field(node, "right"), body))
        self._else(node, out)

    def _while(self, node: Node, out: list[f.Stmt]) -> None:
        body = self.block(node.child_by_field_name("body"))
        out.append(f.Loop(at(node), None, self.field(node, "condition"), body))
        self._else(node, out)

    def _else(self, node: Node, out: list[f.Stmt]) -> None:
        other = node.child_by_field_name("alternative")
        if other is not None:
            out.extend(self.block(other.child_by_field_name("body")))

    def _with(self, node: Node, out: list[f.Stmt]) -> None:
        for clause in node.named_children:
            if clause.type != "with_clause":
                continue
            for item in clause.named_children:
                value = item.child_by_field_name("value")
                if value is None:
                    continue
                if value.type == "as_pattern":
                    alias = value.child_by_field_name("alias")
                    source = self.expr(value.named_children[0])
                    if alias is not None and alias.named_children:
                        target = self.expr(alias.named_children[0])
                        out.append(f.Assign(at(value), [target], source, "="))
                        continue
                    out.append(f.Do(at(value), source))
                else:
                    out.append(f.Do(at(value), self.expr(value)))
        out.extend(self.block(node.child_by_field_name("body")))

    def _try(self, node: Node, out: list[f.Stmt]) -> None:
        handlers: list[list[f.Stmt]] = []
        final: list[f.Stmt] = []
        body = self.block(node.child_by_field_name("body"))
        for clause in node.named_children:
            if clause.type in {"except_clause", "except_group_clause"}:
                blocks = [child for child in clause.named_children if child.type == "block"]
                handlers.append(self.block(blocks[-1] if blocks else None))
            elif clause.type == "finally_clause":
                blocks = [child for child in clause.named_children if child.type == "block"]
                final = self.block(blocks[-1] if blocks else None)
            elif clause.type == "else_clause":
                body.extend(self.block(clause.child_by_field_name("body")))
        out.append(f.Try(at(node), body, handlers, final))

    def _match(self, node: Node, out: list[f.Stmt]) -> None:
        subject = self.field(node, "subject")
        body = node.child_by_field_name("body")
        branches = [child for child in (body.named_children if body else []) if child.type == "case_clause"]
        chain: list[f.Stmt] = []
        for branch in reversed(branches):
            then = self.block(branch.child_by_field_name("consequence"))
            chain = [f.If(at(branch), subject, then, chain)]
        out.extend(chain)

    def _delete(self, node: Node, out: list[f.Stmt]) -> None:
        child = node.named_children[0] if node.named_children else None
        if child is None:
            return
        parts = child.named_children if child.type == "expression_list" else [child]
        out.append(f.Delete(at(node), [self.expr(part) for part in parts]))

    def _stop(self, node: Node, out: list[f.Stmt]) -> None:
        out.extend(f.Do(at(child), self.expr(child)) for child in node.named_children)
        out.append(f.Stop(at(node), node.type.removesuffix("_statement")))

    def _decorated(self, node: Node, out: list[f.Stmt]) -> None:
        decorators = [
            self.expr(child.named_children[0])
            for child in node.named_children
            if child.type == "decorator" and child.named_children
        ]
        inner = node.child_by_field_name("definition")
        if inner is not None and inner.type == "function_definition":
            self._function(inner, out, decorators)
        elif inner is not None:
            self._class(inner, out, decorators)

    def _function(self, node: Node, out: list[f.Stmt], decorators: list[f.Expr] | None = None) -> None:
        name = self.name_of(node)
        index = self.function(node, name, decorators or [])
        out.append(f.Define(at(node), name, index))

    def function(self, node: Node, name: str, decorators: list[f.Expr] | None = None) -> int:
        index = len(self.functions)
        made = f.FunctionFacts(name, at(node), [], [], decorators or [])
        self.functions.append(made)
        returns = node.child_by_field_name("return_type")
        made.returns = text(returns) if returns else ""
        made.params = self.parameters(node.child_by_field_name("parameters"))
        body = node.child_by_field_name("body")
        self.yields.append(False)
        if node.type == "lambda":
            made.kind = "lambda"
            if body is not None:
                made.body = [f.Return(at(body), self.expr(body))]
        else:
            made.body = self.block(body)
        made.generator = self.yields.pop()
        for decorator in made.decorators:
            named = decorator.name if isinstance(decorator, (f.Name, f.Attr)) else ""
            if named in {"property", "cached_property"}:
                made.kind = "getter"
            elif named in {"staticmethod"}:
                made.static = True
        return index

    def parameters(self, node: Node | None) -> list[f.Param]:
        params: list[f.Param] = []
        for child in node.named_children if node is not None else []:
            kind = child.type
            if kind == "identifier":
                params.append(f.Param(text(child)))
            elif kind in {"default_parameter", "typed_default_parameter"}:
                note = child.child_by_field_name("type")
                params.append(
                    f.Param(self.name_of(child), self.field(child, "value"), text(note) if note else "")
                )
            elif kind == "typed_parameter":
                note = child.child_by_field_name("type")
                target = child.named_children[0]
                star = 1 if target.type == "list_splat_pattern" else 2 if "dictionary" in target.type else 0
                name = text(target).lstrip("*")
                params.append(f.Param(name, None, text(note) if note else "", star))
            elif kind == "list_splat_pattern":
                params.append(f.Param(text(child).lstrip("*"), star=1))
            elif kind == "dictionary_splat_pattern":
                params.append(f.Param(text(child).lstrip("*"), star=2))
            elif kind == "keyword_separator":
                params.append(f.Param("*", star=3))
        return params

    def _class(self, node: Node, out: list[f.Stmt], decorators: list[f.Expr] | None = None) -> None:
        name = self.name_of(node)
        index = len(self.classes)
        bases = node.child_by_field_name("superclasses")
        made = f.ClassFacts(
            name,
            at(node),
            [self.expr(base) for base in (bases.named_children if bases else []) if base.type != "comment"],
            [],
            {},
            decorators or [],
        )
        self.classes.append(made)
        for statement in self.block(node.child_by_field_name("body")):
            if isinstance(statement, f.Define):
                made.methods.setdefault(statement.name, statement.index)
                self.functions[statement.index].owner = index
                # A setter or an overload repeats the name: the getter, which comes first, is what is read.
            if isinstance(statement, f.Assign) and statement.annotation:
                for target in statement.targets:
                    if isinstance(target, f.Name):
                        made.annotations[target.name] = statement.annotation
            made.body.append(statement)
        out.append(f.DefineClass(at(node), name, index))

    def _import(self, node: Node, out: list[f.Stmt]) -> None:
        for child in node.named_children:
            if child.type == "aliased_import":
                self.imported(
                    f.Import(at(child), text(child.child_by_field_name("name")), "", self.alias_of(child)),
                    out,
                )
            elif child.type == "dotted_name":
                self.imported(f.Import(at(child), text(child), "", ""), out)

    def _import_from(self, node: Node, out: list[f.Stmt]) -> None:
        source = node.child_by_field_name("module_name")
        module = text(source) if source else ""
        level = len(module) - len(module.lstrip("."))
        module = module.lstrip(".")
        for child in node.named_children:
            if source is not None and child.start_byte == source.start_byte:
                continue
            if child.type == "wildcard_import":
                self.imported(f.Import(at(child), module, "*", "*", level), out)
            elif child.type == "aliased_import":
                name = text(child.child_by_field_name("name"))
                self.imported(f.Import(at(child), module, name, self.alias_of(child), level), out)
            elif child.type == "dotted_name":
                self.imported(f.Import(at(child), module, text(child), text(child), level), out)

    def alias_of(self, node: Node) -> str:
        child = node.child_by_field_name("alias")
        return text(child) if child is not None else ""

    statements: ClassVar[Mapping[str, StatementReader]] = {
        "expression_statement": _expression_statement,
        "return_statement": _return,
        "if_statement": _if,
        "for_statement": _for,
        "while_statement": _while,
        "with_statement": _with,
        "try_statement": _try,
        "match_statement": _match,
        "delete_statement": _delete,
        "raise_statement": _stop,
        "break_statement": _stop,
        "continue_statement": _stop,
        "decorated_definition": _decorated,
        "function_definition": _function,
        "class_definition": _class,
        "import_statement": _import,
        "import_from_statement": _import_from,
        "block": lambda self, node, out: out.extend(self.block(node)),
        "ERROR": lambda self, node, out: out.extend(self.block(node)),
    }
    skipped: ClassVar[frozenset[str]] = frozenset(
        {
            "comment",
            "pass_statement",
            "global_statement",
            "nonlocal_statement",
            "future_import_statement",
            "type_alias_statement",
            "string",
        }
    )
