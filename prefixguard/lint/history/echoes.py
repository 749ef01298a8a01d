"""What the server said, sent back in other bytes: replies that were altered, arguments written again.

Part of the third step of the linter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from prefixguard.lint import facts as f
from prefixguard.lint import walk
from prefixguard.lint.history import noting

if TYPE_CHECKING:
    from prefixguard.lint.frame import Frame


_ALTERS = {"sub", "replace", "replaceAll", "split", "partition", "removeprefix", "removesuffix", "subn"}


_REPLIES = {"content", "text", "output_text", "choices", "message", "completion", "outputText"}


_WRITES = {"dumps", "stringify"}


_READS = {"loads", "parse"}


def echoed(frame: Frame, node: f.Map) -> None:
    """An assistant message whose text is not the reply as the server gave it."""
    content = next(
        (item for key, item in node.entries if isinstance(key, f.Lit) and key.value == "content"), None
    )
    source = frame.definition(content)
    if source is None:
        return
    for item in walk.inside(source):
        if isinstance(item, f.Call) and walk.last_name(item.func) in _ALTERS and walk.names(item) & _REPLIES:
            noting.note(
                frame,
                "PG307",
                "the reply is sent back with other words than the server gave",
                item.at,
                "",
                weak=True,
            )
            return


def rewritten_arguments(frame: Frame, node: f.Map) -> None:
    """The arguments of a tool call, read and written again: other bytes than the server gave."""
    for key, item in node.entries:
        if not isinstance(key, f.Lit) or key.value not in {"arguments", "input"}:
            continue
        source = frame.definition(item)
        if isinstance(source, f.Call) and walk.last_name(source.func) in _WRITES:
            inner = source.args[0].value if source.args else None
            parsed = any(
                isinstance(part, f.Call) and walk.last_name(part.func) in _READS
                for part in walk.inside(inner)
            )
            named = walk.last_name(inner) in {"arguments", "input", "args"}
            if parsed or named:
                noting.note(
                    frame, "PG203", "a tool call's arguments are written again", item.at, "", weak=True
                )
