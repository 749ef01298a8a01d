"""How a cache does as memory, sessions, block size and format change, and what breaks cost in capacity."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from prefixguard.simulate.play import Outcome, Prefill, play
from prefixguard.simulate.workload import Keys, Workload, at_once

_MOST_SESSIONS = 1024
_MOST_BLOCKS = 1_500_000
"""Blocks of one simulation when sessions are added up: more would take minutes."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One pool. memory: bytes for KV, None where it was given in tokens. format: of keys and values."""

    block: int
    blocks: int
    memory: int | None = None
    format: str = ""

    @property
    def tokens(self) -> int:
        """Tokens that it holds."""
        return max(self.blocks - 1, 0) * self.block


@dataclass(frozen=True, slots=True)
class Run:
    """One simulation. sessions: None when the workload was played as it was recorded."""

    setting: Setting
    sessions: int | None
    outcome: Outcome
    mended: Outcome | None = None


@dataclass(frozen=True, slots=True)
class Capacity:
    """Sessions that one pool serves.

    sessions: without breaks, the most at which eviction takes no more than the
    tolerated share of what could be read. With breaks, the most that cost no
    more prefill work than that many mended sessions do. at_least: the search
    ended there. computed: prompt tokens computed per request at that number.
    mended, mended_computed: the same without the breaks; None where there are
    none.
    """

    setting: Setting
    sessions: int
    at_least: bool
    computed: float
    mended: int | None = None
    mended_at_least: bool = False
    mended_computed: float | None = None


class Simulator:
    """Plays one workload, as sent and mended, under many settings; keys are made once per block size."""

    def __init__(
        self,
        sent: Workload,
        mended: Workload | None = None,
        *,
        in_flight: int = 1,
        prefill: Prefill | None = None,
    ) -> None:
        self.sent = sent
        self.mended = mended if mended is not None and sent.breaks else None
        self._in_flight = in_flight
        self._prefill = prefill
        self._keys: dict[int, Keys] = {}
        self._copies: dict[tuple[bool, int | None], Workload] = {}

    def run(self, setting: Setting, sessions: int | None) -> Run:
        """One simulation of the workload as sent, and of the mended one. Raises InputError."""
        mended = self._play(self.mended, setting, sessions) if self.mended is not None else None
        return Run(setting, sessions, self._play(self.sent, setting, sessions), mended)

    def runs(self, settings: Iterable[Setting], sessions: Iterable[int | None]) -> Iterator[Run]:
        """Every setting with every number of sessions."""
        numbers = list(sessions)
        for setting in settings:
            for number in numbers:
                yield self.run(setting, number)

    def capacity(self, setting: Setting, tolerated: float = 0.05) -> Capacity:
        """How many sessions at once the pool serves, and how many it would without the breaks."""

        def keeps(outcome: Outcome) -> bool:
            return not outcome.refused and outcome.possible - outcome.cached <= tolerated * outcome.possible

        whole = self.mended or self.sent
        most, open_end, outcome = self._most(whole, setting, keeps)
        computed = outcome.recomputed / max(outcome.requests, 1)
        if self.mended is None:
            return Capacity(setting, most, open_end, computed)
        affordable = _work(outcome) if most else 0.0

        def costs_no_more(outcome: Outcome) -> bool:
            return not outcome.refused and _work(outcome) <= affordable

        number, open_end_sent, broken = self._most(self.sent, setting, costs_no_more)
        return Capacity(
            setting,
            number,
            open_end_sent,
            broken.recomputed / max(broken.requests, 1),
            most,
            open_end,
            computed,
        )

    def _play(self, workload: Workload, setting: Setting, sessions: int | None) -> Outcome:
        place = (workload is self.sent, sessions)
        if place not in self._copies:
            self._copies[place] = workload if sessions is None else at_once(workload, sessions)
        keys = self._keys.setdefault(setting.block, Keys(setting.block))
        return play(
            self._copies[place], setting.blocks, keys, in_flight=self._in_flight, prefill=self._prefill
        )

    def _most(
        self, workload: Workload, setting: Setting, serves: Callable[[Outcome], bool]
    ) -> tuple[int, bool, Outcome]:
        """(sessions, whether there may be more, outcome at that number); 0 when not even one is served."""
        blocks = (
            sum(request.total for request in workload.requests) / max(workload.sessions, 1) / setting.block
        )
        limit = max(1, min(_MOST_SESSIONS, int(_MOST_BLOCKS / max(blocks, 1))))
        outcomes: dict[int, Outcome] = {}

        def holds(number: int) -> bool:
            outcomes[number] = self._play(workload, setting, number)
            return serves(outcomes[number])

        number = largest(holds, limit)
        return number, number == limit, outcomes[max(number, 1)]


def _work(outcome: Outcome) -> float:
    """Prefill work: seconds where they are known, else tokens."""
    return outcome.seconds if outcome.seconds is not None else float(outcome.recomputed)


def largest(holds: Callable[[int], bool], limit: int) -> int:
    """The largest number up to `limit` that holds, if all smaller ones do; 0 when 1 does not."""
    low, high = 0, 1
    while high <= limit and holds(high):
        low, high = high, high * 2
    high = min(high, limit + 1)
    while high - low > 1:
        middle = (low + high) // 2
        if holds(middle):
            low = middle
        else:
            high = middle
    return low
