"""Names a change of the tool definitions (PG201, PG202, PG401 to PG404)."""

from __future__ import annotations

from collections import Counter as Multiset

from prefixguard.causes.evidence import Catalogue, Evidence
from prefixguard.causes.form import same_content
from prefixguard.finding import Finding


def tool_change(catalogue: Catalogue, evidence: Evidence, *, per_turn: bool) -> Finding:
    """The finding for two different tool lists.

    per_turn: the list changed before in this thread, so it is chosen anew each turn.
    """
    old = [s for _, s in evidence.earlier.prompt.tools]
    new = [s for _, s in evidence.later.prompt.tools]
    pointer = evidence.parting.pointer
    if Multiset(s.exact for s in old) == Multiset(s.exact for s in new):
        return catalogue.finding(
            "PG201", "the same tools in another order",
            evidence=_orders([s.name for s in old], [s.name for s in new]), pointer=pointer,
        )  # fmt: skip
    names_old, names_new = Multiset(s.name for s in old), Multiset(s.name for s in new)
    if names_old == names_new:
        changed = [
            (a, b) for b in new for a in old if a.name == b.name and a.exact != b.exact
        ]  # fmt: skip
        rewritten = [(a, b) for a, b in changed if a.alike == b.alike]
        if len(rewritten) == len(changed) and rewritten:
            return same_content(catalogue, *rewritten[0], pointer)
        real = [b.name or "?" for a, b in changed if a.alike != b.alike]
        return catalogue.finding(
            "PG403", f"the definition of {_names(real)} changed", pointer=pointer, confidence="high"
        )
    added, removed = list((names_new - names_old).elements()), list((names_old - names_new).elements())
    parts = [f"added {_names(added)}"] if added else []
    parts += [f"removed {_names(removed)}"] if removed else []
    text = " and ".join(parts)
    if (added and removed) or per_turn:
        return catalogue.finding("PG404", f"the tool list is chosen anew: {text}", pointer=pointer)
    if added:
        return catalogue.finding("PG401", f"{text} to the tools", pointer=pointer)
    return catalogue.finding("PG402", f"{text} from the tools", pointer=pointer)


def _names(names: list[str | None]) -> str:
    shown = ", ".join(str(name) for name in names[:4])
    return f"{shown} and {len(names) - 4} more" if len(names) > 4 else shown


def _orders(old: list[str | None], new: list[str | None]) -> str:
    first = next((i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), 0)
    window = slice(first, first + 4)
    return f"from position {first}: {_names(old[window])} became {_names(new[window])}"
