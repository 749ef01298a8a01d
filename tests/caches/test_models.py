"""The cache models by themselves: what can be read and kept; predictions never grow with age."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prefixguard.caches.breakpoints import BreakpointCache
from prefixguard.caches.choose import Chooser, cache_rules
from prefixguard.caches.model import CacheModel, Readable, Request
from prefixguard.caches.prefix import PrefixCache, StateCache
from prefixguard.caches.rule import CacheRule, with_options
from prefixguard.errors import InputError
from prefixguard.prompt import Mark, Prompt, Segment
from prefixguard.rulebook import Rulebook
from prefixguard.timeline import Timeline
from prefixguard.tokens.counter import Counter, Weights
from prefixguard.tokens.layout import KeyedParameters, Layout, lay_out
from prefixguard.wire.identity import text_segment

RULES = {rule.name: rule for rule in cache_rules(Rulebook())}


class Words:
    name, exact = "words", True

    def count(self, text: str) -> int:
        return len(text.split())


COUNTER = Counter(Words(), Weights(message=0))


def segment(name: str, tokens: int = 100, mark: str | None = None) -> Segment:
    """A text of that many tokens; `mark` puts a breakpoint on it."""
    text = " ".join(f"{name}{i}" for i in range(tokens))
    return text_segment(text, "user", "", mark=Mark(mark or None) if mark is not None else None)


def layout(*segments: Segment) -> Layout:
    prompt = Prompt("test", "m", (), (), tuple((f"/m/{i}", s) for i, s in enumerate(segments)))
    return lay_out(prompt, COUNTER, KeyedParameters())


def request(index: int, t: float, *segments: Segment, begun: float | None = None, **more: Any) -> Request:
    return Request(index, t, begun, layout(*segments), **more)


def nothing(request: Request, boundary: int, donor: int) -> int:
    return 0


def model(rule: CacheRule, minimum: int = 0) -> CacheModel:
    made = {"breakpoint": BreakpointCache, "state": StateCache, "prefix": PrefixCache, "handle": PrefixCache}
    found: CacheModel = made[rule.kind](rule, minimum)
    return found


def rule(kind: str, **more: Any) -> CacheRule:
    base = {"date": "2026-11-30", "source": "test", "name": "test", "title": "Test", "kind": kind}
    return msgspec.convert({**base, **more}, CacheRule)


A, B, C, D = (segment(name) for name in "abcd")


# -- longest prefix ---------------------------------------------------------------------------


def test_prefix_is_read_in_whole_blocks() -> None:
    cache = model(rule("prefix", grain=128, hosted=False))
    cache.observe(request(0, 0, A, B))
    found = cache.read(request(1, 10, A, B, C), nothing)
    assert (found.low, found.high, found.donor, found.common) == (128, 128, 0, 200)


def test_the_last_token_is_always_evaluated_by_engines() -> None:
    cache = model(rule("prefix", grain=1, hosted=False))
    cache.observe(request(0, 0, A, B))
    assert cache.read(request(1, 1, A, B), nothing).high == 199


def test_hosted_hits_are_likely_not_certain() -> None:
    cache = model(rule("prefix", grain=128, minimum=128, verified=True), 128)
    cache.observe(request(0, 0, A, B, C, D))
    found = cache.read(request(1, 10, A, B, C, D, A), nothing)
    assert (found.low, found.high) == (256, 384)
    unsure = model(rule("prefix", grain=128, minimum=128, verified=False), 128)
    unsure.observe(request(0, 0, A, B, C, D))
    found = unsure.read(request(1, 10, A, B, C, D, A), nothing)
    assert (found.low, found.high) == (128, 384)


def test_below_the_minimum_nothing_is_read() -> None:
    cache = model(rule("prefix", grain=1, hosted=False), 250)
    cache.observe(request(0, 0, A, B))
    assert cache.read(request(1, 1, A, B, C), nothing).high == 0
    cache.observe(request(1, 1, A, B, C))
    assert cache.read(request(2, 2, A, B, C, D), nothing).high == 300


def test_part_of_the_differing_segment_counts() -> None:
    cache = model(rule("prefix", grain=16, hosted=False))
    cache.observe(request(0, 0, A, B))
    found = cache.read(
        request(1, 1, A, C), lambda r, boundary, donor: 37 if (boundary, donor) == (1, 0) else 0
    )
    assert (found.common, found.high) == (137, 128)


def test_idle_and_longest_lifetimes() -> None:
    cache = model(rule("prefix", grain=1, idle=300, longest=3600, verified=True))
    cache.observe(request(0, 0, A, B))
    assert cache.read(request(1, 299, A, B, C), nothing).low == 199
    assert cache.read(request(1, 301, A, B, C), nothing).low == 0
    assert cache.read(request(1, 301, A, B, C), nothing).high == 200
    late = cache.read(request(1, 3601, A, B, C), nothing)
    assert (late.high, late.ageless) == (0, 200)


def test_reply_can_be_read_where_it_is_kept() -> None:
    for kept, high in ((True, 300), (False, 200)):
        cache = model(rule("prefix", grain=1, hosted=False, reply=kept))
        cache.observe(request(0, 0, A, B, reply=(C.exact,)))
        found = cache.read(request(1, 1, A, B, C, D), nothing)
        assert (found.low, found.high) == (200, high)


def test_requests_that_race_read_nothing_for_sure() -> None:
    cache = model(rule("prefix", grain=1, hosted=False))
    cache.observe(request(0, 0, A, B, begun=2.0))
    racing = cache.read(request(1, 1, A, B, C), nothing)
    assert (racing.low, racing.high, racing.raced) == (0, 200, 200)
    assert cache.read(request(1, 1, A, B, C, settled=True), nothing).low == 200


# -- breakpoints ------------------------------------------------------------------------------

ANTHROPIC = {"lookback": 20, "marks": 4, "unmarked": False, "ttl": {"5m": 300, "1h": 3600}}


def test_only_marked_places_are_kept() -> None:
    cache = model(rule("breakpoint", **ANTHROPIC))
    cache.observe(request(0, 0, A, segment("b", 100, ""), C))
    found = cache.read(request(1, 10, A, B, C, segment("d", 100, "")), nothing)
    assert (found.low, found.high, found.donor) == (200, 200, 0)
    unmarked = cache.read(request(1, 10, A, B, C, D), nothing)
    assert (unmarked.low, unmarked.high) == (0, 0)


def test_entry_outlives_its_lifetime_only_when_used() -> None:
    marked = segment("b", 100, "")
    cache = model(rule("breakpoint", **ANTHROPIC))
    cache.observe(request(0, 0, A, marked))
    assert cache.read(request(1, 300, A, marked), nothing).high == 200
    expired = cache.read(request(1, 301, A, marked), nothing)
    assert (expired.high, expired.ageless, expired.age) == (0, 200, 301)
    cache.observe(request(1, 290, A, marked))
    assert cache.read(request(2, 580, A, marked), nothing).high == 200


def test_longer_lifetime_asked_for() -> None:
    cache = model(rule("breakpoint", **ANTHROPIC))
    cache.observe(request(0, 0, A, segment("b", 100, "1h")))
    assert cache.read(request(1, 3600, A, segment("b", 100, "1h")), nothing).high == 200
    assert cache.read(request(1, 3601, A, segment("b", 100, "1h")), nothing).high == 0


def test_lookback_ends_after_twenty_blocks() -> None:
    cache = model(rule("breakpoint", **ANTHROPIC))
    cache.observe(request(0, 0, A, segment("b", 100, "")))
    for more, reached in ((18, 200), (19, 0)):
        fillers = [segment(f"x{i}_", 10) for i in range(more)]
        found = cache.read(request(1, 10, A, B, *fillers, segment("end", 10, "")), nothing)
        assert (found.high, found.unreachable) == (reached, 0 if reached else 200), more


def test_entry_is_readable_once_its_reply_has_begun() -> None:
    marked = segment("b", 100, "")
    cache = model(rule("breakpoint", **ANTHROPIC))
    cache.observe(request(0, 0, A, marked, begun=3.0))
    early = cache.read(request(1, 2, A, marked), nothing)
    assert (early.high, early.raced) == (0, 200)
    assert cache.read(request(1, 3, A, marked), nothing).high == 200


def test_more_breakpoints_than_allowed_write_nothing() -> None:
    cache = model(rule("breakpoint", **ANTHROPIC))
    five = [segment(f"s{i}", 50, "") for i in range(5)]
    cache.observe(request(0, 0, *five))
    assert cache.read(request(1, 1, *five), nothing).high == 0


def test_automatic_breakpoint_and_boundaries_it_may_keep() -> None:
    cache = model(rule("breakpoint", lookback=80, marks=4, automatic=True, ttl={"30m": 1800}))
    cache.observe(request(0, 0, A, B, C))
    longer = cache.read(request(1, 1, A, B, C, D), nothing)
    assert (longer.low, longer.high) == (300, 300)
    other = cache.read(request(1, 1, A, B, D), nothing)
    assert (other.low, other.high) == (0, 200)


# -- stored states ----------------------------------------------------------------------------


def test_only_stored_states_are_resumed() -> None:
    cache = model(rule("state", grain=1, hosted=False))
    cache.observe(request(0, 0, A, B, C))
    assert cache.read(request(1, 1, A, B, D), nothing).high == 0
    cache.observe(request(1, 1, A, B, D))  # where two prompts part, a state is stored
    assert cache.read(request(2, 2, A, B, A), nothing).high == 200
    assert cache.read(request(2, 2, A, B, C, D), nothing).high == 300


# -- keep and got -----------------------------------------------------------------------------

KINDS = [
    rule("prefix", grain=16, hosted=False),
    rule("prefix", grain=128, minimum=256, idle=300, longest=3600, reply=True),
    rule("breakpoint", **ANTHROPIC),
    rule("breakpoint", lookback=80, marks=4, automatic=True, ttl={"30m": 1800}),
    rule("state", grain=1, hosted=False),
    rule("state", grain=64, longest=3600),
]

names = st.lists(st.sampled_from("abcdef"), min_size=1, max_size=8)
marks = st.lists(st.sampled_from([None, None, "", "1h"]), min_size=8, max_size=8)


@st.composite
def requests(draw: st.DrawFn) -> list[Request]:
    """Requests in time, whose prompts share beginnings."""
    found: list[Request] = []
    t = 0.0
    for index in range(draw(st.integers(2, 6))):
        t += draw(st.floats(0, 2000))
        parts = [segment(n, 90, m) for n, m in zip(draw(names), draw(marks), strict=False)]
        begun = draw(st.sampled_from([None, t, t + 2]))
        reply = tuple(segment(n).exact for n in draw(st.lists(st.sampled_from("abc"), max_size=2)))
        found.append(request(index, t, *parts, begun=begun, reply=reply, settled=draw(st.booleans())))
    return found


@pytest.mark.parametrize("rule", KINDS, ids=lambda rule: f"{rule.kind}-{rule.grain}-{rule.automatic}")
@settings(max_examples=60, deadline=None)
@given(log=requests(), ages=st.lists(st.floats(2, 8000), min_size=2, max_size=4))
def test_predictions_never_grow_with_age(rule: CacheRule, log: list[Request], ages: list[float]) -> None:
    cache = model(rule, rule.minimum)
    *earlier, last = log
    for each in earlier:
        cache.observe(each)
    found: list[Readable] = []
    for age in sorted(ages):
        at = max(each.t for each in earlier) + age
        found.append(cache.read(Request(last.index, at, None, last.layout, None, (), last.settled), nothing))
    for younger, older in pairwise(found):
        assert older.low <= younger.low
        assert older.high <= younger.high
    for each in found:
        assert 0 <= each.low <= each.high <= last.layout.total
        assert each.high <= max(each.ageless, each.high)


@pytest.mark.parametrize("rule", KINDS, ids=lambda rule: f"{rule.kind}-{rule.grain}-{rule.automatic}")
@settings(max_examples=60, deadline=None)
@given(log=requests())
def test_what_is_got_is_no_more_than_is_shared_and_what_is_kept_no_more_than_there_is(
    rule: CacheRule, log: list[Request]
) -> None:
    cache = model(rule, rule.minimum)
    for each in log:
        cache.observe(each)
        assert 0 <= cache.keep(each, each.t) <= each.layout.total
        for boundary in range(len(each.layout.counts) + 1):
            shared = each.layout.ends[boundary]
            assert 0 <= cache.got(each, boundary, shared) <= shared


# -- rules ------------------------------------------------------------------------------------


def test_domains_are_apart() -> None:
    timeline = Timeline()
    anthropic = RULES["anthropic"]
    one = timeline.model("model=a", anthropic, "a")
    assert timeline.model("model=a", anthropic, "a") is one
    assert timeline.model("model=b", anthropic, "b") is not one


@pytest.mark.parametrize(
    ("upstream", "model", "api", "dialect", "name", "why"),
    [
        ("https://api.anthropic.com", "claude-opus-4-8", "anthropic-messages", None, "anthropic", "host"),
        ("https://api.openai.com", "gpt-5.2", "openai-chat", None, "openai", "host"),
        ("https://api.openai.com", "gpt-5.6", "openai-responses", None, "openai-5.6", "host"),
        (None, "gpt-6-mini", "openai-responses", None, "openai-5.6", "model"),
        (None, "claude-x", "anthropic-messages", "anthropic", "anthropic", "dialect"),
    ],
)
def test_rule_and_what_decided_it(
    upstream: str | None, model: str, api: str, dialect: str | None, name: str, why: str
) -> None:
    choice = Chooser(tuple(RULES.values())).choose(upstream, model, api, dialect)
    assert choice.rule.name == name
    assert why in choice.decided_by


def test_option_decides_before_everything() -> None:
    choice = Chooser(tuple(RULES.values()), "vllm:block=32").choose(
        "https://api.openai.com", "gpt-5.2", "openai-chat", None
    )
    assert (choice.rule.name, choice.rule.grain) == ("vllm", 32)
    assert "--server vllm:block=32" in choice.decided_by


@pytest.mark.parametrize("server", ["nobody", "vllm:block=0", "vllm:colour=red", "anthropic:minimum=x"])
def test_wrong_options_are_one_line(server: str) -> None:
    with pytest.raises(InputError) as error:
        Chooser(tuple(RULES.values()), server)
    assert "\n" not in str(error.value)
    assert server.split(":", maxsplit=1)[0] in str(error.value)


def test_options_change_a_rule() -> None:
    vllm = with_options(RULES["vllm"], "block=64,hybrid,minimum=100,tools-first")
    assert (vllm.grain, vllm.kind, vllm.minimum, vllm.order) == (64, "state", 100, "tools-first")


@pytest.mark.parametrize("rule", RULES.values(), ids=lambda rule: rule.name)
def test_every_rule_is_dated_sourced_and_usable(rule: CacheRule) -> None:
    assert rule.source
    assert rule.date.year >= 2025
    cache = Timeline().model("d", rule, "m")
    first, second = (
        request(0, 0, *[segment(n, 900, "") for n in "ab"]),
        request(1, 9, *[segment(n, 900, "") for n in "abc"]),
    )
    cache.observe(first)
    found = cache.read(second, nothing)
    assert 0 <= found.low <= found.high <= second.layout.total
    assert cache.keep(first, 9) <= first.layout.total
