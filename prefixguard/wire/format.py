"""What one API format must be able to say: how its bodies become segments.

A format is a table of small pure functions. The decoder (`wire/decoder.py`)
walks the body, remembers what each raw element became, and builds the prompt,
so that a format only ever looks at elements that are new.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from prefixguard.prompt import Link, Mark, Segment
from prefixguard.wire.blocks import Body

type Segments = tuple[Segment, ...]


@dataclass(frozen=True, slots=True)
class ElementList:
    """A field of the body whose elements become segments.

    name: the field; a dotted name lies one level down. read: one element,
    parsed, to its segments, with pointers relative to the element; or a Mark,
    for an element that only puts a breakpoint behind the one before it. text:
    what a plain string in place of the list becomes.
    """

    name: str
    read: Callable[[Any], Segments | Mark]
    text: Callable[[str], Segments] | None = None


@dataclass(frozen=True, slots=True)
class Format:
    """One API format.

    name: as in reports ("openai-chat" ...). tools, head, history: the fields
    that hold each group, in rendered order. leading_head: whether system
    messages that open `history` belong to the head. reply: the parsed response
    to the segments that a client would send back. link: a reference to earlier
    exchanges. raw: the prompt is one text, compared by characters.
    """

    name: str
    tools: tuple[ElementList, ...]
    head: tuple[ElementList, ...]
    history: tuple[ElementList, ...]
    reply: Callable[[Any], Segments]
    leading_head: bool = False
    link: Callable[[Body], Link | None] | None = None
    automatic_mark: Callable[[Body], Mark | None] | None = None
    raw: bool = False
