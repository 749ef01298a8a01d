"""Recorded sessions as workloads: what they share, what breaks, and what they would be without."""

from __future__ import annotations

from array import array
from dataclasses import replace

from prefixguard.analysis import Fold, Options
from prefixguard.exchange import Exchange, Rendered
from prefixguard.rulebook import Rulebook
from prefixguard.simulate import Keys, Recorded, Setting, Simulator, from_sessions, play
from prefixguard.simulate.capacity import largest
from tests.simulate.agent import exchanges

RULEBOOK = Rulebook()


def recorded(log: list[Exchange]) -> Recorded:
    return from_sessions("log", log, Fold(RULEBOOK, Options(server="vllm")))


def test_an_append_only_session_reads_all_that_it_sent_before() -> None:
    work = recorded(exchanges(5, clock=False)).sent
    assert (len(work.requests), work.sessions, work.breaks, work.exact) == (5, 1, 0, False)
    outcome = play(work, 1000, Keys(16))
    for before, after, cached in zip(
        work.requests, work.requests[1:], outcome.cached_by_request[1:], strict=False
    ):
        # The reply before stands in the next prompt, and was cached as well.
        assert cached == (before.tokens + before.output - 1) // 16 * 16
        assert after.tokens > before.tokens
    assert outcome.cached == outcome.possible


def test_a_clock_costs_everything_behind_it_and_mending_brings_it_back() -> None:
    work = recorded(exchanges(5, clock=True))
    assert work.sent.breaks == 4
    assert work.mended.breaks == 0
    assert [r.tokens for r in work.sent.requests] == [r.tokens for r in work.mended.requests]
    broken, mended = (play(one, 1000, Keys(16)) for one in (work.sent, work.mended))
    system = work.sent.requests[0].tokens - 60
    assert all(cached <= system for cached in broken.cached_by_request)
    assert all(cached > 0 for cached in broken.cached_by_request[1:])  # up to the clock
    assert mended.cached_by_request[-1] > broken.cached_by_request[-1] + 300
    assert mended.possible == mended.cached


def test_rendered_token_ids_make_it_exact() -> None:
    log = exchanges(3, clock=False)
    ids = [array("i", range(100)), array("i", [*range(130), 7, 7]), array("i", [*range(50), 9, *range(90)])]
    replies = [array("i", range(100, 140)), array("i", [1]), None]
    told = [
        replace(exchange, rendered=Rendered("llama.cpp test", prompt, reply))
        for exchange, prompt, reply in zip(log, ids, replies, strict=True)
    ]
    work = recorded(told).sent
    assert work.exact
    outcome = play(work, 1000, Keys(1))
    # The first reply carries the second prompt on to its 130th id; the third parts at its 51st.
    assert outcome.cached_by_request == (0, 130, 50)


def test_failed_requests_leave_nothing_in_the_cache() -> None:
    log = exchanges(3, clock=False)
    log[1] = replace(log[1], status=500, response=None)
    assert len(recorded(log).sent.requests) == 2


def test_copies_of_a_broken_session_have_clocks_of_their_own() -> None:
    clocked = recorded(exchanges(4, clock=True))
    outcome = Simulator(clocked.sent).run(Setting(16, 10_000), 6).outcome
    first = clocked.sent.requests[0].tokens
    # Another run shares the system prompt up to its clock, and nothing of the history behind it.
    assert max(outcome.cached_by_request) < first
    plain = recorded(exchanges(4, clock=False))
    assert Simulator(plain.sent).run(Setting(16, 10_000), 6).outcome.hit_rate > outcome.hit_rate  # type: ignore[operator]


def test_more_memory_never_reads_less_and_breaks_cost_sessions() -> None:
    work = recorded(exchanges(6, clock=True))
    simulator = Simulator(work.sent, work.mended)
    sizes = [Setting(16, blocks) for blocks in (200, 400, 1600)]
    rates = [simulator.run(setting, 4).mended for setting in sizes]
    cached = [outcome.cached for outcome in rates if outcome is not None]
    assert cached == sorted(cached)
    found = [simulator.capacity(setting) for setting in sizes]
    assert [one.mended for one in found] == sorted(one.mended or 0 for one in found)
    assert found[-1].mended is not None
    assert 0 < found[-1].sessions < found[-1].mended
    assert found[-1].computed > 2 * (found[-1].mended_computed or 0)


def test_a_workload_without_breaks_is_played_once() -> None:
    work = recorded(exchanges(4, clock=False))
    simulator = Simulator(work.sent, work.mended)
    assert simulator.run(Setting(16, 500), None).mended is None
    assert simulator.capacity(Setting(16, 500)).mended is None


def test_requests_in_flight_hold_their_blocks() -> None:
    work = recorded([e for i in range(4) for e in exchanges(3, clock=False, session=f"s{i}")]).sent
    alone = Simulator(work).run(Setting(16, 250), 4).outcome
    crowded = Simulator(work, in_flight=4).run(Setting(16, 250), 4).outcome
    assert crowded.evictions >= alone.evictions
    assert crowded.cached <= alone.cached


def test_the_search_for_the_largest_number() -> None:
    for limit in (1, 2, 7, 8, 100):
        for answer in range(limit + 1):
            assert largest(lambda n, answer=answer: n <= answer, limit) == answer
