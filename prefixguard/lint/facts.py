"""The small fact language: what a front end says of a source file.

First step of the linter: `frontends` lower Python and TypeScript/JavaScript to
these values, `flow` reads nothing else. The language keeps what moves values
(assignments, calls, containers, templates, loops, returns) and drops the rest.
A place (`At`) is (row, column, end row, end column); rows and columns count
from 1. Everything here is plain data, so that a file's facts can be cached.
"""

from __future__ import annotations

import msgspec

type At = tuple[int, int, int, int]

NOWHERE: At = (1, 1, 1, 1)


class Fact(msgspec.Struct, array_like=True, tag=True, gc=False):
    """Base of expressions and statements: something that stands at a place."""

    at: At


# --- expressions -----------------------------------------------------------


class Lit(Fact):
    """A literal. `size` is the length of a string in characters."""

    value: str | int | float | bool | None = None


class Name(Fact):
    name: str


class Attr(Fact):
    base: Expr
    name: str


class Index(Fact):
    """`base[key]`."""

    base: Expr
    key: Expr


class Slice(Fact):
    """`base[low:high]`, or `base.slice(low, high)`."""

    base: Expr
    low: Expr | None = None
    high: Expr | None = None


class Arg(msgspec.Struct, array_like=True, gc=False):
    """An argument. `star`: 1 for `*value`, 2 for `**value`."""

    value: Expr
    name: str = ""
    star: int = 0


class Call(Fact):
    func: Expr
    args: list[Arg] = []
    new: bool = False


class Text(Fact):
    """An f-string or template string: literal parts and values in their order."""

    parts: list[Expr]


class Format(Fact):
    """A value with its format in a template: `{value:spec}`."""

    value: Expr
    spec: str


class Seq(Fact):
    """A list, tuple or set. Items may be `Spread`."""

    kind: str
    items: list[Expr]


class Map(Fact):
    """A dict or object literal. A key of None spreads its value."""

    entries: list[tuple[Expr | None, Expr]]


class Spread(Fact):
    value: Expr


class Op(Fact):
    """An operator with its operands: `+`, `%`, `and`, `or`, `not`, `compare:<`, ..."""

    op: str
    operands: list[Expr]


class Choice(Fact):
    """`then if test else other`."""

    test: Expr
    then: Expr
    other: Expr


class Clause(msgspec.Struct, array_like=True, gc=False):
    """`for target in source if ...` of a comprehension."""

    target: Expr
    source: Expr
    tests: list[Expr] = []


class Comp(Fact):
    """A comprehension: kind is list, set, dict or generator. `key` only in a dict."""

    kind: str
    element: Expr
    clauses: list[Clause]
    key: Expr | None = None


class Function(Fact):
    """A function as a value: index into `Module.functions`."""

    index: int


class Assigned(Fact):
    """An assignment inside an expression: `(name := value)`, `a = b = c`."""

    target: Expr
    value: Expr


# --- statements --------------------------------------------------------------


class Assign(Fact):
    """`op` is "=" or the augmented operator, for example "+="."""

    targets: list[Expr]
    value: Expr
    op: str = "="
    annotation: str = ""


class Do(Fact):
    """An expression for its effect."""

    value: Expr


class Return(Fact):
    value: Expr | None = None


class Yield(Fact):
    """A yielded value as an expression; `spread` for `yield from`."""

    value: Expr | None = None
    spread: bool = False


class If(Fact):
    test: Expr
    then: list[Stmt]
    other: list[Stmt]


class Loop(Fact):
    """`for target in source`, or `while source` when there is no target."""

    target: Expr | None
    source: Expr | None
    body: list[Stmt]
    step: list[Stmt] = []


class Try(Fact):
    body: list[Stmt]
    handlers: list[list[Stmt]]
    final: list[Stmt]


class Stop(Fact):
    """`break`, `continue` or `raise`."""

    kind: str


class Delete(Fact):
    targets: list[Expr]


class Define(Fact):
    """A function bound to its name in the block where it stands."""

    name: str
    index: int


class DefineClass(Fact):
    name: str
    index: int


class Import(Fact):
    """`name` is "" for a whole module, "*" for everything in it. `level` counts leading dots."""

    module: str
    name: str
    alias: str
    level: int = 0


type Expr = (
    Lit
    | Name
    | Attr
    | Index
    | Slice
    | Call
    | Text
    | Format
    | Seq
    | Map
    | Spread
    | Op
    | Choice
    | Comp
    | Function
    | Assigned
    | Yield
)
type Stmt = Assign | Do | Return | If | Loop | Try | Stop | Delete | Define | DefineClass | Import


class Param(msgspec.Struct, array_like=True, gc=False):
    """A parameter. `star`: 1 for `*args`, 2 for `**kwargs`. `fields`: names of a destructured object."""

    name: str
    default: Expr | None = None
    annotation: str = ""
    star: int = 0
    fields: list[tuple[str, str]] = []


class FunctionFacts(msgspec.Struct, array_like=True, gc=False):
    """One function. `kind`: function, lambda, getter. `owner`: index of its class, or -1."""

    name: str
    at: At
    params: list[Param]
    body: list[Stmt]
    decorators: list[Expr] = []
    kind: str = "function"
    owner: int = -1
    static: bool = False
    generator: bool = False
    returns: str = ""


class ClassFacts(msgspec.Struct, array_like=True, gc=False):
    """One class: its own fields in order, and its methods by index into `Module.functions`."""

    name: str
    at: At
    bases: list[Expr]
    body: list[Stmt]
    methods: dict[str, int] = {}
    decorators: list[Expr] = []
    annotations: dict[str, str] = {}


class Comment(msgspec.Struct, array_like=True, gc=False):
    """A comment that may hold a suppression. `alone`: nothing else stands on its line."""

    row: int
    column: int
    text: str
    alone: bool


class Module(msgspec.Struct, array_like=True, gc=False):
    """The facts of one file. `errors` are the places that could not be parsed."""

    language: str
    body: list[Stmt]
    functions: list[FunctionFacts]
    classes: list[ClassFacts]
    imports: list[Import]
    comments: list[Comment]
    errors: list[At]
    exports: dict[str, str] = {}
    rows: int = 0
