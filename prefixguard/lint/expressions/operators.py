"""Operators: on text, lists, sets, numbers and clocks.

Part of the third step of the linter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from prefixguard.lint import clocks, walk
from prefixguard.lint import facts as f
from prefixguard.lint.calls import invoking
from prefixguard.lint.expressions import evaluation, texts
from prefixguard.lint.history import binding, splitting
from prefixguard.lint.sinks import frameworks
from prefixguard.lint.values import (
    MAX_PARTS,
    NOTHING,
    Fields,
    Items,
    Value,
    join,
    mixed,
    transform,
)

if TYPE_CHECKING:
    from prefixguard.lint.frame import Frame


def operator(frame: Frame, node: f.Op) -> Value:
    values = [evaluation.evaluate(frame, operand) for operand in node.operands]
    op = node.op
    if op == "+":
        return added(frame, node, values)
    if op == "%":
        return texts.percent(frame, node, values)
    if op == "*":
        for value, factor in ((values[0], values[-1]), (values[-1], values[0])):
            if (
                isinstance(factor.const, int)
                and not isinstance(factor.const, bool)
                and (value.size or value.shape)
            ):
                return value.but(size=value.size * max(0, factor.const), const=None)
        return mixed(values)
    if op == "-":
        made = mixed(values)
        if isinstance(values[0].shape, Items) and values[0].shape.kind == "set":
            return Value(made.flat(), made.all_refs(), Items("set", values[0].shape.parts))
        if any(change.grain for change in made.flat()):
            return transform(made, lambda change: clocks.elapsed(change, node.at))
        return made
    if op in {"|", "&", "^"}:
        kinds = [v.shape.kind for v in values if isinstance(v.shape, Items)]
        if "set" in kinds:
            parts = tuple(part for v in values if isinstance(v.shape, Items) for part in v.shape.parts)
            return Value(shape=Items("set", parts[:MAX_PARTS]))
        shapes = [v for v in values if isinstance(v.shape, Fields)]
        if shapes and op == "|":
            return Value(shape=Fields({}, tuple(values)))
        frameworks.piped(frame, values)
        return mixed(values)
    if op in {"or", "||", "??", "and", "&&"}:
        found = values[0] if op not in {"and", "&&"} else NOTHING
        for value in values[1:]:
            found = join(found, value)
        return found
    if (
        op.startswith("compare:")
        or op in {"not", "u!", "utypeof", "udelete", "uvoid"}
        or op in {"===", "!==", "==", "!=", "<", ">", "<=", ">=", "instanceof", "in"}
    ):
        return NOTHING
    return mixed(values)


def added(frame: Frame, node: f.Op | f.Assign, values: list[Value]) -> Value:
    """`a + b`: text, lists, or numbers."""
    listed = [isinstance(value.shape, Items) and value.shape.kind != "set" for value in values]
    if any(listed):
        splitting.rejoined(frame, node.at, values)
        parts: list[tuple[bool, Value]] = []
        for value in values:
            shape = value.shape
            if isinstance(shape, Items) and not value.changes:
                parts.extend(shape.parts)
            else:
                parts.append((True, value))
        return binding.assembled(frame, node, Value(shape=Items("list", tuple(parts[:MAX_PARTS]))))
    operands = node.operands if isinstance(node, f.Op) else []
    if any(
        value.place is not None and frame.is_list_name(walk.last_name(operand))
        for value, operand in zip(values, operands, strict=False)
    ):
        made = Value(shape=Items("list", tuple((True, value) for value in values)))
        return binding.assembled(frame, node, made)
    return texts.words(frame, [texts.printed(frame, value, node.at) for value in values], node.at)


def augmented(frame: Frame, node: f.Assign, before: Value, value: Value) -> Value:
    """The value of `target += value` and its kin."""
    if node.op in {"+=", "??=", "||=", "&&="}:
        target = node.targets[0]
        if isinstance(before.shape, Items) or frame.is_list_name(walk.last_name(target)):  # noqa: SIM102
            if node.op == "+=":
                invoking.extended(frame, target, before, value, node.at)
                return before
        if node.op != "+=":
            return join(before, value)
        if isinstance(node.value, f.Lit) and isinstance(node.value.value, (int, float)):
            return before if before.const is None else before.but(const=None)
        return texts.words(frame, [before, texts.printed(frame, value, node.at)], node.at)
    if node.op in {"|="} and isinstance(before.shape, Items):
        return before.but(shape=Items(before.shape.kind, (*before.shape.parts, (True, value))[:MAX_PARTS]))
    return mixed([before, value])
