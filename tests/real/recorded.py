"""A session as another server answered it, to be asked again of a real one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from prefixguard.exchange import Exchange

RULES = "you are a careful agent that answers questions about the weather in a city. " * 20


def recorded(
    turns: int = 5,
    *,
    edited: int | None = None,
    names: Sequence[str] = ("a",),
    clock: bool = False,
    **fields: Any,
) -> list[Exchange]:
    """A session as another server answered it. edited: the turn that changes the first question.

    clock: the system prompt begins with the time. fields: more of each body.
    """
    histories: dict[str, list[dict[str, str]]] = {name: [] for name in names}
    exchanges = []
    for turn in range(turns):
        time = f"the time is 12:{turn:02}. " if clock else ""
        for name, history in histories.items():
            text = f"{name} asks {turn}: what is the weather in city {turn}? " * 4
            history.append({"role": "user", "content": text})
            asked = list(history)
            if turn == edited:
                asked[0] = {"role": "user", "content": asked[0]["content"].replace("weather", "time")}
            body = {
                "model": "gpt",
                "messages": [{"role": "system", "content": time + RULES}, *asked],
                **fields,
            }
            exchanges.append(
                Exchange(
                    float(len(exchanges)), "/v1/chat/completions", json.dumps(body).encode(),
                    headers={"x-prefixguard-session": name},
                )
            )  # fmt: skip
            history.append({"role": "assistant", "content": f"ANSWER {turn}"})
    return exchanges
