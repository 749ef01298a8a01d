"""What a fixed order leaves of a value; the arguments of a call.

Under the other files of `known`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from prefixguard.lint import facts as f
from prefixguard.lint.values import (
    NOTHING,
    Change,
    Value,
    transform,
)

if TYPE_CHECKING:
    pass


SORTED = "[sorted]"
"""A step of a reference: whatever stands there was sorted."""


type Given = tuple[f.Arg | None, Value]


def first(given: Sequence[Given]) -> Value:
    """The first argument."""
    return given[0][1] if given else NOTHING


def keyword(given: Sequence[Given], name: str) -> Value | None:
    """The argument of a name; for an options object, its field."""
    for arg, value in given:
        if arg is not None and arg.name == name:
            return value
    return None


def unordered_gone(value: Value) -> Value:
    """The same value in a fixed order."""
    return transform(value, _fixed) if value.flat() else value


def in_order(value: Value) -> Value:
    """An unknown value, sorted: what it turns out to be will stand in a fixed order."""
    refs = tuple((r[0], r[1], (*r[2], SORTED)) if len(r[2]) < 5 else r for r in value.refs)
    return value.but(refs=refs, place=None, _refs=None) if refs else value


def _fixed(change: Change) -> Change | None:
    if not change.order:
        return change
    if change.content:
        return change._replace(
            code=change.content, order=False, content="", what=change.what.replace(" in no fixed order", "")
        )
    return None
