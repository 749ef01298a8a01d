"""How often a cause recurs in its thread, and whether a break was a decision.

A rule, not a guess: what the catalogue allows to be deliberate, happens once or
as an event, and (for history work) freed a quarter of the prompt, is a
decision; the same act on every request is a fault.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from prefixguard.finding import Finding, Recurrence
from prefixguard.prompt import Prompt
from prefixguard.tokens.layout import Layout
from prefixguard.turn import Turn

MOST = 0.8
FEW = 0.2
FREED = 0.25
_NEEDS_ROOM = ("PG302", "PG303", "PG304")


@dataclass(frozen=True, slots=True)
class Facts:
    """What recurrence needs to know of a turn beside the turn itself.

    user_turn: its tail has a new user message. freed: the part of the earlier
    prompt that is no longer sent, 0 to 1. deliberate: codes that may be chosen.
    """

    user_turn: bool
    freed: float


def recurrence(fired: Sequence[bool], user_turns: Sequence[bool]) -> Recurrence:
    """How a code recurs over the turns with a parent, from its first firing on."""
    if True not in fired:
        return "once"
    start = fired.index(True)
    fired, user_turns = fired[start:], user_turns[start:]
    times = sum(fired)
    if times < 2:
        return "once"
    if times >= MOST * len(fired):
        return "every-request"
    on_user = sum(1 for f, u in zip(fired, user_turns, strict=True) if f and u)
    off_user = times - on_user
    users = sum(user_turns)
    others = len(fired) - users
    if users and on_user >= MOST * users and off_user < FEW * max(others, 1):
        return "every-user-turn"
    return "event"


def relabel(
    turns: Sequence[Turn], facts: Sequence[Facts], may_be_chosen: Iterable[str], declared: Iterable[str] = ()
) -> list[Turn]:
    """The turns of a session with recurrence and deliberateness set on every finding.

    declared: codes that the user declares deliberate.
    """
    chosen, always = frozenset(may_be_chosen), frozenset(declared)
    threads: dict[int, list[int]] = defaultdict(list)
    for i, turn in enumerate(turns):
        if turn.parent is not None:
            threads[turn.thread].append(i)
    kinds: dict[tuple[int, str], Recurrence] = {}
    for thread, places in threads.items():
        users = [facts[i].user_turn for i in places]
        codes = {f.code for i in places for f in turns[i].findings}
        for code in codes:
            fired = [any(f.code == code for f in turns[i].findings) for i in places]
            kinds[thread, code] = recurrence(fired, users)
    return [
        _labelled(
            turn,
            fact,
            {code: kind for (thread, code), kind in kinds.items() if thread == turn.thread},
            chosen,
            always,
        )
        for turn, fact in zip(turns, facts, strict=True)
    ]


def _labelled(
    turn: Turn, facts: Facts, kinds: dict[str, Recurrence], chosen: frozenset[str], always: frozenset[str]
) -> Turn:
    if not turn.findings:
        return turn

    def label(finding: Finding) -> Finding:
        kind = kinds.get(finding.code, "once")
        decided = finding.code in always or (
            finding.code in chosen
            and kind in ("once", "event")
            and (finding.code not in _NEEDS_ROOM or facts.freed >= FREED)
        )
        return finding.but(recurrence=kind, deliberate=decided)

    return replace(turn, findings=tuple(label(f) for f in turn.findings))


def facts_of(earlier: Layout | None, later: Layout, *, is_break: bool) -> Facts:
    """The facts of a turn, from its layout and its parent's."""
    return Facts("user" in _tail_roles(later.prompt), _freed(earlier, later) if earlier and is_break else 0.0)


def _tail_roles(prompt: Prompt) -> set[str]:
    roles: set[str] = set()
    for _, segment in reversed(prompt.history):
        if segment.role == "assistant":
            break
        roles.add(segment.role)
    return roles


def _freed(earlier: Layout, later: Layout) -> float:
    """The part of the earlier prompt that the later one no longer sends, 0 to 1."""
    there = {s.alike for s in later.prompt.segments}
    known = {s.alike for s in earlier.prompt.segments}
    n = len(earlier.counts)
    gone = sum(
        c for s, c in zip(earlier.prompt.segments, earlier.counts, strict=True) if s.alike not in there
    )
    new = sum(
        c for s, c in zip(later.prompt.segments[:n], later.counts[:n], strict=True) if s.alike not in known
    )
    total = sum(earlier.counts)
    return max(0, gone - new) / total if total else 0.0
