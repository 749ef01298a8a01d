"""A prompt laid out for a cache: where each segment ends in tokens, and the chained identity up to there.

`chain[i]` identifies everything a server reads before segment `i`, the keyed
parameters included: equal chains mean equal prefixes, whoever sent them.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from operator import attrgetter

from xxhash import xxh3_128, xxh3_128_digest

from prefixguard.prompt import Mark, Parameter, Prompt
from prefixguard.tokens.counter import Counter

_mark = attrgetter("mark")


@dataclass(frozen=True, slots=True)
class KeyedParameters:
    """The parameters of a prompt by the level at which they enter the cache key."""

    top: tuple[Parameter, ...] = ()
    head: tuple[Parameter, ...] = ()
    history: tuple[Parameter, ...] = ()
    unknown: tuple[Parameter, ...] = ()


class Layout:
    """Token positions of a prompt of n segments. Immutable; what is dropped is counted anew when asked for.

    marks: (boundary, mark) for every breakpoint, a boundary i standing behind
    segment i - 1. scale: the server's tokens to one of ours. total: tokens of
    the whole prompt.
    """

    __slots__ = (
        "_chain", "_counts", "_ends", "counter", "keyed", "marks", "prompt", "scale", "size", "total",
    )  # fmt: skip

    def __init__(
        self, prompt: Prompt, counter: Counter, keyed: KeyedParameters, scale: float,
        counts: tuple[int, ...], chain: list[bytes], ends: array[int],
    ) -> None:  # fmt: skip
        self.prompt = prompt
        self.counter = counter
        self.keyed = keyed
        self.scale = scale
        self.marks = _marks(prompt)
        self.size = 6 * len(counts)
        self._counts: tuple[int, ...] | None = counts
        self._chain: list[bytes] | None = chain
        self._ends: array[int] | None = ends
        self.total = ends[-1]

    @property
    def counts(self) -> tuple[int, ...]:
        """Tokens of each segment, n ints, not scaled."""
        if self._counts is None:
            self._counts = tuple(self.counter.segments(self.prompt.segments))
        return self._counts

    @property
    def ends(self) -> array[int]:
        """n + 1 ints, ends[i] tokens before segment i, scaled."""
        if self._ends is None:
            self._ends = _scaled_ends(self.counts, self.scale)
        return self._ends

    @property
    def chain(self) -> list[bytes]:
        """n + 1 digests, chain[i] of everything before segment i."""
        if self._chain is None:
            self._chain = _chain(self.prompt, self.keyed, None, 0)
        return self._chain

    def pack(self) -> None:
        """Drops the positions."""
        self._counts = self._ends = self._chain = None
        self.prompt.pack()


def lay_out(
    prompt: Prompt,
    counter: Counter,
    keyed: KeyedParameters = KeyedParameters(),
    *,
    reported: int | None = None,
    last_scale: float = 1.0,
    earlier: Layout | None = None,
) -> Layout:
    """Counts a prompt and chains its identities, reusing what `earlier` shares with it.

    reported: the prompt's tokens as the server counted them, if it did: the
    counts are scaled to it. last_scale: the session's ratio so far.
    """
    segments = prompt.segments
    common = common_segments(earlier.prompt, prompt) if earlier is not None else 0
    if earlier is not None and common and earlier.counter is counter:
        counts = (*earlier.counts[:common], *counter.segments(segments[common:], prompt.exacts[common:]))
    else:
        counts = tuple(counter.segments(segments))
    estimated = sum(counts)
    scale = last_scale
    if reported is not None and estimated:
        ratio = reported / estimated
        scale = ratio if 0.4 <= ratio <= 2.5 else last_scale
    if earlier is not None and common and scale == earlier.scale == 1.0 and earlier.counter is counter:
        ends = earlier.ends[:common]
        ends.extend(accumulate(counts[common:], initial=earlier.ends[common]))
    else:
        ends = _scaled_ends(counts, scale)
    return Layout(prompt, counter, keyed, scale, counts, _chain(prompt, keyed, earlier, common), ends)


def _scaled_ends(counts: Sequence[int], scale: float) -> array[int]:
    if scale == 1.0:
        return array("q", accumulate(counts, initial=0))
    return array("q", [int(end * scale + 0.5) for end in accumulate(counts, initial=0)])


def common_segments(a: Prompt, b: Prompt) -> int:
    """How many segments two prompts share from the start."""
    return common_length(a.exacts, b.exacts)


def common_length(a: tuple[bytes, ...], b: tuple[bytes, ...]) -> int:
    """Length of the common prefix; whole slices are compared at once, then halves."""
    n = min(len(a), len(b))
    if a[:n] == b[:n]:
        return n
    low, high = 0, n
    while high - low > 1:
        middle = (low + high) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle
    return low


def _chain(prompt: Prompt, keyed: KeyedParameters, earlier: Layout | None, common: int) -> list[bytes]:
    exacts = prompt.exacts
    first, second, _ = prompt.order
    inner = len(getattr(prompt, first))
    history = inner + len(getattr(prompt, second))
    if earlier is not None and common and _same_key(earlier, keyed, prompt):
        chain = earlier.chain[: common + 1]
        start = common
    else:
        chain = [_parameters_digest(keyed.top)]
        start = 0
    at = chain[-1]
    mixed = {inner: keyed.head, history: keyed.history} if keyed.head or keyed.history else {}
    for i in range(start, len(exacts)):
        if mixed.get(i):
            at = xxh3_128_digest(at + _parameters_digest(mixed[i]))
        at = xxh3_128_digest(at + exacts[i])
        chain.append(at)
    return chain


def extend_chain(at: bytes, exacts: Sequence[bytes]) -> list[bytes]:
    """The chain carried on behind `at`, one digest for each further segment."""
    found = []
    for exact in exacts:
        at = xxh3_128_digest(at + exact)
        found.append(at)
    return found


def _same_key(earlier: Layout, keyed: KeyedParameters, prompt: Prompt) -> bool:
    old = earlier.keyed
    if (old.top, old.head, old.history) != (keyed.top, keyed.head, keyed.history):
        return False
    if not (keyed.head or keyed.history):
        return True
    # With parameters mixed in at group boundaries, the boundaries must lie in the same places.
    return (len(earlier.prompt.tools), len(earlier.prompt.head)) == (len(prompt.tools), len(prompt.head))


def _parameters_digest(parameters: tuple[Parameter, ...]) -> bytes:
    if not parameters:
        return b"\0" * 16
    hasher = xxh3_128()
    for parameter in parameters:
        hasher.update(f"{parameter.name}={parameter.value}\x1f".encode("utf-8", "surrogatepass"))
    return hasher.digest()


def _marks(prompt: Prompt) -> tuple[tuple[int, Mark], ...]:
    marks: list[Mark | None] = list(map(_mark, prompt.segments))
    found = []
    if marks.count(None) < len(marks):
        found = [(i, mark) for i, mark in enumerate(marks, start=1) if mark is not None]
    if prompt.automatic_mark is not None and prompt.segments:
        found.append((len(prompt.segments), prompt.automatic_mark))
    return tuple(found)
