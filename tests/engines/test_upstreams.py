"""Only near servers are asked, once; what they say goes with the exchange."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from typing import Any

import pytest

from prefixguard.engines.upstreams import Upstreams, is_near
from prefixguard.errors import ServerError
from prefixguard.exchange import Exchange, Rendered

IDS = Rendered("llama.cpp test", array("i", [1, 2, 3]))


@dataclass
class Known:
    """An engine that knows every exchange, or none."""

    url: str
    rendered: Rendered | None = IDS
    kind: str = "llama.cpp"
    name: str = "llama.cpp test"
    problem: str | None = None

    def render(self, exchange: Exchange) -> Rendered | None:
        return self.rendered


@dataclass
class World:
    """What answers at which address, and who was asked."""

    answers: bool = True
    now: float = 0.0
    asked: list[str] = field(default_factory=list)

    def attach(self, url: str, **_: Any) -> Known:
        self.asked.append(url)
        if not self.answers:
            raise ServerError("nobody")
        return Known(url)

    def upstreams(self) -> Upstreams:
        return Upstreams(self.attach, lambda: self.now)


def exchange(upstream: str | None = "http://127.0.0.1:8080", status: int | None = 200) -> Exchange:
    return Exchange(0.0, "/v1/chat/completions", b"{}", upstream=upstream, status=status)


def test_a_server_is_asked_once_and_its_ids_go_along() -> None:
    world = World()
    upstreams = world.upstreams()
    assert [upstreams.render(exchange()).rendered for _ in range(3)] == [IDS] * 3
    assert world.asked == ["http://127.0.0.1:8080"]


def test_a_server_of_another_kind_is_asked_again_after_a_minute() -> None:
    world = World(answers=False)
    upstreams = world.upstreams()
    for now in (0.0, 1.0, 59.0, 61.0):
        world.now = now
        assert upstreams.render(exchange()).rendered is None
    assert len(world.asked) == 2


@pytest.mark.parametrize(
    "untouched",
    [
        exchange("https://api.openai.com"),
        exchange("https://8.8.8.8"),
        exchange(None),
        exchange(status=500),
        exchange(status=None),
        Exchange(0.0, "/", b"{}", upstream="http://127.0.0.1:8080", rendered=Rendered("x", array("i"))),
    ],
)
def test_what_is_not_ours_to_ask_is_handed_back(untouched: Exchange) -> None:
    world = World()
    assert world.upstreams().render(untouched) is untouched
    assert world.asked == []


@pytest.mark.parametrize(
    ("url", "near"),
    [
        ("http://127.0.0.1:8080", True),
        ("http://[::1]:8080", True),
        ("http://localhost:8080", True),
        ("http://10.0.3.7", True),
        ("http://192.168.1.5:1234", True),
        ("http://llama:8080", True),
        ("http://gpu.local", True),
        ("https://api.anthropic.com", False),
        ("https://1.1.1.1", False),
        ("https://localhost.evil.com", False),
        ("", False),
    ],
)
def test_near_is_this_machine_or_a_private_network(url: str, near: bool) -> None:
    assert is_near(url) is near
