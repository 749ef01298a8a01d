"""Two prompts side by side, segment by segment: what stayed, what changed, what came, went or moved."""

from __future__ import annotations

from collections import Counter as Multiset
from collections.abc import Callable
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any, Literal

from prefixguard.prompt import Prompt, Segment

type Change = Literal["same", "rewritten", "changed", "gone", "new", "moved"]
type _Entry = tuple[str, Segment]


@dataclass(frozen=True, slots=True)
class Step:
    """One segment of the later prompt, or one that is gone from the earlier.

    change: "same" to the byte; "rewritten": same content, other bytes;
    "moved": gone here, and at another place of the other prompt. before, after:
    pointers, None where the segment is not in that prompt. tokens: of the
    later one, or of the one that is gone. old, new: the segments.
    """

    change: Change
    before: str | None
    after: str | None
    tokens: int
    old: Segment | None
    new: Segment | None


def compare_prompts(earlier: Prompt, later: Prompt, count: Callable[[Segment], int]) -> list[Step]:
    """Every segment of both prompts, in the order of the later one.

    count: tokens of a segment.
    """
    later = later.in_order(earlier.order)
    a = [(base + segment.pointer, segment) for base, segment in earlier.entries]
    b = [(base + segment.pointer, segment) for base, segment in later.entries]
    common = 0
    while common < min(len(a), len(b)) and a[common][1].exact == b[common][1].exact:
        common += 1
    steps = [_both("same", one, other, count) for one, other in zip(a[:common], b[:common], strict=True)]
    a, b = a[common:], b[common:]
    gone_alike = Multiset(segment.alike for _, segment in a)
    new_alike = Multiset(segment.alike for _, segment in b)
    both = gone_alike & new_alike
    matcher = SequenceMatcher(None, [s.alike for _, s in a], [s.alike for _, s in b], autojunk=False)
    for tag, a1, a2, b1, b2 in matcher.get_opcodes():
        if tag == "equal":
            steps += [
                _both("same" if x[1].exact == y[1].exact else "rewritten", x, y, count)
                for x, y in zip(a[a1:a2], b[b1:b2], strict=True)
            ]
        else:
            steps += _replaced(a[a1:a2], b[b1:b2], both, count)
    return steps


def _replaced(
    old: list[_Entry], new: list[_Entry], elsewhere: Multiset[bytes], count: Callable[[Segment], int]
) -> list[Step]:
    """What stands between two parts that both prompts share: paired by kind and role, in order."""
    steps: list[Step] = []
    left = [entry for entry in old if not elsewhere[entry[1].alike]]
    steps += [_one("moved", entry, None, count) for entry in old if elsewhere[entry[1].alike]]
    for entry in new:
        if elsewhere[entry[1].alike]:
            steps.append(_one("moved", None, entry, count))
            continue
        partner = next((one for one in left if _comparable(one[1], entry[1])), None)
        if partner is None:
            steps.append(_one("new", None, entry, count))
            continue
        place = left.index(partner)
        steps += [_one("gone", one, None, count) for one in left[:place]]
        left = left[place + 1 :]
        steps.append(_both("changed", partner, entry, count))
    return steps + [_one("gone", one, None, count) for one in left]


def _comparable(one: Segment, other: Segment) -> bool:
    return one.kind is other.kind and one.role == other.role and one.name == other.name


def _both(change: Change, old: _Entry, new: _Entry, count: Callable[[Segment], int]) -> Step:
    return Step(change, old[0], new[0], count(new[1]), old[1], new[1])


def _one(change: Change, old: _Entry | None, new: _Entry | None, count: Callable[[Segment], int]) -> Step:
    entry = new or old
    assert entry is not None
    return Step(
        change,
        old[0] if old else None,
        new[0] if new else None,
        count(entry[1]),
        old[1] if old else None,
        new[1] if new else None,
    )


def changed_parameters(earlier: Prompt, later: Prompt) -> list[tuple[str, str | None, str | None]]:
    """(name, value before, value after) of the parameters in the cache key that differ; values are JSON."""
    was = {parameter.name: parameter.value for parameter in earlier.parameters}
    now = {parameter.name: parameter.value for parameter in later.parameters}
    names = dict.fromkeys([*was, *now])
    return [(name, was.get(name), now.get(name)) for name in names if was.get(name) != now.get(name)]


def steps_to_json(steps: list[Step]) -> list[dict[str, Any]]:
    """The steps for other programs, with the texts of what is not the same."""
    return [
        {
            "change": step.change,
            "before": step.before,
            "after": step.after,
            "kind": _segment(step).kind.value,
            "role": _segment(step).role,
            "name": _segment(step).name,
            "tokens": step.tokens,
            **(
                {}
                if step.change == "same"
                else {
                    "text_before": step.old.text if step.old else None,
                    "text_after": step.new.text if step.new else None,
                }
            ),
        }
        for step in steps
    ]


def _segment(step: Step) -> Segment:
    segment = step.new or step.old
    assert segment is not None
    return segment
