"""The sessions that are asked of a real vLLM once, and of its tape in every test run."""

from __future__ import annotations

from dataclasses import replace

from prefixguard.exchange import Exchange
from tests.real.recorded import recorded


def crowded() -> list[Exchange]:
    """Six agents with system prompts of their own, in turn: more than 128 blocks of 32 tokens hold."""
    return [
        replace(
            exchange,
            request=exchange.request.replace(
                b"you are a careful agent",
                f"you are agent {exchange.headers['x-prefixguard-session']} and careful".encode(),
            ),
        )
        for exchange in recorded(3, names=("a", "b", "c", "d", "e", "f"))
    ]


SESSIONS: dict[str, list[Exchange]] = {
    "append-only": recorded(5),
    "clock in the system prompt": recorded(4, clock=True),
    "first question edited late": recorded(5, edited=3),
    "two sessions in turn": recorded(3, names=("a", "b")),
    "six sessions in a small cache": crowded(),
}
