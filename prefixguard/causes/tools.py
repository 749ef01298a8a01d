"""Names a change of the tool definitions (PG201, PG202, PG401 to PG404)."""

from __future__ import annotations

from collections import Counter as Multiset
from collections.abc import Sequence

import msgspec

from prefixguard.causes.evidence import Catalogue, Evidence
from prefixguard.causes.form import same_content
from prefixguard.causes.head import HeadCauses
from prefixguard.finding import Finding
from prefixguard.prompt import Segment


def tool_change(
    catalogue: Catalogue, head: HeadCauses, evidence: Evidence, *, per_turn: bool
) -> list[Finding]:
    """The findings for two different tool lists, the decisive one first.

    per_turn: the list changed before in this thread, so it is chosen anew each turn.
    """
    old = [s for _, s in evidence.earlier.prompt.tools]
    new = [s for _, s in evidence.later.prompt.tools]
    pointer = evidence.parting.pointer
    if Multiset(s.exact for s in old) == Multiset(s.exact for s in new):
        orders = _orders([s.name for s in old], [s.name for s in new])
        return [
            catalogue.finding("PG201", "the same tools in another order", evidence=orders, pointer=pointer)
        ]
    names_old, names_new = Multiset(s.name for s in old), Multiset(s.name for s in new)
    if names_old == names_new:
        return _edited(catalogue, head, old, new, pointer)
    added, removed = list((names_new - names_old).elements()), list((names_old - names_new).elements())
    parts = [f"added {_names(added)}"] if added else []
    parts += [f"removed {_names(removed)}"] if removed else []
    text = " and ".join(parts)
    if (added and removed) or per_turn:
        return [catalogue.finding("PG404", f"the tool list is chosen anew: {text}", pointer=pointer)]
    if added:
        return [catalogue.finding("PG401", f"{text} to the tools", pointer=pointer)]
    return [catalogue.finding("PG402", f"{text} from the tools", pointer=pointer)]


def _edited(
    catalogue: Catalogue, head: HeadCauses, old: Sequence[Segment], new: Sequence[Segment], pointer: str
) -> list[Finding]:
    """The same names, other definitions: written otherwise, or with other content."""
    before = {s.name: s for s in old}
    changed = [(before[s.name], s) for s in new if before[s.name].exact != s.exact]
    if not changed:
        return [catalogue.finding("PG201", "the same tools in another order", pointer=pointer)]
    real = [(a, b) for a, b in changed if a.alike != b.alike]
    if not real:
        return [same_content(catalogue, *changed[0], pointer)]
    names = _names([b.name or "?" for _, b in real])
    first = catalogue.finding("PG403", f"the definition of {names} changed", pointer=pointer)
    # A clock or a count in a description is worth its own name; other edits are not.
    a, b = (_spread(tool) for tool in real[0])
    inside = head.findings(a, b, "", pointer, where="a tool definition")
    return [first, *(f for f in inside if f.code in _VOLATILE)]


_VOLATILE = ("PG101", "PG102", "PG103", "PG104", "PG105", "PG106")


def _spread(tool: Segment) -> str:
    """A definition's JSON, a member to a line, so that its texts can be compared."""
    return msgspec.json.format(tool.json or "", indent=1)


def _names(names: Sequence[str | None]) -> str:
    shown = ", ".join(str(name) for name in names[:4])
    return f"{shown} and {len(names) - 4} more" if len(names) > 4 else shown


def _orders(old: Sequence[str | None], new: Sequence[str | None]) -> str:
    first = next((i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), 0)
    window = slice(first, first + 4)
    return f"from position {first}: {_names(old[window])} became {_names(new[window])}"
