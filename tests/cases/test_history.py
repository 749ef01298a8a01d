"""What clients do to history: window, pruning, compaction, media, reasoning, edits, insertions (PG3xx)."""

from __future__ import annotations

import copy
from itertools import product

import pytest

from .agent import Message, Talk, call, image, prose, reasoning, result, text
from .bodies import APIS
from .verdicts import breaks, primary, says, silent

HEAD = "You are the keeper of the yard. " + prose("history head", 130)
WITH_IMAGES = APIS
MARKED = ("anthropic", "bedrock")


def talk(api: str, rounds: int = 3, **fields: object) -> Talk:
    """A talk with some history: questions, tool calls, answers."""
    made = Talk(api, system=[HEAD], **fields)  # type: ignore[arg-type]
    for _ in range(rounds):
        made.work(1)
    return made


def only_last_breaks(
    agent: Talk, code: str | tuple[str, ...], pointer: str | None = None, **how: object
) -> None:
    turns = agent.analysed()
    breaks(turns[-1], code, pointer, **how)  # type: ignore[arg-type]
    silent(turns[:-1])


# -- dropped, pruned, summarised --------------------------------------------------------------


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("pinned", [0, 1])
def test_sliding_window(api: str, pinned: int) -> None:
    agent = Talk(api, system=[HEAD])
    whole: list[Message] = []
    for _ in range(7):
        agent.messages = whole
        agent.turn(echo=False)
        whole = [*agent.messages, Message("assistant", agent.answer)]
        body_messages = [*whole[:pinned], *whole[pinned:][-6 + pinned :]]
        agent.messages = body_messages
        whole = body_messages
    turns = agent.analysed()
    for turn in turns[-3:]:
        breaks(turn, "PG301")
    assert not turns[1].is_break


@pytest.mark.parametrize("api", APIS)
def test_window_that_leaves_a_note(api: str) -> None:
    agent = talk(api, 4)
    agent.messages = [
        agent.messages[0],
        Message("user", [text("[6 earlier messages were left out to save room]")]),
        *agent.messages[7:],
    ]
    agent.turn()
    only_last_breaks(agent, ("PG301", "PG302", "PG303"), deliberate=None)


def results(agent: Talk) -> list[Message]:
    return [m for m in agent.messages if m.role == "tool"]


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("note", ["[old tool result cleared]", "", "cut"])
def test_oldest_result_cleared_on_each_turn(api: str, note: str) -> None:
    agent = Talk(api, system=[HEAD])
    agent.user()
    for n in range(7):
        if n >= 3:
            part = results(agent)[n - 3].parts[0]
            part["text"] = part["text"][:120] + " […]" if note == "cut" else note
        agent.step_with_tool()
    turns = agent.analysed()
    for turn in turns[3:]:
        breaks(turn, "PG302")
        assert primary(turn).recurrence == "every-request"
    silent(turns[:3])


@pytest.mark.parametrize("api", APIS)
def test_pruning_at_once_is_a_decision(api: str) -> None:
    agent = Talk(api, system=[HEAD])
    agent.user()
    for n in range(15):
        if n == 13:
            for message in results(agent)[:11]:
                message.parts[0]["text"] = "[cleared]"
        agent.step_with_tool()
    turns = agent.analysed()
    breaks(turns[13], "PG302", deliberate=True)
    silent([*turns[:13], turns[14]])


@pytest.mark.parametrize("api", APIS)
def test_long_arguments_elided(api: str) -> None:
    agent = Talk(api, system=[HEAD])
    agent.user()
    for n in range(4):
        if n == 3:
            for message in agent.messages[:-2]:
                for part in message.parts:
                    if part["kind"] == "call":
                        part["arguments"] = {"path": part["arguments"]["path"], "content": "[elided]"}
        agent.send(call(n, "write_file", path=f"src/{n}.py", content=prose(f"file {n}", 30)))
        agent.tool_result(result(n))
    agent.send()
    turns = agent.analysed()
    breaks(turns[3], ("PG302", "PG307"))


SUMMARIES = {
    "user": [("user", "Summary of the work so far:")],
    "user and answer": [
        ("user", "This session continues an earlier one. Summary:"),
        ("assistant", "Understood, I go on."),
    ],
    "system": [("system", "Earlier conversation in short:")],
}


_COMPACTIONS = [
    (api, form, kept, asked)
    for n, (form, kept, asked) in enumerate(product(SUMMARIES, (0, 3), ("in line", "apart", "unseen")))
    for api in (APIS[n % 6], APIS[(n + 3) % 6], "openai-chat")
    if form != "system" or api in ("openai-chat", "openai-responses", "ollama")
]
"""Each way to compact in two or three APIs, so that every API meets several."""


@pytest.mark.parametrize(("api", "form", "kept", "asked"), sorted(set(_COMPACTIONS)))
def test_compaction_once_is_a_decision(api: str, form: str, kept: int, asked: str) -> None:
    agent = talk(api, 5)
    summary = prose("summary", 14)
    before = copy.deepcopy(agent.messages)
    first = len(agent.log)
    if asked == "in line":
        agent.user("Summarise this conversation so that work can go on.")
        agent.send(text(summary), echo=False)
    elif asked == "apart":
        helper = Talk(
            api, system=["You write summaries. " + prose("scribe", 10)], tools=[{**agent.tools[0]}], t=agent.t
        )
        helper.server, helper.seed = agent.server, "helper"
        helper.log, helper.sent = agent.log, agent.sent
        flat = "\n".join(p.get("text", "") for m in before for p in m.parts)
        helper.user("Summarise:\n" + flat)
        helper.send(text(summary), echo=False)
        agent.t = helper.t
    head = [
        Message(role, [text(f"{start}\n{summary}" if i == 0 else start)])
        for i, (role, start) in enumerate(SUMMARIES[form])
    ]
    agent.messages = [*head, *before[-kept:]] if kept else head
    agent.turn()
    agent.turn()
    turns = agent.analysed()
    at = first if asked == "unseen" else first + 1
    if asked == "unseen" and not kept:
        silent(turns)  # nothing shows that this is no new conversation
        return
    breaks(turns[at], "PG303", deliberate=True, parent=turns[at].parent)
    silent([*turns[:first], *turns[at + 1 :]])
    if asked == "apart":
        assert turns[first].shape == "side", turns[first]
        breaks(turns[first], "PG511", deliberate=True)


@pytest.mark.parametrize("api", APIS)
def test_rolling_summary_on_each_turn_is_a_fault(api: str) -> None:
    agent = talk(api, 3)
    for n in range(4):
        recent = agent.messages[-2:]
        agent.messages = [Message("user", [text(f"Summary so far: {prose(f'rolling {n}', 8)}")]), *recent]
        agent.work(1)
    turns = agent.analysed()
    faults = [t for t in turns if t.is_fault]
    assert len(faults) >= 3, turns
    assert {primary(t).code for t in faults} <= {"PG303", "PG301", "PG302"}


# -- media, reasoning -------------------------------------------------------------------------


@pytest.mark.parametrize("api", WITH_IMAGES)
@pytest.mark.parametrize("note", ["[image removed]", None])
@pytest.mark.parametrize("place", ["user", "only"])
def test_image_stripped_after_the_answer(api: str, note: str | None, place: str) -> None:
    agent = Talk(api, system=[HEAD])
    agent.turn()
    if place == "only":
        agent.messages.append(Message("user", [image("x")]))
    else:
        agent.user(None, image("x"))
    agent.step_with_tool()
    agent.send()
    message = next(m for m in agent.messages if any(p["kind"] == "image" for p in m.parts))
    if note is None and place == "only":
        agent.messages.remove(message)
    else:
        message.parts = [p if p["kind"] != "image" else text(note or "") for p in message.parts]
        if note is None:
            message.parts.pop()
    agent.turn()
    turns = agent.analysed()
    breaks(turns[-1], "PG304", deliberate=None)
    silent(turns[:-1])


@pytest.mark.parametrize("api", WITH_IMAGES)
def test_image_encoded_anew_on_each_request(api: str) -> None:
    agent = Talk(api, system=[HEAD])
    message = agent.user(None, image("x"))
    for n in range(4):
        message.parts[1]["data"] = image(f"x{n}")["data"]
        agent.step_with_tool()
    for turn in agent.analysed()[2:]:
        breaks(turn, "PG305")


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("which", ["all", "last loop"])
def test_reasoning_dropped_when_the_user_speaks_again(api: str, which: str) -> None:
    agent = Talk(api, system=[HEAD])
    for n in range(3):
        agent.user()
        for k in range(2):
            agent.send(reasoning(prose(f"thought {n} {k}", 5)), call(f"{n}-{k}"))
            agent.tool_result(result(f"{n}-{k}"))
        agent.send(reasoning(prose(f"thought {n}", 5)), text(prose(f"end {n}", 5)))
        for message in agent.messages:
            message.parts = [p for p in message.parts if p["kind"] != "reasoning"]
    turns = agent.analysed()
    breaks(turns[3], "PG306")
    breaks(turns[6], "PG306")
    assert primary(turns[6]).recurrence == "every-user-turn"
    silent([t for t in turns if t.index not in (3, 6)])


@pytest.mark.parametrize("api", APIS)
def test_reasoning_never_sent_back_is_no_break(api: str) -> None:
    agent = Talk(api, system=[HEAD])
    agent.user()
    for n in range(4):
        agent.send(reasoning(prose(f"thought {n}", 9)), call(n), echo=False)
        agent.messages.append(Message("assistant", [call(n)]))
        agent.tool_result(result(n))
    turns = agent.analysed()
    silent(turns)
    assert all(t.shape == "append" for t in turns[1:])


# -- edits ------------------------------------------------------------------------------------


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("how", ["cut", "reworded", "prefixed"])
def test_old_reply_edited(api: str, how: str) -> None:
    agent = talk(api)
    answer = next(m for m in agent.messages if m.role == "assistant" and m.parts[0]["kind"] == "text")
    old = answer.parts[0]["text"]
    answer.parts[0]["text"] = {
        "cut": old[: len(old) * 2 // 3],
        "reworded": old.replace("guards", "watches").replace("the ", "a ", 1),
        "prefixed": "assistant: " + old,
    }[how]
    agent.turn()
    only_last_breaks(agent, "PG307", agent.where(-1, answer.parts[0]["text"]))


@pytest.mark.parametrize("api", APIS)
def test_reply_that_comes_back_otherwise_at_once_is_no_break(api: str) -> None:
    agent = talk(api)
    agent.messages[-1].parts[0]["text"] += " (edited)"
    agent.turn()
    silent(agent.analysed())


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("place", [0, 1])
def test_earlier_user_message_edited(api: str, place: int) -> None:
    agent = talk(api)
    users = [m for m in agent.messages if m.role == "user"]
    users[place].parts[0]["text"] = "Instead of that: " + prose("another wish", 7)
    agent.turn()
    only_last_breaks(agent, "PG311", agent.where(-1, "Instead of that"))


@pytest.mark.parametrize("api", APIS)
def test_earlier_tool_result_edited(api: str) -> None:
    agent = talk(api)
    part = results(agent)[0].parts[0]
    part["text"] = part["text"].replace("guards", "watches") + " Seen again and found longer than before."
    agent.turn()
    only_last_breaks(agent, "PG311", agent.where(-1, "found longer"))


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("again", [True, False])
def test_block_inserted_once_in_the_middle(api: str, again: bool) -> None:
    agent = talk(api)
    agent.messages.insert(
        4, Message("user", [text("Reminder from the yard office. " + prose("late note", 5))])
    )
    agent.turn()
    if again:
        agent.turn()
    turns = agent.analysed()
    at = -2 if again else -1
    breaks(turns[at], "PG308", agent.where(at, "yard office"), kind="inserted")
    silent([t for t in turns if t is not turns[at]])


@pytest.mark.parametrize("api", APIS)
def test_block_floats_at_a_depth(api: str) -> None:
    """A note stands three messages before the end of each request, and is stored nowhere."""
    agent = talk(api, 2)
    for _ in range(4):
        agent.user()
        stored = list(agent.messages)
        agent.messages = [
            *stored[:-3],
            Message("user", [text("Keep to the house style. " + prose("style", 6))]),
            *stored[-3:],
        ]
        agent.send(echo=False)
        agent.messages = [*stored, Message("assistant", agent.answer)]
    turns = agent.analysed()
    breaks(turns[-1], ("PG308", "PG310"))
    breaks(turns[-2], ("PG308", "PG310"))


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("text_changes", [True, False])
@pytest.mark.parametrize("as_message", [True, False])
def test_block_rides_on_the_last_message(api: str, text_changes: bool, as_message: bool) -> None:
    """A block stands before or on the newest user message and is not kept."""
    agent = talk(api, 1)
    for n in range(4):
        note = text("<live>" + prose(f"live {n if text_changes else 0}", 8) + "</live>")
        question = text(f"Question {n}. " + prose(f"asked {n}", 18))
        stored = list(agent.messages)
        extra = (
            [Message("user", [note]), Message("user", [question])]
            if as_message
            else [Message("user", [note, question])]
        )
        agent.messages = [*stored, *extra]
        agent.send(echo=False)
        agent.messages = [*stored, Message("user", [question]), Message("assistant", agent.answer)]
    turns = agent.analysed()
    for turn in turns[-3:]:
        breaks(turn, "PG309")


@pytest.mark.parametrize("api", APIS)
def test_changing_block_at_the_very_end_costs_nothing(api: str) -> None:
    agent = Talk(api, system=[HEAD], marks=("system",))
    for n in range(5):
        agent.user()
        agent.messages.append(Message("user", [text(f"<status>{prose(f'status {n}', 3)}</status>")]))
        agent.send(echo=False)
        agent.messages[-1:] = [Message("assistant", agent.answer)]
    silent(agent.analysed(), but=("PG504", "PG509"))


@pytest.mark.parametrize("api", APIS)
def test_old_block_moves_to_the_end_on_each_turn(api: str) -> None:
    agent = talk(api, 1)
    rules = Message("user", [text("Format rules. " + prose("format rules", 20))])
    agent.messages.append(rules)
    for _ in range(4):
        agent.messages.remove(rules)
        agent.user()
        agent.messages.insert(len(agent.messages) - 1, rules)
        agent.send()
    turns = agent.analysed()
    for turn in turns[-3:]:
        breaks(turn, ("PG310", "PG309"))


@pytest.mark.parametrize("api", ["openai-chat", "openai-responses", "ollama"])
@pytest.mark.parametrize("how", ["inserted", "repeated before the last message"])
def test_system_message_in_mid_history(api: str, how: str) -> None:
    agent = talk(api, 2)
    rules = Message("system", [text("Answer in one paragraph. " + prose("sys rules", 8))])
    for _ in range(3):
        agent.messages = [m for m in agent.messages if m is not rules]
        agent.user()
        if how == "inserted":
            agent.messages.insert(3, rules)
        else:
            agent.messages.insert(len(agent.messages) - 1, rules)
        agent.send()
    turns = agent.analysed()
    if how == "inserted":
        breaks(turns[-3], "PG312", agent.where(-3, "one paragraph"))
        silent([*turns[:-3], *turns[-2:]])
    else:
        for turn in turns[-2:]:
            breaks(turn, ("PG312", "PG310"))


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("what", ["user", "pair"])
def test_message_removed_from_the_middle(api: str, what: str) -> None:
    agent = talk(api, 4)
    users = [i for i, m in enumerate(agent.messages) if m.role == "user"]
    at = users[2]
    del agent.messages[at : at + (1 if what == "user" else 2)]
    if what == "pair":  # the result of a removed call goes as well
        del agent.messages[at]
    agent.turn()
    only_last_breaks(agent, "PG313")


# -- the same, written otherwise --------------------------------------------------------------


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("how", ["line ends", "trailing", "indent"])
def test_white_space(api: str, how: str) -> None:
    agent = Talk(api, system=[HEAD])
    agent.user()
    lines = "\n".join(f"    {prose(f'line {i}', 1)}  " for i in range(12))
    agent.send(call("w"))
    agent.tool_result(result("w", lines))
    agent.step_with_tool()
    part = results(agent)[0].parts[0]
    part["text"] = {
        "line ends": lines.replace("\n", "\r\n"),
        "trailing": "\n".join(x.rstrip() for x in lines.split("\n")),
        "indent": lines.replace("    ", "\t"),
    }[how]
    agent.send()
    only_last_breaks(agent, "PG204")


@pytest.mark.parametrize("api", APIS)
def test_unicode_form(api: str) -> None:
    import unicodedata

    agent = Talk(api, system=[HEAD])
    agent.user("Für Zoë: " + "über die Brücke, naïve Café-Gäste grüßen. " * 10)
    agent.step_with_tool()
    part = agent.messages[0].parts[0]
    part["text"] = unicodedata.normalize("NFD", part["text"])
    agent.send()
    only_last_breaks(agent, "PG205")


@pytest.mark.parametrize("api", APIS)
def test_json_escapes_and_spacing_in_a_result(api: str) -> None:
    import json

    agent = Talk(api, system=[HEAD])
    agent.user()
    value = {"größe": "über 40", "zeilen": [prose(f"z{i}", 1) for i in range(8)]}
    agent.send(call("e"))
    agent.tool_result(result("e", json.dumps(value, ensure_ascii=False, separators=(",", ":"))))
    agent.step_with_tool()
    agent.step_with_tool()
    results(agent)[0].parts[0]["text"] = json.dumps(value)
    agent.send()
    only_last_breaks(agent, "PG205")


@pytest.mark.parametrize("api", ["openai-chat", "openai-responses"])
@pytest.mark.parametrize("how", ["spacing", "keys"])
def test_arguments_written_again(api: str, how: str) -> None:
    import json

    agent = Talk(api, system=[HEAD])
    agent.user()
    for _ in range(3):
        agent.step_with_tool()
    for message in agent.messages:
        for part in message.parts:
            if part["kind"] == "call":
                arguments = part["arguments"]
                keys = sorted(arguments, reverse=True) if how == "keys" else list(arguments)
                part["written"] = json.dumps({k: arguments[k] for k in keys}, separators=(",", ":"))
    agent.send()
    only_last_breaks(agent, ("PG203",), agent.where(-1, '"mode":'))


@pytest.mark.parametrize("api", ["anthropic", "bedrock", "gemini", "ollama"])
def test_structured_input_with_keys_in_another_order(api: str) -> None:
    agent = Talk(api, system=[HEAD])
    agent.user()
    for _ in range(3):
        agent.step_with_tool()
    for message in agent.messages:
        for part in message.parts:
            if part["kind"] == "call":
                part["arguments"] = {k: part["arguments"][k] for k in sorted(part["arguments"])}
    agent.send()
    only_last_breaks(agent, ("PG202", "PG203"))


@pytest.mark.parametrize("api", [a for a in APIS if a != "ollama"])
def test_call_ids_minted_again(api: str) -> None:
    agent = Talk(api, system=[HEAD])
    agent.user()
    for n in range(5):
        for message in agent.messages:
            for part in message.parts:
                if "id" in part:
                    part["id"] = part["id"].split("~")[0] + f"~{n}"
        agent.step_with_tool()
    turns = agent.analysed()
    for turn in turns[3:]:
        breaks(turn, "PG206")


@pytest.mark.parametrize("api", [a for a in APIS if a not in ("ollama", "bedrock")])
def test_url_signed_again(api: str) -> None:
    from .agent import image_url

    agent = Talk(api, system=[HEAD])
    message = agent.user(None, image_url("https://files.example.com/a.png?X-Sig=0&Expires=1"))
    for n in range(4):
        message.parts[1]["url"] = f"https://files.example.com/a.png?X-Sig={n}f3a&Expires={1000 + n}"
        agent.step_with_tool()
    for turn in agent.analysed()[2:]:
        breaks(turn, "PG207")


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("how", ["joined", "split"])
def test_neighbours_merged_or_split(api: str, how: str) -> None:
    agent = Talk(api, system=[HEAD])
    one, two = prose("first half", 5), prose("second half", 5)
    if how == "split":
        agent.messages.append(Message("user", [text(one + "\n" + two)]))
    else:
        agent.messages += [Message("user", [text(one)]), Message("user", [text(two)])]
    agent.step_with_tool()
    agent.step_with_tool()
    if how == "split":
        agent.messages[:1] = [Message("user", [text(one)]), Message("user", [text(two)])]
    else:
        agent.messages[:2] = [Message("user", [text(one + "\n" + two)])]
    agent.send()
    only_last_breaks(agent, "PG210")


@pytest.mark.parametrize("api", ["openai-chat", "anthropic"])
def test_shape_alone_is_never_a_break(api: str) -> None:
    agent = talk(api, 3)

    def as_strings(body: dict[str, object]) -> None:
        for message in body["messages"][:-1]:  # type: ignore[index]
            content = message.get("content")
            if isinstance(content, list) and len(content) == 1 and content[0].get("type") == "text":
                message["content"] = content[0]["text"]

    def as_blocks(body: dict[str, object]) -> None:
        for message in body["messages"]:  # type: ignore[attr-defined]
            if message["role"] == "user" and isinstance(message["content"], str):
                message["content"] = [{"type": "text", "text": message["content"]}]

    agent.edit = as_blocks if api == "openai-chat" else as_strings
    agent.server = None
    agent.turn(usage=None)
    turns = agent.analysed()
    silent(turns)
    assert says(turns[-1], "PG208")
