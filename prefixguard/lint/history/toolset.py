"""Tools added, taken out or rewritten while a conversation runs.

Part of the third step of the linter.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from prefixguard.lint import facts as f
from prefixguard.lint import walk
from prefixguard.lint.history import noting
from prefixguard.lint.knowledge import snake
from prefixguard.lint.tables import TURN
from prefixguard.lint.values import (
    Value,
)

if TYPE_CHECKING:
    from prefixguard.lint.frame import Frame


_TOOLS = re.compile(r"(^|_)(tools|functions|tool_(defs|definitions|schemas|specs|list))$")


def tool_list_changed(frame: Frame, func: f.Attr, base: Value, at: f.At, code: str) -> None:
    """A tool added to or taken from the list while a conversation runs."""
    if (
        not frame.talking
        or not _TOOLS.search(snake(walk.last_name(func.base)))
        or frame.is_fresh(walk.dotted(func.base))
    ):
        return
    what = "a tool is added" if code == "PG401" else "a tool is taken out"
    change = frame.change(code, f"{what} while the conversation runs", at, TURN, confidence=1)
    noting.touch(frame, base.place or ("local:" + walk.last_name(func.base),), change)


def tool_edited(frame: Frame, place: tuple[str, ...], key: str, value: Value, at: f.At) -> None:
    """A tool's text changed in place while a conversation runs."""
    root = noting.place_name(
        frame, tuple(part for part in place[:-1] if not part.startswith("[") and part != "function")
    )
    if (
        not frame.talking
        or key not in {"description", "parameters", "input_schema", "name"}
        or not _TOOLS.search(snake(root))
    ):
        return
    change = frame.change("PG403", f"a tool's {key} is written anew", at, TURN, confidence=1)
    noting.touch(frame, place, change)
