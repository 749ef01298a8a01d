"""How stable an agent's prompt is: where each request parts from the one before it, byte by byte.

This looks at the prompts itself and not at the analysis, so that the two can be
held against each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from bench.agents.cache import as_read, units
from bench.agents.script import tools_of
from bench.agents.upstream import Received


@dataclass(frozen=True)
class Step:
    """A request against the one before it in its line. kept: bytes they share; of: the earlier one's bytes.

    pure: everything of the earlier one stands in front of the new. place: the
    part that differs first ("tools[3]", "messages[1]"), "" for none.
    """

    kept: int
    of: int
    pure: bool
    place: str


@dataclass
class Stability:
    """An agent's two processes. within: the steps inside them. restart: the first of the second process."""

    requests: int
    side: int
    within: list[Step] = field(default_factory=list)
    restart: Step | None = None


def stability(prompts: Sequence[Received], first_ended: float) -> Stability:
    """prompts: of both processes in order. first_ended: when the first process ended."""
    main = [p for p in prompts if _is_main(p, prompts)]
    found = Stability(len(prompts), len(prompts) - len(main))
    for before, now in pairwise(main):
        step = _step(before, now)
        if before.t <= first_ended < now.t:
            found.restart = _best([p for p in main if p.t <= first_ended], now)
        else:
            found.within.append(step)
    return found


def _is_main(prompt: Received, prompts: Sequence[Received]) -> bool:
    """A helper request offers no tools, where the agent has any; a warm-up says nothing yet."""
    if prompt.prompt.get("generate") is False or prompt.api is None:
        return False
    return bool(tools_of(prompt.api, prompt.prompt)) or not any(
        p.api and tools_of(p.api, p.prompt) for p in prompts
    )


def _best(earlier: Sequence[Received], now: Received) -> Step:
    """Against whichever of the earlier requests shares most: what a cache could give after the restart."""
    return max((_step(one, now) for one in earlier), key=lambda step: step.kept)


def _step(before: Received, now: Received) -> Step:
    assert before.api is not None
    assert now.api is not None
    one, two = _units(before), _units(now)
    kept, total = 0, sum(len(unit) for _, unit in one)
    for (_, a), (place, b) in zip(one, two, strict=False):
        if a != b:
            shared = next(
                (i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b))
            )
            return Step(kept + shared, total, False, place)
        kept += len(a)
    return Step(kept, total, len(two) >= len(one), "" if len(two) >= len(one) else "the end is missing")


def _units(prompt: Received) -> list[tuple[str, bytes]]:
    assert prompt.api is not None
    body = as_read(prompt.host, prompt.prompt)
    tools = len(body.get("tools") or ())
    found = units(prompt.api, body)
    names = [f"tools[{i}]" for i in range(tools)]
    if prompt.api == "messages":
        system = body.get("system") or []
        names += [f"system[{i}]" for i in range(1 if isinstance(system, str) else len(system))]
        for i, message in enumerate(body.get("messages") or ()):
            content = message.get("content")
            names += [f"messages[{i}]"] * (1 if isinstance(content, str) else len(content))
    elif prompt.api == "chat":
        names += [f"messages[{i}]" for i in range(len(body.get("messages") or ()))]
    else:
        names += ["instructions" if prompt.api == "responses" else "systemInstruction"]
        names += [
            f"{'input' if prompt.api == 'responses' else 'contents'}[{i}]"
            for i in range(len(found) - len(names))
        ]
    return [(name, unit) for name, (unit, _) in zip(names, found, strict=True)]
