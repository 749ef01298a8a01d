"""One message changed: in place, as a changed copy, or in the list under its index.

Part of the third step of the linter, called where an element is assigned.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from prefixguard.lint import facts as f
from prefixguard.lint import walk
from prefixguard.lint.history import marks, noting
from prefixguard.lint.values import (
    Fields,
    Value,
)

if TYPE_CHECKING:
    from prefixguard.lint.frame import Frame


def element(frame: Frame, place: tuple[str, ...], key: str, value: Value, at: f.At) -> None:
    """`message[key] = value`, for a message of a list at `place`."""
    if key not in noting.SPOKEN or not frame.is_list_name(noting.place_name(frame, place[:-1])):
        cut = next((i for i, part in enumerate(place) if part.startswith("[")), 0)
        if key not in noting.SPOKEN or not frame.is_list_name(noting.place_name(frame, place[:cut])):
            return
    if "[-1]" in place:
        return
    if "[0]" in place:
        if value.const is not None or value.plain:
            return
        code = "PG107" if any(change.code == "PG107" for change in value.flat()) else "PG311"
        change = noting.note(frame, code, "the first message is written anew", at, weak=True)
        noting.touch(frame, place, change)
        return
    if "[<]" not in place and not noting.placed(frame):
        if noting.about_system(frame) and not any(guard.negated for guard in frame.guards):
            what = "the system message is replaced in front of a history"
            noting.note(frame, "PG311", what, at, "event", weak=True)
        return
    words = (
        noting.words_around(frame)
        + " "
        + key
        + " "
        + str(value.const or "").lower()
        + " "
        + noting.texts(value)
    )
    code = noting.kind_of(words, "PG302" if value.const is not None else "PG311")
    change = noting.note(frame, code, "an earlier message is changed in place", at, weak=True)
    noting.touch(frame, place, change)


def item_assigned(frame: Frame, target: f.Index, base: Value, key: Value, value: Value, at: f.At) -> None:
    """`messages[i] = value`."""
    if not noting.is_list(frame, target.base, base) or isinstance(base.shape, Fields):
        return
    name = walk.dotted(target.base)
    copied = (
        base.place is None
        or (base.place[0] == "local:" + name and frame.is_fresh(name))
        or base.origin in {"copy", "deepcopy"}
    )
    if noting.is_last(frame, target.key, target.base) or key.const == -1:
        if (
            copied
            and (base.elements is not None or base.origin in {"copy", "deepcopy", "slice"})
            and not value.plain
        ):
            change = noting.note(
                frame,
                "PG309",
                "the newest message is changed in what is sent, not in what is stored",
                at,
                weak=True,
            )
            frame.rebind(target.base, noting.marked(base, change))
        return
    if key.const == 0:
        if not value.plain and frame.talking:
            change = noting.note(frame, "PG311", "the first message is written anew", at, weak=True)
            frame.rebind(target.base, noting.marked(base, change))
        return
    guard = noting.rarely(frame)
    if guard or noting.placed(frame) or (frame.loops and isinstance(target.key, f.Name)):
        words = noting.words_around(frame) + " " + noting.texts(value)
        if not guard and not noting.placed(frame) and noting.kind_of(words, "") == "":
            return
        change = noting.note(
            frame,
            noting.kind_of(words, "PG302"),
            "an earlier message is replaced",
            at,
            guard,
            weak=bool(guard) or noting.placed(frame),
        )
        frame.rebind(target.base, noting.marked(base, change))


def replaced(frame: Frame, before: Value | None, value: Value, at: f.At) -> Value:
    """A message of a list put anew under a name, because of its place: a changed copy."""
    if before is None or before.place is None or not before.place[-1].startswith("["):
        return value
    return changed_copy(frame, value, at)


def changed_copy(frame: Frame, value: Value, at: f.At) -> Value:
    """A message built in a loop over messages: an edit when it depends on the place in the list."""
    shape = value.shape
    if not any(loop.over for loop in frame.loops) or not noting.placed(frame):
        return value
    if not isinstance(shape, Fields):
        return _copied_with(frame, value, at)
    spoken = [shape.entries[name] for name in ("content", "parts", "text") if name in shape.entries]
    if (
        not spoken
        or not value.all_refs()
        or set(shape.entries) & {"cache_control", "cachePoint", "cacheControl"}
    ):
        return value
    if any(marks.breakpoints(part) for part in spoken):
        return value
    words = noting.words_around(frame) + " " + noting.texts(value)
    if noting.about_system(frame):
        return value
    change = noting.note(
        frame, noting.kind_of(words, "PG302"), "an earlier message is sent changed", at, weak=True
    )
    return noting.marked(value, change)


def _copied_with(frame: Frame, value: Value, at: f.At) -> Value:
    """`message.replace(content=...)`, `message.model_copy(update=...)`: a changed copy of an object."""
    now = frame.statement
    source = now.value if isinstance(now, f.Assign) else None
    if not isinstance(source, f.Call) or walk.last_name(source.func) not in {
        "replace",
        "_replace",
        "model_copy",
        "copy_with",
        "copy",
        "with_content",
    }:
        return value
    if not {arg.name for arg in source.args} & {"content", "update", "text", "parts"}:
        return value
    change = noting.note(
        frame,
        noting.kind_of(noting.words_around(frame), "PG302"),
        "an earlier message is sent changed",
        at,
        weak=True,
    )
    return noting.marked(value, change)
