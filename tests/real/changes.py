"""The kinds of change that clients make to their prompts between two requests.

Each is a function of an agent (or two): it talks for a few turns, and what it
changes is its name. Nothing here knows what a cache does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tests.real.dialogue import Agent, Message, Tool

SYSTEM = (
    "you are a careful agent that answers questions about the weather and about files. "
    "read the question, call a tool when you need one, and then tell the user what you found. "
    "the answer is short and names the city that the user asks about."
)


def _tool(name: str, what: str, *arguments: str) -> Tool:
    properties = {argument: {"type": "string", "description": f"the {argument}"} for argument in arguments}
    return Tool(name, what, {"type": "object", "properties": properties, "required": list(arguments)})


READ = _tool("read", "read a file and give its content", "path")
SEARCH = _tool("search", "search the files for a text", "text", "folder")
WEATHER = _tool("weather", "tell the weather of a city", "city")
WRITE = _tool("write", "write content to a file", "path", "content")
TOOLS = [READ, SEARCH, WEATHER]


def user(text: str) -> Message:
    return Message("user", text)


def talk(agent: Agent, turns: int, *, system: str = SYSTEM, tools: list[Tool] = TOOLS) -> list[Message]:
    """An agent that does nothing wrong: a question, a tool call with its result, and so on, up to a reply."""
    history: list[Message] = []
    for turn in range(turns):
        if turn % 2:
            call = (f"call_{turn}", "read", {"path": f"notes/{turn}.txt", "lines": turn})
            history += [
                Message("assistant", "", (call,)),
                Message("tool", f"the notes of day {turn}", of=call[0]),
            ]
        history.append(
            user(f"question {turn}: what is the weather in city {turn}, and where will the rain fall?")
        )
        history.append(agent.say(system, tools, history))
    return history


def append(agent: Agent) -> None:
    talk(agent, 5)


def same_again(agent: Agent) -> None:
    history = talk(agent, 2)
    for _ in range(3):
        agent.say(SYSTEM, TOOLS, history[:-1])


def _clock(agent: Agent, place: Callable[[str], str]) -> None:
    history: list[Message] = []
    for turn in range(4):
        history.append(user(f"question {turn}: and now?"))
        history.append(agent.say(place(f"the time is 12:{turn:02}:{turn * 7 % 60:02}."), TOOLS, history))


def clock_at_the_start(agent: Agent) -> None:
    _clock(agent, lambda clock: f"{clock} {SYSTEM}")


def clock_in_the_middle(agent: Agent) -> None:
    half = SYSTEM.index("read the")
    _clock(agent, lambda clock: SYSTEM[:half] + clock + " " + SYSTEM[half:])


def clock_at_the_end(agent: Agent) -> None:
    _clock(agent, lambda clock: f"{SYSTEM} {clock}")


def tools_swapped(agent: Agent) -> None:
    history = talk(agent, 2)
    agent.say(SYSTEM, [SEARCH, READ, WEATHER], [*history, user("and now?")])
    agent.say(SYSTEM, [SEARCH, WEATHER, READ], [*history, user("and now?")])


def tool_added(agent: Agent) -> None:
    history = talk(agent, 2)
    history += [user("and now?")]
    history += [agent.say(SYSTEM, [*TOOLS, WRITE], history), user("and then?")]
    agent.say(SYSTEM, [WRITE, *TOOLS], history)


def tool_removed(agent: Agent) -> None:
    history = talk(agent, 2)
    agent.say(SYSTEM, TOOLS[:-1], [*history, user("and now?")])
    agent.say(SYSTEM, [], [*history, user("and now?")])


def tool_keys_reordered(agent: Agent) -> None:
    history = talk(agent, 2)
    agent.reverse_keys = True
    history += [user("and now?")]
    history += [agent.say(SYSTEM, TOOLS, history), user("and then?")]
    reordered = [replace(tool, schema=dict(reversed(tool.schema.items()))) for tool in TOOLS]
    agent.say(SYSTEM, reordered, history)


def message_edited(agent: Agent) -> None:
    history = talk(agent, 3)
    history[0] = user(history[0].text.replace("rain", "snow"))
    agent.say(SYSTEM, TOOLS, [*history, user("and now?")])


def pruned(agent: Agent) -> None:
    history = talk(agent, 4)
    at = next(i for i, message in enumerate(history) if message.role == "tool")
    history[at] = replace(history[at], text="[removed]")
    history += [user("and now?")]
    history += [agent.say(SYSTEM, TOOLS, history), user("and then?")]
    agent.say(SYSTEM, TOOLS, history)


def window(agent: Agent) -> None:
    history: list[Message] = []
    for turn in range(6):
        history.append(user(f"question {turn}: what is the time in city {turn}?"))
        history.append(agent.say(SYSTEM, TOOLS, history[-5:]))


def compaction(agent: Agent) -> None:
    history = talk(agent, 3)
    summary = agent.say("write a summary of the conversation.", [], [*history, user("the summary, please.")])
    short = [user(f"a summary of the conversation so far: {summary.text}. and now?")]
    short += [agent.say(SYSTEM, TOOLS, short), user("and then?")]
    agent.say(SYSTEM, TOOLS, short)


def reply_edited(agent: Agent) -> None:
    history = talk(agent, 2)
    history[-1] = Message("assistant", history[-1].text[:4] + "x")
    history += [user("and now?")]
    history += [agent.say(SYSTEM, TOOLS, history)]
    history[-1] = Message("assistant", history[-1].text.lower())
    agent.say(SYSTEM, TOOLS, [*history, user("and then?")])


def retry(agent: Agent) -> None:
    history = talk(agent, 2)
    asked = [*history, user("and now?")]
    agent.say(SYSTEM, TOOLS, asked)
    asked.append(agent.say(SYSTEM, TOOLS, asked))
    agent.say(SYSTEM, TOOLS, [*asked, user("and then?")])


def rewind(agent: Agent) -> None:
    history = talk(agent, 4)
    agent.say(SYSTEM, TOOLS, [*history[:2], user("no: what is the time there?")])
    agent.say(SYSTEM, TOOLS, [*history, user("and now?")])


def two_sessions(agent: Agent) -> None:
    """Two conversations in turn on the server's one slot, with a shared system prompt."""
    first: list[Message] = []
    second: list[Message] = []
    for turn in range(3):
        for name, history in (("first", first), ("second", second)):
            history.append(user(f"the {name} user asks: question {turn}?"))
            history.append(agent.say(SYSTEM, TOOLS, history))


def two_strangers(agent: Agent) -> None:
    """Two conversations in turn that share nothing but the template's first tokens."""
    histories: dict[str, list[Message]] = {"a very careful agent.": [], "you are brief.": []}
    for turn in range(3):
        for system, history in histories.items():
            history.append(user(f"question {turn}?"))
            history.append(agent.say(system, [], history))


CHANGES: tuple[Callable[[Agent], None], ...] = (
    append, same_again, clock_at_the_start, clock_in_the_middle, clock_at_the_end, tools_swapped, tool_added,
    tool_removed, tool_keys_reordered, message_edited, pruned, window, compaction, reply_edited, retry,
    rewind, two_sessions, two_strangers,
)  # fmt: skip
