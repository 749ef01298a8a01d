"""What counts as a break, and how a server's report stands to the prediction."""

from __future__ import annotations

from prefixguard.caches.rule import CacheRule
from prefixguard.divergence import Parting
from prefixguard.finding import Finding
from prefixguard.measure import Numbers
from prefixguard.shape import LEAST_REBILLED
from prefixguard.turn import Shape, Usage, Verdict

_LEAST_LOST = 256
_LEAST_SIDE = 1024
_SLACK = 0.03


def tolerance_of(rule: CacheRule, numbers: Numbers, total: int) -> int:
    """Tokens by which a report may differ from the prediction: a block, or 3 % where counts are estimates."""
    return rule.grain if numbers.exact else max(rule.grain, round(_SLACK * total))


def verdict_of(usage: Usage | None, numbers: Numbers, tolerance: int) -> Verdict:
    """The reported read against the predicted interval."""
    if usage is None or usage.read is None:
        return "not-reported"
    slack = 0 if numbers.exact and numbers.method == "server" else tolerance
    if usage.read < numbers.readable.low - slack:
        return "less"
    if usage.read > numbers.readable.high + slack:
        return "more"
    return "as-predicted"


def confirmed(parting: Parting | None, numbers: Numbers, reported: int | None, rule: CacheRule) -> bool:
    """Whether a divergence that only some servers see was seen by this one."""
    if parting is None or parting.certainty == "certain" or numbers.method == "server":
        return True
    if reported is None or reported >= numbers.keep - rule.grain:
        return False
    seen = parting.parameter is not None
    expected = numbers.got if seen else max(numbers.got, numbers.readable.high)
    return reported <= expected + max(rule.grain, round(_SLACK * numbers.prompt))


def costs_enough(shape: Shape, named: list[Finding], numbers: Numbers, lost: int, again: int) -> bool:
    """Whether a named divergence re-bills enough to be a break."""
    if shape == "side":
        return again >= max(_LEAST_SIDE, numbers.keep // 4)
    return again >= LEAST_REBILLED or (named[0].code == "PG303" and lost >= _LEAST_LOST)
