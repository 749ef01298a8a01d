"""Statements of TypeScript and JavaScript source.

First step of the linter.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from tree_sitter import Node

from prefixguard.lint import facts as f
from prefixguard.lint.frontends.lowering import StatementReader
from prefixguard.lint.frontends.tree import at, text
from prefixguard.lint.frontends.typescript.modules import Modules


class Statements(Modules):
    """Readers of statements, over all others."""

    def body_of(self, node: Node | None) -> list[f.Stmt]:
        """A block, or a single statement in its place."""
        if node is None:
            return []
        if node.type == "statement_block":
            return self.block(node)
        out: list[f.Stmt] = []
        self.statement(node, out)
        return out

    def _expression_statement(self, node: Node, out: list[f.Stmt]) -> None:
        for child in node.named_children:
            kind = child.type
            if kind == "assignment_expression":
                left = child.child_by_field_name("left")
                right = self.field(child, "right")
                if left is not None and text(left).startswith(("module.exports", "exports.")):
                    self._commonjs(left, right, child, out)
                    continue
                out.append(f.Assign(at(child), [self.field(child, "left")], right))
            elif kind == "augmented_assignment_expression":
                operator = next((c.type for c in child.children if not c.is_named), "+=")
                out.append(
                    f.Assign(at(child), [self.field(child, "left")], self.field(child, "right"), operator)
                )
            elif kind == "update_expression":
                sign = "+=" if any(c.type == "++" for c in child.children) else "-="
                out.append(f.Assign(at(child), [self.field(child, "argument")], f.Lit(at(child), 1), sign))
            elif kind == "unary_expression" and child.children[0].type == "delete":
                out.append(f.Delete(at(child), [self.field(child, "argument")]))
            elif kind == "sequence_expression":
                out.extend(f.Do(at(part), self.expr(part)) for part in child.named_children)
            elif kind not in {"comment", "string"}:
                out.append(f.Do(at(child), self.expr(child)))

    def _declaration(self, node: Node, out: list[f.Stmt]) -> None:
        for child in node.named_children:
            if child.type != "variable_declarator":
                continue
            name = child.child_by_field_name("name")
            value = child.child_by_field_name("value")
            note = child.child_by_field_name("type")
            if name is None:
                continue
            noted = text(note).lstrip(": ") if note else ""
            if value is None:
                if noted:
                    out.append(
                        f.Assign(at(child), [self.pattern(name)], f.Lit(at(child), None), "declare", noted)
                    )
                continue
            made = self.expr(value)
            if isinstance(made, f.Call) and isinstance(made.func, f.Name) and made.func.name == "require":  # noqa: SIM102
                if self._required(name, made, out):
                    continue
            if isinstance(made, f.Function) and name.type == "identifier":
                self.functions[made.index].name = text(name)
                self.functions[made.index].kind = "function"
                out.append(f.Define(at(child), text(name), made.index))
                continue
            out.append(f.Assign(at(child), [self.pattern(name)], made, "=", noted))

    def _if(self, node: Node, out: list[f.Stmt]) -> None:
        other = node.child_by_field_name("alternative")
        else_body: list[f.Stmt] = []
        if other is not None:
            for child in other.named_children:
                if child.type != "comment":
                    else_body = self.body_of(child)
        out.append(
            f.If(
                at(node),
                self.field(node, "condition"),
                self.body_of(node.child_by_field_name("consequence")),
                else_body,
            )
        )

    def _for_in(self, node: Node, out: list[f.Stmt]) -> None:
        left = node.child_by_field_name("left")
        target = self.pattern(left) if left is not None else None
        source = self.field(node, "right")
        operator = node.child_by_field_name("operator")
        if operator is not None and operator.type == "in":
            source = f.Call(at(node), f.Attr(at(node), f.Name(at(node), "Object"), "keys"), [f.Arg(source)])
        out.append(f.Loop(at(node), target, source, self.body_of(node.child_by_field_name("body"))))

    def _for(self, node: Node, out: list[f.Stmt]) -> None:
        first = node.child_by_field_name("initializer")
        if first is not None:
            self.statement(first, out)
        condition = node.child_by_field_name("condition")
        step: list[f.Stmt] = []
        increment = node.child_by_field_name("increment")
        if increment is not None:
            self._increment(increment, step)
        test = None
        if condition is not None and condition.type != "empty_statement":
            test = self.expr(condition)
        out.append(f.Loop(at(node), None, test, self.body_of(node.child_by_field_name("body")), step))

    def _increment(self, node: Node, out: list[f.Stmt]) -> None:
        if node.type == "update_expression":
            sign = "+=" if any(c.type == "++" for c in node.children) else "-="
            out.append(f.Assign(at(node), [self.field(node, "argument")], f.Lit(at(node), 1), sign))
        elif node.type == "augmented_assignment_expression":
            operator = next((c.type for c in node.children if not c.is_named), "+=")
            out.append(f.Assign(at(node), [self.field(node, "left")], self.field(node, "right"), operator))
        else:
            out.append(f.Do(at(node), self.expr(node)))

    def _while(self, node: Node, out: list[f.Stmt]) -> None:
        out.append(
            f.Loop(
                at(node), None, self.field(node, "condition"), self.body_of(node.child_by_field_name("body"))
            )
        )

    def _switch(self, node: Node, out: list[f.Stmt]) -> None:
        subject = self.field(node, "value")
        body = node.child_by_field_name("body")
        chain: list[f.Stmt] = []
        for branch in reversed(body.named_children if body else []):
            then: list[f.Stmt] = []
            value = branch.child_by_field_name("value")
            for child in branch.named_children:
                if value is not None and child.start_byte == value.start_byte:
                    continue
                self.statement(child, then)
            then = [s for s in then if not (isinstance(s, f.Stop) and s.kind == "break")]
            if branch.type == "switch_default":
                chain = [*then, *chain] if not chain else [f.If(at(branch), subject, then, chain)]
            elif branch.type == "switch_case":
                test: f.Expr = f.Op(at(branch), "===", [subject, self.expr(value)]) if value else subject
                chain = [f.If(at(branch), test, then, chain)]
        out.extend(chain)

    def _try(self, node: Node, out: list[f.Stmt]) -> None:
        handlers: list[list[f.Stmt]] = []
        final: list[f.Stmt] = []
        handler = node.child_by_field_name("handler")
        if handler is not None:
            handlers.append(self.block(handler.child_by_field_name("body")))
        finalizer = node.child_by_field_name("finalizer")
        if finalizer is not None:
            for child in finalizer.named_children:
                final.extend(self.block(child))
        out.append(f.Try(at(node), self.block(node.child_by_field_name("body")), handlers, final))

    def _return(self, node: Node, out: list[f.Stmt]) -> None:
        children = [child for child in node.named_children if child.type != "comment"]
        out.append(f.Return(at(node), self.expr(children[0]) if children else None))

    def _stop(self, node: Node, out: list[f.Stmt]) -> None:
        for child in node.named_children:
            if child.type not in {"statement_identifier", "comment"}:
                out.append(f.Do(at(child), self.expr(child)))  # noqa: PERF401
        kind = "raise" if node.type == "throw_statement" else node.type.removesuffix("_statement")
        out.append(f.Stop(at(node), kind))

    statements: ClassVar[Mapping[str, StatementReader]] = {
        **Modules.statements,
        "expression_statement": _expression_statement,
        "lexical_declaration": _declaration,
        "variable_declaration": _declaration,
        "if_statement": _if,
        "for_in_statement": _for_in,
        "for_statement": _for,
        "while_statement": _while,
        "do_statement": _while,
        "switch_statement": _switch,
        "try_statement": _try,
        "return_statement": _return,
        "throw_statement": _stop,
        "break_statement": _stop,
        "continue_statement": _stop,
        "statement_block": lambda self, node, out: out.extend(self.block(node)),
        "ERROR": lambda self, node, out: out.extend(self.block(node)),
        "internal_module": lambda self, node, out: out.extend(self.block(node.child_by_field_name("body"))),
        "labeled_statement": lambda self, node, out: out.extend(
            self.body_of(node.child_by_field_name("body"))
        ),
    }
    skipped: ClassVar[frozenset[str]] = frozenset(
        {
            "comment",
            "interface_declaration",
            "type_alias_declaration",
            "ambient_declaration",
            "empty_statement",
            "function_signature",
            "hash_bang_line",
            "decorator",
            "debugger_statement",
            "import_alias",
        }
    )
