"""Imports and exports of TypeScript and JavaScript source, those of CommonJS too.

First step of the linter.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from tree_sitter import Node

from prefixguard.lint import facts as f
from prefixguard.lint.frontends.lowering import StatementReader
from prefixguard.lint.frontends.tree import at, text
from prefixguard.lint.frontends.typescript.definitions import Definitions


class Modules(Definitions):
    """Readers of what a module takes and gives."""

    def _commonjs(self, left: Node, right: f.Expr, node: Node, out: list[f.Stmt]) -> None:
        name = text(left).removeprefix("module.").removeprefix("exports").lstrip(".")
        if name:
            out.append(f.Assign(at(node), [f.Name(at(left), name)], right))
        elif isinstance(right, f.Map):
            for key, value in right.entries:
                if isinstance(key, f.Lit) and not (isinstance(value, f.Name) and value.name == key.value):
                    out.append(f.Assign(at(node), [f.Name(at(left), str(key.value))], value))
        else:
            out.append(f.Assign(at(node), [f.Name(at(left), "default")], right))

    def _required(self, name: Node, call: f.Call, out: list[f.Stmt]) -> bool:
        module = call.args[0].value if call.args else None
        if not isinstance(module, f.Lit) or not isinstance(module.value, str):
            return False
        if name.type == "identifier":
            self.imported(f.Import(at(name), module.value, "", text(name)), out)
            return True
        if name.type == "object_pattern":
            for child in name.named_children:
                if child.type == "shorthand_property_identifier_pattern":
                    self.imported(f.Import(at(child), module.value, text(child), text(child)), out)
                elif child.type == "pair_pattern":
                    alias = child.child_by_field_name("value")
                    key = child.child_by_field_name("key")
                    if alias is not None and key is not None:
                        self.imported(f.Import(at(child), module.value, text(key), text(alias)), out)
            return True
        return False

    def _import(self, node: Node, out: list[f.Stmt]) -> None:
        source = node.child_by_field_name("source")
        if source is None or any(child.type == "type" for child in node.children):
            return
        module = text(source).strip("'\"`")
        for clause in node.named_children:
            if clause.type != "import_clause":
                continue
            for child in clause.named_children:
                if child.type == "identifier":
                    self.imported(f.Import(at(child), module, "default", text(child)), out)
                elif child.type == "namespace_import" and child.named_children:
                    self.imported(f.Import(at(child), module, "", text(child.named_children[0])), out)
                elif child.type == "named_imports":
                    for item in child.named_children:
                        if item.type != "import_specifier" or any(c.type == "type" for c in item.children):
                            continue
                        name = item.child_by_field_name("name")
                        alias = item.child_by_field_name("alias")
                        if name is not None:
                            self.imported(f.Import(at(item), module, text(name), text(alias or name)), out)

    def _export(self, node: Node, out: list[f.Stmt]) -> None:
        declaration = node.child_by_field_name("declaration")
        value = node.child_by_field_name("value")
        source = node.child_by_field_name("source")
        default = any(child.type == "default" for child in node.children)
        if declaration is not None:
            before = len(out)
            self.statement(declaration, out)
            if default and len(out) > before and isinstance(out[-1], (f.Define, f.DefineClass)):
                self.exports["default"] = out[-1].name
            return
        if value is not None:
            made = self.expr(value)
            if isinstance(made, f.Name):
                self.exports["default"] = made.name
            elif isinstance(made, f.Function):
                out.append(f.Define(at(node), "default", made.index))
            else:
                out.append(f.Assign(at(node), [f.Name(at(node), "default")], made))
            return
        module = text(source).strip("'\"`") if source else ""
        clauses = [child for child in node.named_children if child.type == "export_clause"]
        if not clauses and module:
            star = [child for child in node.named_children if child.type == "namespace_export"]
            alias = text(star[0].named_children[0]) if star and star[0].named_children else "*"
            self.imported(f.Import(at(node), module, "" if star else "*", alias), out)
        for clause in clauses:
            for item in clause.named_children:
                own = item.child_by_field_name("name")
                shown = item.child_by_field_name("alias") or own
                if own is None:
                    continue
                if module:
                    self.imported(f.Import(at(item), module, text(own), text(shown)), out)
                elif text(own) != text(shown):
                    self.exports[text(shown)] = text(own)

    statements: ClassVar[Mapping[str, StatementReader]] = {
        **Definitions.statements,
        "import_statement": _import,
        "export_statement": _export,
    }
