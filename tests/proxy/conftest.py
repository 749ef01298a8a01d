"""One upstream and one proxy for all tests that break nothing: starting them is what costs."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from .running import RunningProxy
from .upstream import Answer, Upstream


@pytest.fixture(scope="package")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Upstream, RunningProxy]]:
    folder = tmp_path_factory.mktemp("proxy")
    with (
        Upstream(lambda _: Answer()) as upstream,
        RunningProxy(folder, "--upstream", upstream.url) as proxy,
    ):
        yield upstream, proxy


@pytest.fixture
def upstream(pair: tuple[Upstream, RunningProxy]) -> Upstream:
    pair[0].script = lambda _: Answer()
    return pair[0]


@pytest.fixture
def proxy(pair: tuple[Upstream, RunningProxy]) -> RunningProxy:
    return pair[1]


@pytest.fixture
def client() -> Iterator[httpx.Client]:
    with httpx.Client(trust_env=False, timeout=60) as client:
        yield client
