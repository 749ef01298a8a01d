"""Lowers TypeScript and JavaScript source to facts.

First step of the linter. Types are read only where they name a class; JSX is
kept for the values in it. `this` is the name of a method's own object.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache

import tree_sitter_typescript
from tree_sitter import Language, Node, Parser

from prefixguard.lint import facts as f
from prefixguard.lint.frontends.tree import at, character, comments, errors, text


@cache
def _parser(tsx: bool) -> Parser:
    grammar = tree_sitter_typescript.language_tsx() if tsx else tree_sitter_typescript.language_typescript()
    return Parser(Language(grammar))


def lower(source: bytes, *, tsx: bool = False) -> f.Module:
    """The facts of a TypeScript or JavaScript file. `tsx`: with JSX, and for plain JavaScript."""
    root = _parser(tsx).parse(source).root_node
    lowering = _Lowering()
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


_ESCAPE = re.compile(r"\\(u\{[0-9a-fA-F]+\}|u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|\r?\n|.)", re.DOTALL)
_SIMPLE = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "0": "\0", "\n": "", "\r\n": ""}


def _unescape(raw: str) -> str:
    def one(match: re.Match[str]) -> str:
        code = match[1]
        if code in _SIMPLE:
            return _SIMPLE[code]
        if code[0] in "ux" and len(code) > 1:
            number = int(code[1:].strip("{}"), 16)
            return character(number)
        return code

    return _ESCAPE.sub(one, raw) if "\\" in raw else raw


def _number(raw: str) -> int | float | None:
    plain = raw.replace("_", "").rstrip("n")
    try:
        value: int | float = int(plain, 0)
    except ValueError:
        try:
            value = float(plain)
        except ValueError:
            return None
    return value if abs(value) < 2**53 else float(value)


class _Lowering:
    """Walks the tree once; functions and classes are collected in flat lists."""

    def __init__(self) -> None:
        self.functions: list[f.FunctionFacts] = []
        self.classes: list[f.ClassFacts] = []
        self.imports: list[f.Import] = []
        self.exports: dict[str, str] = {}

    # statements

    def block(self, node: Node | None) -> list[f.Stmt]:
        out: list[f.Stmt] = []
        if node is not None:
            for child in node.named_children:
                self.statement(child, out)
        return out

    def body_of(self, node: Node | None) -> list[f.Stmt]:
        """A block, or a single statement in its place."""
        if node is None:
            return []
        if node.type == "statement_block":
            return self.block(node)
        out: list[f.Stmt] = []
        self.statement(node, out)
        return out

    def statement(self, node: Node, out: list[f.Stmt]) -> None:
        handler = _STATEMENTS.get(node.type)
        if handler is not None:
            handler(self, node, out)
        elif node.type not in _SKIPPED:
            out.append(f.Do(at(node), self.expr(node)))

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

    def _required(self, name: Node, call: f.Call, out: list[f.Stmt]) -> bool:
        module = call.args[0].value if call.args else None
        if not isinstance(module, f.Lit) or not isinstance(module.value, str):
            return False
        if name.type == "identifier":
            self._imported(f.Import(at(name), module.value, "", text(name)), out)
            return True
        if name.type == "object_pattern":
            for child in name.named_children:
                if child.type == "shorthand_property_identifier_pattern":
                    self._imported(f.Import(at(child), module.value, text(child), text(child)), out)
                elif child.type == "pair_pattern":
                    alias = child.child_by_field_name("value")
                    key = child.child_by_field_name("key")
                    if alias is not None and key is not None:
                        self._imported(f.Import(at(child), module.value, text(key), text(alias)), out)
            return True
        return False

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
                    self._imported(f.Import(at(child), module, "default", text(child)), out)
                elif child.type == "namespace_import" and child.named_children:
                    self._imported(f.Import(at(child), module, "", text(child.named_children[0])), out)
                elif child.type == "named_imports":
                    for item in child.named_children:
                        if item.type != "import_specifier" or any(c.type == "type" for c in item.children):
                            continue
                        name = item.child_by_field_name("name")
                        alias = item.child_by_field_name("alias")
                        if name is not None:
                            self._imported(f.Import(at(item), module, text(name), text(alias or name)), out)

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
            self._imported(f.Import(at(node), module, "" if star else "*", alias), out)
        for clause in clauses:
            for item in clause.named_children:
                own = item.child_by_field_name("name")
                shown = item.child_by_field_name("alias") or own
                if own is None:
                    continue
                if module:
                    self._imported(f.Import(at(item), module, text(own), text(shown)), out)
                elif text(own) != text(shown):
                    self.exports[text(shown)] = text(own)

    def _imported(self, made: f.Import, out: list[f.Stmt]) -> None:
        self.imports.append(made)
        out.append(made)

    # patterns

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

    # expressions

    def field(self, node: Node, name: str) -> f.Expr:
        child = node.child_by_field_name(name)
        return self.expr(child) if child is not None else f.Lit(at(node), None)

    def expr(self, node: Node) -> f.Expr:
        handler = _EXPRESSIONS.get(node.type)
        if handler is not None:
            return handler(self, node)
        children = [child for child in node.named_children if child.type != "comment"]
        if len(children) == 1:
            return self.expr(children[0])
        return f.Op(at(node), node.type, [self.expr(child) for child in children])

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
        return f.Lit(at(node), _unescape(text(node)[1:-1]))

    def _template(self, node: Node) -> f.Expr:
        parts: list[f.Expr] = []
        literal = ""
        for child in node.named_children:
            if child.type in {"string_fragment", "escape_sequence"}:
                literal += _unescape(text(child))
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
            return f.Lit(at(node), _number(text(node)))
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


_STATEMENTS: dict[str, Callable[[_Lowering, Node, list[f.Stmt]], None]] = {
    "expression_statement": _Lowering._expression_statement,
    "lexical_declaration": _Lowering._declaration,
    "variable_declaration": _Lowering._declaration,
    "if_statement": _Lowering._if,
    "for_in_statement": _Lowering._for_in,
    "for_statement": _Lowering._for,
    "while_statement": _Lowering._while,
    "do_statement": _Lowering._while,
    "switch_statement": _Lowering._switch,
    "try_statement": _Lowering._try,
    "return_statement": _Lowering._return,
    "throw_statement": _Lowering._stop,
    "break_statement": _Lowering._stop,
    "continue_statement": _Lowering._stop,
    "function_declaration": _Lowering._function_declaration,
    "generator_function_declaration": _Lowering._function_declaration,
    "class_declaration": _Lowering._class,
    "abstract_class_declaration": _Lowering._class,
    "enum_declaration": _Lowering._enum,
    "import_statement": _Lowering._import,
    "export_statement": _Lowering._export,
    "statement_block": lambda self, node, out: out.extend(self.block(node)),
    "ERROR": lambda self, node, out: out.extend(self.block(node)),
    "internal_module": lambda self, node, out: out.extend(self.block(node.child_by_field_name("body"))),
    "labeled_statement": lambda self, node, out: out.extend(self.body_of(node.child_by_field_name("body"))),
}
_SKIPPED = {
    "comment", "interface_declaration", "type_alias_declaration", "ambient_declaration", "empty_statement",
    "function_signature", "hash_bang_line", "decorator", "debugger_statement", "import_alias",
}  # fmt: skip
_EXPRESSIONS: dict[str, Callable[[_Lowering, Node], f.Expr]] = {
    "identifier": _Lowering._name,
    "this": _Lowering._name,
    "super": _Lowering._name,
    "undefined": _Lowering._literal,
    "member_expression": _Lowering._member,
    "subscript_expression": _Lowering._subscript,
    "call_expression": _Lowering._call,
    "new_expression": _Lowering._new,
    "string": _Lowering._string,
    "template_string": _Lowering._template,
    "number": _Lowering._literal,
    "true": _Lowering._literal,
    "false": _Lowering._literal,
    "null": _Lowering._literal,
    "binary_expression": _Lowering._binary,
    "unary_expression": _Lowering._unary,
    "ternary_expression": _Lowering._ternary,
    "array": _Lowering._array,
    "array_pattern": lambda self, node: self.pattern(node),
    "object_pattern": lambda self, node: self.pattern(node),
    "spread_element": _Lowering._spread,
    "object": _Lowering._object,
    "arrow_function": _Lowering._function_expression,
    "function_expression": _Lowering._function_expression,
    "generator_function": _Lowering._function_expression,
    "class": _Lowering._class_expression,
    "assignment_expression": _Lowering._assigned,
    "as_expression": _Lowering._cast,
    "satisfies_expression": _Lowering._cast,
    "non_null_expression": _Lowering._cast,
    "type_assertion": lambda self, node: self.expr(node.named_children[-1]),
    "parenthesized_expression": _Lowering._cast,
    "await_expression": _Lowering._cast,
    "yield_expression": _Lowering._yield,
    "regex": _Lowering._nothing,
    "type_arguments": _Lowering._nothing,
}
