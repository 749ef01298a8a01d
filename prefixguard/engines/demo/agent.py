"""The small agent of `prefixguard demo`, written as agents are written.

A system prompt, two tools, a history that grows, the `openai` SDK. `ClockAgent`
has a common fault: it tells the model the time at the start of its system
prompt. `MendedAgent` tells it in the newest message instead.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from openai import OpenAI

RULES = """\
You are a travel assistant for people who plan a short trip by train. Answer in one short sentence. \
Use the tools for facts about trains and weather, and never make up a timetable. If a tool gives no \
answer, say so. Give times on the 24 hour clock and prices in euros. Talk about nothing but the trip."""

QUESTIONS = (
    "I am in Vienna. Is there a train to Salzburg tomorrow morning?",
    "What will the weather be like there?",
    "And when does the last train go back?",
    "Sum up my day in one sentence.",
)


def _tool(name: str, description: str, **arguments: str) -> dict[str, Any]:
    properties = {argument: {"type": "string", "description": text} for argument, text in arguments.items()}
    parameters = {"type": "object", "properties": properties, "required": list(arguments)}
    function = {"name": name, "description": description, "parameters": parameters}
    return {"type": "function", "function": function}


TOOLS = [
    _tool("find_trains", "Find trains between two cities.", start="City to leave", end="City to reach"),
    _tool("get_weather", "Get the forecast for a city.", city="Name of the city", day="Day of the trip"),
]

ANSWERS = {
    "find_trains": "07:30 and 08:08, arriving 09:52 and 10:38, 29 euros; the last one back leaves at 22:08",
    "get_weather": "rain in the morning, dry from 14:00, 12 degrees",
}


class Agent:
    """One conversation. longest_reply: tokens; short, because the demo runs on a CPU."""

    def __init__(self, client: OpenAI, longest_reply: int = 16) -> None:
        self.client = client
        self.longest_reply = longest_reply
        self.history: list[dict[str, Any]] = []

    def ask(self, question: str) -> str:
        """The answer to a question, after the tool calls that the model wants (two rounds at most)."""
        self.history.append(self.user_message(question))
        message: dict[str, Any] = {}
        for _ in range(3):
            message = self.request()
            self.history.append(message)
            calls = message.get("tool_calls") or []
            for call in calls:
                answer = ANSWERS.get(call["function"]["name"], "no such tool")
                self.history.append({"role": "tool", "tool_call_id": call["id"], "content": answer})
            if not calls:
                break
        return str(message.get("content") or "")

    def request(self) -> dict[str, Any]:
        """One request to the model; its reply as a message of the history."""
        with self.client.chat.completions.stream(
            model="demo",
            messages=[{"role": "system", "content": self.system_prompt()}, *self.history],  # type: ignore[list-item]
            tools=TOOLS,  # type: ignore[arg-type]
            temperature=0,
            max_tokens=self.longest_reply,
        ) as stream:
            stream.until_done()
            message = stream.current_completion_snapshot.choices[0].message
        return message.model_dump(include={"role", "content", "tool_calls"}, exclude_none=True)

    def system_prompt(self) -> str:
        """What stands before everything else."""
        return RULES

    def user_message(self, question: str) -> dict[str, Any]:
        """A question as a message."""
        return {"role": "user", "content": question}


class ClockAgent(Agent):
    """The time stands in the system prompt, so every request begins differently."""

    def system_prompt(self) -> str:
        """The rules behind a clock."""
        return f"It is {datetime.now().isoformat(' ')}. {RULES}"


class MendedAgent(Agent):
    """The time stands in the newest message, and stays there as it was said."""

    def user_message(self, question: str) -> dict[str, Any]:
        """The question with the time at which it was asked."""
        return {"role": "user", "content": f"It is {datetime.now():%H:%M}. {question}"}
