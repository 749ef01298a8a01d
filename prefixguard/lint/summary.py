"""What is known of a function once it was read: what it returns, what it does to what it was given.

Written by `frame`, read at each call, so that every function is read once.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from prefixguard.lint.facts import At, Expr
from prefixguard.lint.values import NOTHING, Change, FunctionId, Step, Value


class Guard(NamedTuple):
    """A test that stands above the current statement. `kind`: if, while, handler, filter."""

    test: Expr | None
    kind: str
    negated: bool = False


@dataclass(slots=True)
class Loop:
    """A loop that is running. `talks`: it adds to a list of messages."""

    id: int
    talks: bool
    at: At
    over: bool = False
    """It runs over a list of messages."""


@dataclass(slots=True)
class Sink:
    """A place where a value becomes part of a request.

    position: system, tools, messages, model, thinking, tool_choice, format, key, prompt.
    kind: `request` (an SDK call), `built` (makes an agent), `name` (known by a
    name), `message` (a message is built), `function` (a prompt function returns).
    confidence: 0 to 2.
    """

    position: str
    kind: str
    file: int
    at: At
    api: str = ""
    confidence: int = 2
    label: str = ""
    one_shot: bool = False
    scope: str = ""
    talks: bool = False


@dataclass(slots=True)
class Pending:
    """A sink whose value depends on parameters: judged again where the function is called."""

    sink: Sink
    value: Value
    depth: int = 0


@dataclass(slots=True)
class Hit:
    """A change that reaches a sink."""

    change: Change
    sink: Sink
    position: str
    trace: tuple[Step, ...]
    confidence: int
    after: int = 0
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class Summary:
    """One function. mutations: (parameter, attributes, kind, value); writes: self's attributes."""

    function: FunctionId
    returns: Value = NOTHING
    pending: list[Pending] = field(default_factory=list)
    mutations: list[tuple[int, tuple[str, ...], str, Any]] = field(default_factory=list)
    writes: dict[str, Value] = field(default_factory=dict)
    done: bool = False
