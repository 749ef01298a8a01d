"""The block-quantised longest prefix: a hit is as long as what is shared, in whole blocks.

OpenAI before 5.6, most hosted services, vLLM and SGLang with full attention,
llama.cpp (a block of one token).
"""

from __future__ import annotations

from itertools import repeat

from prefixguard.caches.model import Partial, Readable, Request
from prefixguard.caches.rule import CacheRule
from prefixguard.tokens.layout import extend_chain


class PrefixCache:
    """One domain. Identities of all prefixes seen, each with the last exchange that had it."""

    def __init__(self, rule: CacheRule, minimum: int) -> None:
        self._rule = rule
        self._minimum = minimum
        self._last: dict[bytes, int] = {}
        self._replied: dict[bytes, int] = {}
        self._times: dict[int, float] = {}
        self._begun: dict[int, float | None] = {}

    def floor(self, tokens: int, total: int) -> int:
        """The longest hit that `tokens` of shared prefix allow."""
        if not self._rule.hosted:
            tokens = min(tokens, total - 1)
        whole = tokens // self._rule.grain * self._rule.grain
        return whole if whole >= max(self._minimum, 1) else 0

    def read(self, request: Request, partial: Partial) -> Readable:
        layout = request.layout
        boundary = _longest(layout.chain, self._last)
        donor = self._last.get(layout.chain[boundary])
        if donor is None:
            return Readable()
        common = layout.ends[boundary]
        if boundary < len(layout.counts):
            common += partial(request, boundary, donor)
        sure = common
        if self._rule.reply:
            with_reply = boundary
            while with_reply + 1 < len(layout.chain) and layout.chain[with_reply + 1] in self._replied:
                with_reply += 1
            if with_reply > boundary:
                donor = self._replied[layout.chain[with_reply]]
                common = max(common, layout.ends[with_reply])
        age = request.t - self._times[donor]
        high = ageless = self.floor(common, layout.total)
        low = min(self.floor(sure, layout.total), high)
        if self._rule.hosted:
            # Where a service does not publish its blocks, a shorter hit is no news.
            low = max(0, low - (self._rule.grain if self._rule.verified else max(self._rule.grain, 256)))
            low = low if low >= self._minimum else 0
        if self._rule.idle is not None and age > self._rule.idle:
            low = 0
        if self._rule.longest is not None and age > self._rule.longest:
            high = 0
        begun = self._begun.get(donor)
        racing = not request.settled and begun is not None and request.t < begun
        return Readable(0 if racing else low, high, donor, common, ageless, high if racing else 0, 0, age)

    def keep(self, request: Request, t: float) -> int:
        total = request.layout.total
        last = self._last.get(request.layout.chain[-1])
        if last is None or (self._rule.longest is not None and t - self._times[last] > self._rule.longest):
            return 0
        return self.floor(total, total + 1)

    def got(self, request: Request, boundary: int, tokens: int) -> int:
        return self.floor(tokens, request.layout.total)

    def observe(self, request: Request) -> None:
        layout = request.layout
        self._last.update(zip(layout.chain, repeat(request.index)))
        if self._rule.reply and request.reply:
            chain = extend_chain(layout.chain[-1], request.reply)
            self._replied.update(dict.fromkeys(chain, request.index))
        self._times[request.index] = request.t
        self._begun[request.index] = request.begun


def _longest(chain: list[bytes], known: dict[bytes, int]) -> int:
    """The last boundary whose identity is known. All shorter prefixes of a known one are known too."""
    low, high = 0, len(chain)
    while high - low > 1:
        middle = (low + high) // 2
        if chain[middle] in known:
            low = middle
        else:
            high = middle
    return low


class StateCache:
    """Only positions with a stored state can be resumed: ends of prompts and replies, seen junctions.

    DeepSeek V4 and later; vLLM and llama.cpp with sliding-window or recurrent layers.
    """

    def __init__(self, rule: CacheRule, minimum: int) -> None:
        self._rule = rule
        self._minimum = minimum
        self._seen: dict[bytes, int] = {}
        self._states: dict[bytes, int] = {}
        self._times: dict[int, float] = {}

    def _floor(self, tokens: int) -> int:
        whole = tokens // self._rule.grain * self._rule.grain
        return whole if whole >= max(self._minimum, 1) else 0

    def read(self, request: Request, partial: Partial) -> Readable:
        layout = request.layout
        boundary = _longest(layout.chain, self._seen)
        donor = self._seen.get(layout.chain[boundary])
        if donor is None:
            return Readable()
        common = layout.ends[boundary]
        if boundary < len(layout.counts):
            common += partial(request, boundary, donor)
        state = self._state_at(layout.chain, boundary)
        age = request.t - self._times[donor]
        ageless = self._floor(layout.ends[state])
        # States at fixed intervals are not published: anything up to the shared part is possible.
        high = ageless if not self._rule.hosted else max(ageless, self._floor(common))
        if self._rule.longest is not None and age > self._rule.longest:
            high = 0
        return Readable(0, high, donor, common, ageless, 0, 0, age)

    def _state_at(self, chain: list[bytes], boundary: int) -> int:
        return next((i for i in range(boundary, 0, -1) if chain[i] in self._states), 0)

    def keep(self, request: Request, t: float) -> int:
        last = self._states.get(request.layout.chain[-1])
        if last is None or (self._rule.longest is not None and t - self._times[last] > self._rule.longest):
            return 0
        return self._floor(request.layout.total)

    def got(self, request: Request, boundary: int, tokens: int) -> int:
        return self._floor(request.layout.ends[self._state_at(request.layout.chain, boundary)])

    def observe(self, request: Request) -> None:
        layout = request.layout
        junction = _longest(layout.chain, self._seen)
        if 0 < junction < len(layout.chain) - 1:
            self._states[layout.chain[junction]] = request.index
        self._seen.update(dict.fromkeys(layout.chain, request.index))
        self._states[layout.chain[-1]] = request.index
        if request.reply:
            chain = extend_chain(layout.chain[-1], request.reply)
            self._seen.update(dict.fromkeys(chain, request.index))
            self._states[chain[-1]] = request.index
        self._times[request.index] = request.t
