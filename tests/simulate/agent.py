"""Sessions of a small agent, whole and with a clock at the end of its system prompt."""

from __future__ import annotations

import json

from prefixguard.exchange import Exchange

SYSTEM = "You are a careful agent. " + " ".join(f"Rule {i}: never guess a file's content." for i in range(60))


def exchanges(turns: int, *, clock: bool, session: str = "s") -> list[Exchange]:
    """Chat requests that append a reply and a question each turn."""
    messages: list[dict[str, str]] = []
    found = []
    for turn in range(turns):
        system = SYSTEM + (f" It is 12:{turn:02}:07." if clock else "")
        messages.append({"role": "user", "content": f"Question {turn}: " + "please look again " * 20})
        body = {"model": "m", "messages": [{"role": "system", "content": system}, *messages]}
        reply = {
            "role": "assistant",
            "content": f"Answer {turn} of {session}: " + "I looked and found it " * 15,
        }
        response = {"choices": [{"index": 0, "message": reply, "finish_reason": "stop"}]}
        found.append(
            Exchange(
                t=float(turn * 10), path="/v1/chat/completions", request=json.dumps(body).encode(),
                response=json.dumps(response).encode(), headers={"x-session-id": session},
            )
        )  # fmt: skip
        messages.append(reply)
    return found
