"""What the first requests of two sessions would share, had they not put first what differs (PG109, PG510).

Asked for a request without a parent, beside the latest opening of another
session with the same tools: a user's name or a clock in front of a long common
text makes every session start cold. No break: nothing that one session had
cached is lost to it.
"""

from __future__ import annotations

from prefixguard.causes.evidence import Catalogue
from prefixguard.causes.head import HeadCauses
from prefixguard.divergence import Parting, part, rebilled, token_offset
from prefixguard.finding import Finding
from prefixguard.tokens.counter import Counter
from prefixguard.tokens.layout import Layout

LEAST_SHARED = 512
"""Tokens behind the difference that both requests hold, for it to be worth a word."""
_NAMED = frozenset(f"PG{n}" for n in range(101, 111))


def opening_findings(
    catalogue: Catalogue, head: HeadCauses, other: Layout, fresh: Layout, counter: Counter
) -> tuple[Parting | None, list[Finding]]:
    """Where the fresh opening parts from another one, and what that is called; (None, []) for no matter."""
    parting = part(other, fresh)
    if parting is None or parting.parameter is not None or parting.old is None or parting.new is None:
        return None, []
    ends = other.prompt.head_length, fresh.prompt.head_length
    if parting.boundary >= min(ends) or fresh.prompt.group(parting.boundary) != "head":
        return None, []
    at = token_offset(other, parting.boundary, parting.char, counter)
    # Only text counts: where tools stand to it is, for a template that nobody showed us, a guess.
    tools = len(other.prompt.tools) if other.prompt.order[1] == "tools" else 0
    shared, _ = rebilled(other, fresh, parting, at, other.ends[ends[0] - tools], counter)
    if shared < LEAST_SHARED:
        return None, []
    old = "" if parting.kind == "inserted" else parting.old.text
    new = "" if parting.kind == "removed" else parting.new.text
    first, *_ = head.findings(old, new, "", parting.pointer)
    if first.code not in _NAMED:
        return None, []
    text = (
        f"sessions part here, before about {shared:,} tokens that they share: none of these is read from "
        "another session's cache"
    )
    return parting, [catalogue.finding("PG510", text, pointer=parting.pointer), first.but(severity="info")]
