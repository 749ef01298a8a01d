"""Which argument of a call is which part of a request.

Part of the third step of the linter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from prefixguard.lint import facts as f
from prefixguard.lint.expressions import members
from prefixguard.lint.tables import Where
from prefixguard.lint.values import (
    NOTHING,
    Either,
    Fields,
    Value,
)

if TYPE_CHECKING:
    from prefixguard.lint.frame import Frame


def argument_names(frame: Frame, given: list[Any]) -> set[str]:
    """Names of the arguments, of spread dicts and of an options object."""
    names: set[str] = set()
    for arg, value in given:
        if arg is not None and arg.name:
            names.add(arg.name)
        elif isinstance(value.shape, Fields) and (
            arg is None or arg.star == 2 or frame.file.family == "typescript"
        ):
            names |= set(value.shape.entries)
            if value.shape.spread:
                names |= {"messages", "model", "input"}
        elif arg is not None and arg.star == 2:
            names |= {"messages", "model", "input"} if value.refs or value.place else set()
    return names


def argument(
    frame: Frame, given: list[Any], where: Where, order: tuple[str, ...] = ()
) -> tuple[Value, f.Expr | None]:
    """The argument that a part of a request is given as: value, and expression when it stands in the call."""
    if where is None:
        return NOTHING, None
    if isinstance(where, int):
        plain = [(arg, value) for arg, value in given if arg is None or (not arg.name and not arg.star)]
        if where < len(plain):
            arg, value = plain[where]
            return value, arg.value if arg is not None else None
        return NOTHING, None
    for arg, value in given:
        if arg is not None and arg.name == where:
            return value, arg.value
    if where in order:
        found = argument(frame, given, order.index(where))
        if found[0] is not NOTHING:
            return found
    for arg, value in given:
        if isinstance(value.shape, Fields) and (arg is None or arg.star == 2 or not arg.name):
            inner = value.shape.entries.get(where)
            if inner is not None:
                return inner, _entry(arg.value if arg is not None else None, where)
            for spread in value.shape.spread:
                found_value = members.attribute(frame, spread, where, f.NOWHERE)
                if spread.shape is None:
                    # Which of the spread values has which change is not known.
                    found_value = Value(refs=found_value.refs, place=found_value.place)
                if found_value is not NOTHING:
                    return found_value, None
        elif (
            arg is not None
            and (arg.star == 2 or frame.file.family == "typescript")
            and value.refs
            and not arg.name
        ):
            return members.attribute(frame, value, where, arg.value.at), None
        elif isinstance(value.shape, Either):
            for option in value.shape.options:
                if isinstance(option.shape, Fields) and where in option.shape.entries:
                    return option.shape.entries[where], None
    return NOTHING, None


def _entry(node: f.Expr | None, name: str) -> f.Expr | None:
    if isinstance(node, f.Map):
        for key, item in node.entries:
            if isinstance(key, f.Lit) and key.value == name:
                return item
    return None
