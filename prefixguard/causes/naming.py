"""Names a divergence: by where it lies, the parameters', tools', head's or history's causes are asked."""

from __future__ import annotations

from collections import Counter as Multiset
from collections.abc import Sequence

from prefixguard.causes.evidence import Catalogue, Evidence
from prefixguard.causes.form import same_content
from prefixguard.causes.head import HeadCauses
from prefixguard.causes.history import history_change, summary_in_head
from prefixguard.causes.parameters import parameter_change
from prefixguard.causes.tools import tool_change
from prefixguard.finding import Finding
from prefixguard.prompt import Segment


def name_divergence(
    catalogue: Catalogue,
    head: HeadCauses,
    evidence: Evidence,
    *,
    replies: Sequence[Segment] = (),
    summaries: Sequence[str] = (),
    tools_changed_before: bool = False,
) -> list[Finding]:
    """The findings for a divergence, the primary one first."""
    parting = evidence.parting
    a, b = evidence.earlier.prompt, evidence.later.prompt
    if parting.parameter is not None:
        first = parameter_change(catalogue, *parting.parameter)
        return [first.but(primary=True)]
    group = b.group(parting.boundary) if parting.new is not None else a.group(parting.boundary)
    old_group = a.group(parting.boundary) if parting.old is not None else group
    in_tools = "tools" in (group, old_group) and [s.exact for _, s in a.tools] != [
        s.exact for _, s in b.tools
    ]
    if not in_tools and "history" not in (group, old_group):
        group = old_group = "head"
    if group == "head" and _head_grew(evidence) and _history_replaced(evidence):
        return [summary_in_head(catalogue, evidence, summaries).but(primary=True)]
    if in_tools or "head" in (group, old_group):
        found = tool_change(catalogue, head, evidence, per_turn=tools_changed_before) if in_tools else []
        if not in_tools and _tools_replaced(evidence):
            found = tool_change(catalogue, head, evidence, per_turn=tools_changed_before)
        if found and found[0].code in ("PG401", "PG402", "PG403", "PG404") and _head_replaced(evidence):
            mode = catalogue.finding(
                "PG410", "tools and system text changed together", pointer=parting.pointer
            )
            return [mode.but(primary=True), *found]
        if in_tools:
            return [found[0].but(primary=True), *found[1:], *_behind(catalogue, head, evidence)]
        first, *others = head_change(catalogue, head, evidence)
        return [first.but(primary=True), *others]
    return [history_change(catalogue, evidence, replies, summaries).but(primary=True)]


def head_change(catalogue: Catalogue, head: HeadCauses, evidence: Evidence) -> list[Finding]:
    """The findings for a difference in the system text, the decisive one first."""
    old, new = evidence.parting.old, evidence.parting.new
    if old is not None and new is not None and old.alike == new.alike and old.exact != new.exact:
        return [same_content(catalogue, old, new, evidence.parting.pointer)]
    return head.name(evidence)


def _head_grew(evidence: Evidence) -> bool:
    """Whether the head has a further block, or a block with text behind what it held."""
    old, new = evidence.parting.old, evidence.parting.new
    if len(evidence.later.prompt.head) > len(evidence.earlier.prompt.head):
        return True
    return (
        old is not None
        and new is not None
        and evidence.parting.char >= len(old.text.rstrip()) < len(new.text) - 120
    )


def _history_replaced(evidence: Evidence) -> bool:
    """Whether less than half of the earlier history still stands in the later one."""
    kept = Multiset(evidence.fresh.alikes)
    weights = evidence.parent.weights
    same = sum(w for w, alike in zip(weights, evidence.parent.alikes, strict=True) if kept[alike])
    return same * 2 < sum(weights)


def _tools_replaced(evidence: Evidence) -> bool:
    """Whether the names of the tools differ."""
    old, new = evidence.earlier.prompt.tools, evidence.later.prompt.tools
    return Multiset(s.name for _, s in old) != Multiset(s.name for _, s in new)


def _head_replaced(evidence: Evidence) -> bool:
    """Whether less than half of the earlier head's text still stands in the later head.

    Of a block that changed, its start and end may still stand: a word that
    changed in a long text does not replace it.
    """
    old, new = evidence.earlier.prompt.head, evidence.later.prompt.head
    kept = Multiset(s.exact for _, s in new)
    same = total = 0
    for i, (_, segment) in enumerate(old):
        total += len(segment.text)
        if kept[segment.exact]:
            same += len(segment.text)
        elif i < len(new):
            same += _ends_kept(segment.text, new[i][1].text)
    return bool(old) and same * 2 < total


def _ends_kept(old: str, new: str) -> int:
    """Characters of the common start and of the common end."""
    least = min(len(old), len(new))
    start = next((i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), least)
    behind = zip(reversed(old), reversed(new), strict=False)
    end = next((i for i, (a, b) in enumerate(behind) if a != b), least)
    return min(start + end, least)


def _behind(catalogue: Catalogue, head: HeadCauses, evidence: Evidence) -> list[Finding]:
    """A second cause in the head, behind a divergence in the tools: mending one alone would not help."""
    old, new = evidence.earlier.prompt.head, evidence.later.prompt.head
    for (_, before), (base, after) in zip(old, new, strict=False):
        if before.exact != after.exact:
            if before.alike == after.alike:
                return [same_content(catalogue, before, after, base + after.pointer)]
            return head.findings(before.text, after.text, "", base + after.pointer, "changed as well")
    return []
