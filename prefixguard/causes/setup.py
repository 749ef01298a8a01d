"""How the request is set up for caching: breakpoints, lifetimes, routing keys, minimum (PG5xx, PG706)."""

from __future__ import annotations

from itertools import pairwise

from prefixguard.caches.breakpoints import breakpoints
from prefixguard.caches.model import Readable
from prefixguard.caches.rule import CacheRule
from prefixguard.causes.evidence import Catalogue
from prefixguard.finding import Finding
from prefixguard.tokens.layout import Layout

_FROZEN_TAIL = 512


def switched_off(rule: CacheRule, layout: Layout) -> str | None:
    """The name of a parameter in the request that turns reuse off, or None."""
    values = {p.name: p.value for p in layout.prompt.parameters}
    for switch in rule.off:
        value = values.get(switch.name)
        if value is None:
            continue
        if value == switch.value or (switch.value is None and value not in ("null", "false", "0")):
            return switch.name
    return None


def setup_findings(
    catalogue: Catalogue,
    rule: CacheRule,
    layout: Layout,
    earlier: Layout | None,
    before: Layout | None,
    readable: Readable,
    minimum: int,
) -> list[Finding]:
    """What is wrong with the request's own settings, whatever its content.

    earlier: the parent's layout; before: the parent's parent's.
    """
    found = []
    off = switched_off(rule, layout)
    if off:
        found.append(
            catalogue.finding("PG706", f"{off} switches prompt reuse off for this request", pointer=f"/{off}")
        )
    if rule.hosted and minimum and 0 < layout.total < minimum and earlier is not None:
        found.append(
            catalogue.finding(
                "PG507",
                f"the prompt has about {layout.total:,} tokens; this server keeps none below {minimum:,}",
            )
        )
    if rule.kind == "breakpoint":
        found += _breakpoint_findings(catalogue, rule, layout, earlier, before, readable, minimum)
    return found


def _breakpoint_findings(
    catalogue: Catalogue,
    rule: CacheRule,
    layout: Layout,
    earlier: Layout | None,
    before: Layout | None,
    readable: Readable,
    minimum: int,
) -> list[Finding]:
    found = []
    marks = layout.marks
    if rule.marks and not rule.automatic and len(marks) > rule.marks:
        pointer = layout.prompt.pointer(marks[rule.marks][0] - 1)
        found.append(
            catalogue.finding(
                "PG502", f"{len(marks)} breakpoints; the API takes {rule.marks}", pointer=pointer
            )
        )
    lifetimes = [(b, rule.ttl_seconds(mark.ttl) or 0) for b, mark in marks]
    for (_, first), (boundary, second) in pairwise(lifetimes):
        if second > first:
            found.append(
                catalogue.finding(
                    "PG506", "a breakpoint with a longer lifetime stands behind one with a shorter",
                    pointer=layout.prompt.pointer(boundary - 1),
                )
            )  # fmt: skip
            break
    if not marks and not rule.automatic and earlier is not None and earlier.total >= minimum:
        found.append(
            catalogue.finding(
                "PG503", f"no breakpoint is set, so nothing of about {layout.total:,} tokens is cached"
            )
        )
    frozen = _frozen(rule, layout, earlier, before)
    if frozen:
        found.append(
            catalogue.finding(
                "PG504",
                f"the last breakpoint stood still for three turns; {frozen:,} tokens behind it stay uncached",
                pointer=layout.prompt.pointer(marks[-1][0] - 1),
            )
        )  # fmt: skip
    if readable.unreachable > readable.high:
        found.append(
            catalogue.finding(
                "PG505",
                f"an entry of {readable.unreachable:,} tokens lies more than {rule.lookback} blocks before "
                "the next breakpoint and is not found",
            )
        )
    return found


def _frozen(rule: CacheRule, layout: Layout, earlier: Layout | None, before: Layout | None) -> int:
    """Tokens behind a last breakpoint that stood in the same place for three turns, or 0."""
    if earlier is None or before is None or rule.automatic:
        return 0
    places = []
    for each in (before, earlier, layout):
        if not each.marks:
            return 0
        places.append(each.chain[each.marks[-1][0]])
    tail = layout.total - layout.ends[layout.marks[-1][0]]
    grew = tail > earlier.total - earlier.ends[earlier.marks[-1][0]]
    return tail if len(set(places)) == 1 and grew and tail >= _FROZEN_TAIL else 0


def volatile_tail(rule: CacheRule, earlier: Layout, boundary: int, minimum: int) -> bool:
    """Whether the only entry of the earlier request ended in a block that has been replaced since."""
    written = [b for b, _ in breakpoints(rule, earlier)]
    if not written or min(written) <= boundary:
        return False
    at_end = boundary >= len(earlier.counts) - 1
    return at_end and earlier.ends[boundary] >= max(minimum, 1)
