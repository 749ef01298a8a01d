"""The metrics page: Prometheus' own parser reads it, its series are bounded, and no session stands in it."""

from __future__ import annotations

from dataclasses import dataclass

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from prefixguard.proxy.frames import Cause, Stored, TurnSeen
from prefixguard.proxy.metrics import CONTENT_TYPE, Metrics
from prefixguard.proxy.routing import METRICS

from .running import RunningProxy


@dataclass(frozen=True)
class Sample:
    labels: dict[str, str]
    value: float


def samples(page: bytes | str) -> dict[str, list[Sample]]:
    text = page.decode() if isinstance(page, bytes) else page
    found: dict[str, list[Sample]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found.setdefault(sample.name, []).append(Sample(sample.labels, sample.value))
    return found


def turn(**more: object) -> TurnSeen:
    told: dict[str, object] = {
        "status": 200, "model": "gpt-4.1", "api": "openai-chat", "upstream": "https://api.openai.com",
        "prompt_tokens": 1000, "reported_read": 896, "uncached_tokens": 104, "output_tokens": 7,
        "first_token_ms": 300.0, "total_ms": 900.0, "verdict": "as-predicted", **more,
    }  # fmt: skip
    return TurnSeen("id", "ses_secret", 0, **told)  # type: ignore[arg-type]


def page_of(*events: object) -> dict[str, list[Sample]]:
    metrics = Metrics()
    for event in events:
        metrics.add(event)  # type: ignore[arg-type]
    page = metrics.page({"the queue to the recorder is full": 2})
    assert b"ses_secret" not in page
    return samples(page)


BOTH = {"model": "gpt-4.1", "upstream": "https://api.openai.com"}


def test_what_a_turn_adds() -> None:
    cause = Cause("PG101", "clock-in-prefix", "", primary=True)
    found = page_of(
        turn(), turn(is_break=True, rebilled_tokens=250, causes=(cause,), avoidable_usd=0.5),
        turn(verdict="less"), Stored("id", "ses_secret"),
    )  # fmt: skip
    assert found["prefixguard_requests_total"] == [Sample({**BOTH, "api": "openai-chat", "outcome": "ok"}, 3)]
    assert {s.labels["kind"]: s.value for s in found["prefixguard_input_tokens_total"]} == {
        "cached": 3 * 896, "uncached": 3 * 104,
    }  # fmt: skip
    assert found["prefixguard_prefix_breaks_total"] == [
        Sample({**BOTH, "cause": "PG101", "deliberate": "no"}, 1)
    ]
    assert found["prefixguard_rebilled_tokens_total"] == [Sample(BOTH, 250)]
    assert found["prefixguard_cache_misses_total"] == [Sample(BOTH, 1)]
    assert found["prefixguard_avoidable_cost_usd_total"] == [Sample(BOTH, 0.5)]
    assert found["prefixguard_exchanges_recorded_total"] == [Sample({}, 1)]
    assert found["prefixguard_exchanges_lost"] == [Sample({"reason": "the queue to the recorder is full"}, 2)]
    kept = {s.labels["le"]: s.value for s in found["prefixguard_prefix_kept_ratio_bucket"]}
    assert (kept["0.5"], kept["0.75"], kept["1.0"]) == (0, 1, 3)
    assert found["prefixguard_time_to_first_token_seconds_sum"][0].value == pytest.approx(0.9)


def test_what_is_unknown_adds_nothing() -> None:
    found = page_of(
        turn(
            reported_read=None,
            uncached_tokens=None,
            output_tokens=None,
            first_token_ms=None,
            avoidable_usd=None,
        )
    )
    for name in ("input_tokens", "output_tokens", "avoidable_cost_usd"):
        assert f"prefixguard_{name}_total" not in found
    assert "prefixguard_time_to_first_token_seconds_count" not in found


def test_outcomes() -> None:
    found = page_of(turn(status=529), turn(status=None), turn(aborted=True), turn())
    counts = {s.labels["outcome"]: s.value for s in found["prefixguard_requests_total"]}
    assert counts == {"failed": 2, "aborted": 1, "ok": 1}


def test_a_client_cannot_make_up_series() -> None:
    found = page_of(*(turn(model=f"m{i}", upstream=f"https://h{i}") for i in range(500)))
    models = {s.labels["model"] for s in found["prefixguard_requests_total"]}
    assert len(models) == 51
    assert "other" in models
    assert sum(s.value for s in found["prefixguard_requests_total"]) == 500


def test_the_page_of_a_running_proxy(proxy: RunningProxy, client: httpx.Client) -> None:
    body = {"model": "metered", "messages": [{"role": "user", "content": "hello"}]}
    client.post(f"{proxy.url}/v1/chat/completions", json=body, headers={"x-session-id": "metered"})
    proxy.captures("metered", 1)

    def page(_events: object) -> httpx.Response | None:
        answer = client.get(f"{proxy.url}{METRICS}")
        assert answer.status_code == 200
        return answer if 'model="metered"' in answer.text else None

    answer = proxy.wait_for(page, "the turn on the metrics page")
    assert answer.headers["content-type"] == CONTENT_TYPE
    found = samples(answer.text)
    assert sum(s.value for s in found["prefixguard_requests_total"] if s.labels["model"] == "metered") == 1
    assert found["prefixguard_exchanges_recorded_total"][0].value >= 1
    # A web page that was made to call us is refused, as everywhere.
    assert client.get(f"{proxy.url}{METRICS}", headers={"host": "evil.example"}).status_code == 403
