"""What holds for every agent run: a client that only appends is never blamed, and the numbers fit."""

from __future__ import annotations

import dataclasses
import json
import random
from typing import Any

import pytest
from agent_runs import APPENDING, BREAKING, SERVERS, Log, Run, logs, talks
from cases.agent import analysed
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from prefixguard.analysis import Fold, Options, analyze
from prefixguard.exchange import Exchange
from prefixguard.rulebook import Rulebook
from prefixguard.turn import Analysis, Turn
from prefixguard.working_set import WorkingSet

RULEBOOK = Rulebook()
RUNS = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


def in_order(result: Analysis) -> list[Turn]:
    return sorted((t for session in result.sessions for t in session.turns), key=lambda turn: turn.index)


def without_figures(log: list[Exchange]) -> list[Exchange]:
    """The same exchanges, the servers silent on what they had cached."""
    found = []
    for exchange in log:
        response = json.loads(exchange.response) if exchange.response else None
        if isinstance(response, dict):
            for name in (
                "usage",
                "usageMetadata",
                "prompt_eval_count",
                "eval_count",
                "prompt_eval_cached_count",
            ):
                response.pop(name, None)
        found.append(
            dataclasses.replace(
                exchange, response=None if response is None else json.dumps(response).encode()
            )
        )
    return found


@RUNS
@given(talk=talks(APPENDING))
def test_append_never_breaks(talk: Run) -> None:
    for log in (talk.log, without_figures(talk.log)):
        turns = analysed(log, talk.option)
        for turn in turns:
            assert not turn.is_break, (turn.findings, turn.divergence)
            assert turn.tokens.lost == turn.tokens.rebilled == 0
            assert turn.shape in ("first", "append", "retry")
        assert [t.parent for t in turns] == [None, *range(len(turns) - 1)]


def shuffled(value: Any, chance: random.Random) -> Any:
    """JSON with the keys of all objects in another order."""
    if isinstance(value, dict):
        return {name: shuffled(value[name], chance) for name in chance.sample(list(value), len(value))}
    if isinstance(value, list):
        return [shuffled(item, chance) for item in value]
    return value


def envelope_shuffled(body: bytes, chance: random.Random) -> bytes:
    """Keys permuted where no server can see it: the body's own, those of messages and of texts."""
    fields = json.loads(body)
    made = {name: fields[name] for name in chance.sample(list(fields), len(fields))}
    for name in ("messages", "input", "contents"):
        if isinstance(made.get(name), list):
            made[name] = [_message_shuffled(message, chance) for message in made[name]]
    made["metadata"] = {"note": str(chance.random())}
    return json.dumps(
        made, indent=chance.choice([None, 1]), separators=chance.choice([None, (",", ":")])
    ).encode()


def _message_shuffled(message: dict[str, Any], chance: random.Random) -> dict[str, Any]:
    made = {name: message[name] for name in chance.sample(list(message), len(message))}
    for name in ("content", "parts"):
        if isinstance(made.get(name), list):
            made[name] = [
                shuffled(block, chance)
                if block.get("type") in ("text", "input_text", "output_text")
                else block
                for block in made[name]
            ]
    return made


@RUNS
@given(talk=talks(APPENDING), seed=st.integers(0, 2**32))
def test_permutation_that_no_server_sees_changes_nothing(talk: Run, seed: int) -> None:
    chance = random.Random(seed)
    log = [dataclasses.replace(e, request=envelope_shuffled(e.request, chance)) for e in talk.log]
    plain, mixed = analysed(talk.log, talk.option), analysed(log, talk.option)
    for before, after in zip(plain, mixed, strict=True):
        assert not after.is_break
        assert after.divergence is None
        assert (after.shape, after.parent, after.tokens, after.cache) == (
            before.shape, before.parent, before.tokens, before.cache,
        )  # fmt: skip


@RUNS
@given(talk=talks(APPENDING), seed=st.integers(0, 2**32))
def test_permutation_that_only_some_servers_see_is_no_break_unless_this_one_saw_it(
    talk: Run, seed: int
) -> None:
    """Keys of tool definitions and call arguments, with figures that tell of full reads, and without any."""
    chance = random.Random(seed)

    def mixed(log: list[Exchange]) -> list[Exchange]:
        bodies = [json.dumps(shuffled(json.loads(e.request), chance)).encode() for e in log]
        return [dataclasses.replace(e, request=body) for e, body in zip(log, bodies, strict=True)]

    for turn in [*analysed(mixed(talk.log)), *analysed(mixed(without_figures(talk.log)), talk.option)]:
        assert not turn.is_break, (turn.findings, turn.divergence, turn.usage, turn.tokens)
        if turn.divergence is not None:
            assert turn.divergence.certainty == "server", turn.divergence


@RUNS
@given(
    log=logs(),
    server=st.sampled_from(SERVERS),
)
def test_numbers_fit_into_one_another(log: Log, server: str | None) -> None:
    turns = analysed(log, server)
    for turn in turns:
        tokens = turn.tokens
        assert 0 <= tokens.rebilled <= tokens.lost, turn
        assert tokens.rebilled <= tokens.prompt, turn
        assert 0 <= tokens.shared <= tokens.prompt, turn
        if turn.parent is not None:
            assert tokens.lost <= turns[turn.parent].tokens.prompt, turn
        if turn.cache is not None:
            assert 0 <= turn.cache.read_low <= turn.cache.read_high <= tokens.prompt, turn
        if turn.is_break:
            assert any(f.primary for f in turn.findings), turn
            assert turn.shape in ("changed", "side"), turn
        if turn.divergence is not None:
            assert 0 <= turn.divergence.token_offset <= tokens.prompt, turn
            assert turn.divergence.pointer[:1] in ("/", ""), turn  # a model named in the path has no pointer
        if turn.parent is not None:
            assert turn.parent < turn.index, turn
        if turn.donor is not None:
            assert turn.donor < turn.index, turn


@RUNS
@given(log=logs(), server=st.sampled_from(SERVERS))
def test_one_step_at_a_time_is_the_same_as_at_once(log: Log, server: str | None) -> None:
    whole = analyze(log, RULEBOOK, Options(server=server))
    fold = Fold(RULEBOOK, Options(server=server))
    for i, exchange in enumerate(log):
        step = fold.step(exchange)
        so_far = in_order(fold.result())  # asking in between changes nothing
        assert so_far == in_order(analyze(log[: i + 1], RULEBOOK, Options(server=server)))
        final = in_order(whole)[i]
        assert _plain(step) == _plain(final)
    assert fold.result() == whole


def _plain(turn: Turn) -> Turn:
    """A turn without what only the whole session can tell."""
    return dataclasses.replace(
        turn, findings=tuple(f.but(recurrence="once", deliberate=False) for f in turn.findings)
    )


@RUNS
@given(log=logs(), server=st.sampled_from(SERVERS))
def test_what_was_packed_away_is_derived_again_the_same(log: Log, server: str | None) -> None:
    with pytest.MonkeyPatch.context() as patch:
        whole = analyze(log, RULEBOOK, Options(server=server))
        patch.setattr(WorkingSet.__init__, "__defaults__", (1,))
        assert analyze(log, RULEBOOK, Options(server=server)) == whole


@RUNS
@given(talk=talks(APPENDING + BREAKING), ages=st.lists(st.floats(0, 2e5), min_size=2, max_size=5))
def test_predictions_fall_with_age(talk: Run, ages: list[float]) -> None:
    """The last request later: never more to read. It is sent after every reply has begun."""
    assume(len(talk.log) > 1)
    *earlier, last = talk.log
    begun = max(e.t + (e.timing.total_ms or 0) / 1000 for e in earlier)
    before: tuple[int, int] | None = None
    for age in sorted(ages):
        turn = analysed([*earlier, dataclasses.replace(last, t=begun + age)], talk.option)[-1]
        assert turn.cache is not None
        now = turn.cache.read_low, turn.cache.read_high
        if before is not None:
            assert now[0] <= before[0], (now, before)
            assert now[1] <= before[1], (now, before)
        before = now
