"""The values of a trial: what a server was asked, what it said, and how that stands to the prediction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from prefixguard.trial.evidence import Evidence
from prefixguard.trial.fit import Fit

type TrialVerdict = Literal["exact", "inside", "less", "more"]


@dataclass(frozen=True, slots=True)
class EngineFacts:
    """The server of a trial.

    rule: the cache rule that predicted, as `--server` takes it. flags: its
    options as far as they are known. windowed: whether some layers keep less
    than the whole prompt; None when nobody could say. caching: False when the
    server says that it keeps nothing.
    """

    kind: str
    version: str
    model: str
    rule: str
    flags: tuple[str, ...] = ()
    windowed: bool | None = None
    caching: bool = True


@dataclass(frozen=True, slots=True)
class Sample:
    """One request of one run: cached tokens as reported, milliseconds; None where the server said nothing."""

    cached: int | None
    first_token_ms: float | None
    prefill_ms: float | None


@dataclass(frozen=True, slots=True)
class MeasuredTurn:
    """One turn, predicted and measured. Times are medians over the runs.

    measured: cached tokens of the first run; measured_each: of every run.
    explanation: the code that accounts for a difference; words: the same as a
    sentence, also where no code fits. cause: why the prompt parted, for a
    break. parent_tokens: of the prompt that this one continues. break_ms: what
    its re-billed tokens cost on this machine. evidence: what the server showed
    beside its usage, where it showed anything.
    """

    index: int
    session: str
    thread: int
    shape: str
    prompt_tokens: int
    predicted_low: int
    predicted_high: int
    measured: int
    measured_each: tuple[int, ...]
    verdict: TrialVerdict
    explanation: str | None
    words: str
    first_token_ms: float | None
    prefill_ms: float | None
    exact_ids: bool
    is_break: bool = False
    cause: str | None = None
    rebilled: int = 0
    parent_tokens: int | None = None
    break_ms: float | None = None
    evidence: Evidence | None = None


@dataclass(frozen=True, slots=True)
class Skipped:
    """An exchange of the record that could not be measured, and why."""

    index: int
    reason: str


@dataclass(frozen=True, slots=True)
class Trial:
    """Everything that a trial found. Counts of `exact` and `inside` are in turns."""

    engine: EngineFacts
    turns: tuple[MeasuredTurn, ...]
    skipped: tuple[Skipped, ...]
    fit: Fit | None
    repeat: int
    warm_up: int
    notes: tuple[str, ...] = ()

    def count(self, verdict: TrialVerdict) -> int:
        """How many turns have this verdict."""
        return sum(turn.verdict == verdict for turn in self.turns)

    @property
    def accounted(self) -> int:
        """Turns that read less than predicted, and exactly what the cache's own events had left of them."""
        return sum(
            turn.verdict == "less" and turn.evidence is not None and turn.evidence.left == turn.measured
            for turn in self.turns
        )

    @property
    def break_ms(self) -> float | None:
        """What all breaks of one run cost; None when there is none, or no time is known."""
        known = [turn.break_ms for turn in self.turns if turn.break_ms is not None]
        return sum(known) if known else None
