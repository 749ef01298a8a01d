"""What both front ends need from tree-sitter: places, text, comments and parse errors.

Part of the first step of the linter.
"""

from __future__ import annotations

from tree_sitter import Node

from prefixguard.lint.facts import At, Comment

SUPPRESSION = b"prefixguard:"


def at(node: Node) -> At:
    """The place of a node, counted from 1; columns in bytes."""
    start, end = node.start_point, node.end_point
    return (start[0] + 1, start[1] + 1, end[0] + 1, end[1] + 1)


def text(node: Node | None) -> str:
    """The source text of a node; "" for none."""
    raw = node.text if node is not None else None
    return raw.decode("utf-8", "replace") if raw else ""


def character(number: int) -> str:
    """The character of a code point; the replacement character for half a surrogate pair."""
    return chr(number) if number < 0xD800 or 0xDFFF < number < 0x110000 else "\ufffd"


def errors(root: Node, limit: int = 20) -> list[At]:
    """The outermost places that the grammar could not read."""
    if not root.has_error:
        return []
    found: list[At] = []
    stack = [root]
    while stack and len(found) < limit:
        node = stack.pop()
        if node.is_error or node.is_missing:
            found.append(at(node))
        elif node.has_error:
            stack.extend(reversed(node.children))
    return found


def comments(source: bytes, marker: bytes) -> list[Comment]:
    """The comments that speak to PrefixGuard, found by line: `marker` is `#` or `//`.

    A marker inside a string would be read as a comment too; the words that
    must follow it make that unlikely, and harmless.
    """
    if SUPPRESSION not in source:
        return []
    found = []
    for row, line in enumerate(source.split(b"\n"), 1):
        where = line.find(SUPPRESSION)
        if where < 0:
            continue
        start = line.rfind(marker, 0, where)
        if start >= 0 and not line[start + len(marker) : where].strip() and line[start - 1 : start] != b"`":
            words = line[where + len(SUPPRESSION) :].decode("utf-8", "replace").strip()
            found.append(Comment(row, start + 1, words, not line[:start].strip()))
    return found
