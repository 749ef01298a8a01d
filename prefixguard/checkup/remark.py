"""One thing that a check-up says of a server."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

type Severity = Literal["problem", "advice", "ok", "unknown"]


@dataclass(frozen=True, slots=True)
class Remark:
    """topic: a name that programs can rely on. found: what is so. figure: the server's own words or
    numbers on which it rests, "" where it shows none. todo: what to do, "" where nothing is.
    """

    severity: Severity
    topic: str
    found: str
    figure: str = ""
    todo: str = ""


@dataclass(frozen=True, slots=True)
class Checkup:
    """What was examined, and what was found."""

    kind: str
    version: str
    url: str
    model: str
    remarks: tuple[Remark, ...]

    def count(self, severity: Severity) -> int:
        """How many remarks are that severe."""
        return sum(remark.severity == severity for remark in self.remarks)


def hit_rate(cached: float | None, total: float | None, names: str) -> Remark:
    """How much of all prompts was read from the cache since the server's start."""
    if cached is None or total is None:
        return Remark("unknown", "hit-rate", "the server shows no counts of cached tokens", f"no {names}")
    if not total:
        return Remark("unknown", "hit-rate", "no prompt has been evaluated since the start", f"{names} = 0")
    share = cached / total
    figure = f"{cached:,.0f} of {total:,.0f} prompt tokens ({names})"
    if share < 0.5:
        return Remark(
            "advice", "hit-rate", f"only {share:.0%} of all prompt tokens were read from the cache", figure,
            "record a session (`prefixguard run`) and look at its report: agents usually read over 80 %",
        )  # fmt: skip
    return Remark("ok", "hit-rate", f"{share:.0%} of all prompt tokens were read from the cache", figure)
