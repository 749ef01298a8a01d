"""Lowers Python source to facts.

First step of the linter. Only what moves values is kept; an unknown construct
becomes an expression of its parts, so that nothing that flows is lost.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from functools import cache

import tree_sitter_python
from tree_sitter import Language, Node, Parser

from prefixguard.lint import facts as f
from prefixguard.lint.frontends.tree import at, character, comments, errors, text


@cache
def _parser() -> Parser:
    return Parser(Language(tree_sitter_python.language()))


def lower(source: bytes) -> f.Module:
    """The facts of a Python file."""
    root = _parser().parse(source).root_node
    lowering = _Lowering()
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


_ESCAPE = re.compile(r"\\(\n|[\\'\"abfnrtv]|[0-7]{1,3}|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})")
_SIMPLE = {"\\": "\\", "'": "'", '"': '"', "n": "\n", "t": "\t", "r": "\r", "\n": "", "a": "\a", "b": "\b"}


def _unescape(raw: str) -> str:
    def one(match: re.Match[str]) -> str:
        code = match[1]
        if code in _SIMPLE:
            return _SIMPLE[code]
        if code[0] in "xuU":
            number = int(code[1:], 16)
            return character(number)
        return chr(int(code, 8)) if code[0].isdigit() else match[0]

    return _ESCAPE.sub(one, raw) if "\\" in raw else raw


def _number(raw: str) -> int | float | None:
    try:
        value = ast.literal_eval(raw)
    except (ValueError, SyntaxError):
        return None
    if isinstance(value, int) and abs(value) < 2**53:
        return value
    return float(value) if isinstance(value, (int, float)) else None


class _Lowering:
    """Walks the tree once; functions and classes are collected in flat lists."""

    def __init__(self) -> None:
        self.functions: list[f.FunctionFacts] = []
        self.classes: list[f.ClassFacts] = []
        self.imports: list[f.Import] = []
        self.yields = [False]

    # statements

    def block(self, node: Node | None) -> list[f.Stmt]:
        out: list[f.Stmt] = []
        if node is not None:
            for child in node.named_children:
                self.statement(child, out)
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

    def function(self, node: Node, name: str, decorators: list[f.Expr]) -> int:
        index = len(self.functions)
        made = f.FunctionFacts(name, at(node), [], [], decorators)
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
        for decorator in decorators:
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
                self._imported(
                    f.Import(at(child), text(child.child_by_field_name("name")), "", self.alias_of(child)),
                    out,
                )
            elif child.type == "dotted_name":
                self._imported(f.Import(at(child), text(child), "", ""), out)

    def _import_from(self, node: Node, out: list[f.Stmt]) -> None:
        source = node.child_by_field_name("module_name")
        module = text(source) if source else ""
        level = len(module) - len(module.lstrip("."))
        module = module.lstrip(".")
        for child in node.named_children:
            if source is not None and child.start_byte == source.start_byte:
                continue
            if child.type == "wildcard_import":
                self._imported(f.Import(at(child), module, "*", "*", level), out)
            elif child.type == "aliased_import":
                name = text(child.child_by_field_name("name"))
                self._imported(f.Import(at(child), module, name, self.alias_of(child), level), out)
            elif child.type == "dotted_name":
                self._imported(f.Import(at(child), module, text(child), text(child), level), out)

    def _imported(self, made: f.Import, out: list[f.Stmt]) -> None:
        self.imports.append(made)
        out.append(made)

    # expressions

    def field(self, node: Node, name: str) -> f.Expr:
        child = node.child_by_field_name(name)
        return self.expr(child) if child is not None else f.Lit(at(node), None)

    def name_of(self, node: Node) -> str:
        child = node.child_by_field_name("name")
        return text(child) if child is not None else ""

    def alias_of(self, node: Node) -> str:
        child = node.child_by_field_name("alias")
        return text(child) if child is not None else ""

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
                piece = piece if raw else _unescape(piece)
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
            return f.Lit(at(node), _number(text(node)))
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


_STATEMENTS: dict[str, Callable[[_Lowering, Node, list[f.Stmt]], None]] = {
    "expression_statement": _Lowering._expression_statement,
    "return_statement": _Lowering._return,
    "if_statement": _Lowering._if,
    "for_statement": _Lowering._for,
    "while_statement": _Lowering._while,
    "with_statement": _Lowering._with,
    "try_statement": _Lowering._try,
    "match_statement": _Lowering._match,
    "delete_statement": _Lowering._delete,
    "raise_statement": _Lowering._stop,
    "break_statement": _Lowering._stop,
    "continue_statement": _Lowering._stop,
    "decorated_definition": _Lowering._decorated,
    "function_definition": _Lowering._function,
    "class_definition": _Lowering._class,
    "import_statement": _Lowering._import,
    "import_from_statement": _Lowering._import_from,
    "block": lambda self, node, out: out.extend(self.block(node)),
    "ERROR": lambda self, node, out: out.extend(self.block(node)),
}
_SKIPPED = {
    "comment", "pass_statement", "global_statement", "nonlocal_statement", "future_import_statement",
    "type_alias_statement", "string",
}  # fmt: skip
_EXPRESSIONS: dict[str, Callable[[_Lowering, Node], f.Expr]] = {
    "identifier": _Lowering._name,
    "attribute": _Lowering._attribute,
    "subscript": _Lowering._subscript,
    "call": _Lowering._call,
    "string": _Lowering._string,
    "concatenated_string": _Lowering._concatenated,
    "integer": _Lowering._literal,
    "float": _Lowering._literal,
    "true": _Lowering._literal,
    "false": _Lowering._literal,
    "none": _Lowering._literal,
    "binary_operator": _Lowering._operator,
    "boolean_operator": _Lowering._operator,
    "comparison_operator": _Lowering._compare,
    "not_operator": _Lowering._not,
    "unary_operator": _Lowering._unary,
    "conditional_expression": _Lowering._choice,
    "list": _Lowering._sequence,
    "tuple": _Lowering._sequence,
    "set": _Lowering._sequence,
    "pattern_list": _Lowering._sequence,
    "tuple_pattern": _Lowering._sequence,
    "list_pattern": _Lowering._sequence,
    "expression_list": _Lowering._sequence,
    "list_splat": _Lowering._spread,
    "list_splat_pattern": _Lowering._spread,
    "dictionary": _Lowering._dictionary,
    "list_comprehension": _Lowering._comprehension,
    "set_comprehension": _Lowering._comprehension,
    "dictionary_comprehension": _Lowering._comprehension,
    "generator_expression": _Lowering._comprehension,
    "lambda": _Lowering._lambda,
    "named_expression": _Lowering._walrus,
    "yield": _Lowering._yield,
    "parenthesized_expression": _Lowering._parenthesized,
}
