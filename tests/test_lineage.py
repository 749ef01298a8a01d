"""Whose successor is a request: the rank of relations, and what never makes a parent."""

from __future__ import annotations

import json
from typing import Any

import pytest

from prefixguard.exchange import Exchange
from prefixguard.lineage import Lineage, Match, Node
from prefixguard.tokens.counter import Counter
from prefixguard.wire.decoder import Decoder

SYSTEM = "You are an agent that looks after the files of a small project. " * 20


class Words:
    name, exact = "words", True

    def count(self, text: str) -> int:
        return len(text.split())


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def assistant(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def words(name: str, count: int = 40) -> str:
    return " ".join(f"{name}{i}" for i in range(count))


class Tree:
    """Sends requests and keeps their nodes, as the fold does."""

    def __init__(self, *, keyed: bool = True) -> None:
        self.lineage, self.nodes, self.keyed = Lineage(), [], keyed  # type: ignore[var-annotated]
        self._decoder, self._counter = Decoder({}), Counter(Words())

    def node(
        self, messages: list[Any], reply: str | None, *, scope: str = "s", system: str = SYSTEM, **more: Any
    ) -> Node:
        body = {"messages": [{"role": "system", "content": system}, *messages], **more}
        response = (
            None
            if reply is None
            else {"id": f"r{len(self.nodes)}", "choices": [{"message": assistant(reply)}]}
        )
        exchange = Exchange(
            float(len(self.nodes)), "/v1/chat/completions", json.dumps(body).encode(),
            response=None if response is None else json.dumps(response).encode(),
        )  # fmt: skip
        reading = self._decoder.read(exchange)
        return Node(
            len(self.nodes), exchange.t, exchange.t + 0.5, reading.prompt, reading.reply,
            scope=scope if self.keyed else "pool", pool="pool", counter=self._counter, keyed=self.keyed,
        )  # fmt: skip

    def send(self, messages: list[Any], reply: str | None = None, **more: Any) -> Match | None:
        """The parent's match; the request is in the tree afterwards."""
        fresh = self.node(messages, reply, **more)
        match = self.lineage.parent(fresh)
        if match is not None:
            fresh.parent = match.node
            fresh.session, fresh.thread = match.node.session, match.node.thread
            match.node.echoed = match.node.echoed or match.echo
        else:
            fresh.session = f"session {len(self.nodes)}"
        self.lineage.add(fresh, (f"r{len(self.nodes)}",))
        self.nodes.append(fresh)
        return match


Q, A, R = words("question"), words("answer"), words("result")


def told(match: Match | None) -> tuple[int, str] | None:
    return None if match is None else (match.node.index, match.relation)


def test_append_with_echo_is_a_prefix() -> None:
    tree = Tree()
    assert tree.send([user(Q)], A) is None
    match = tree.send([user(Q), assistant(A), user(R)], A)
    assert told(match) == (0, "prefix")
    assert match is not None
    assert (match.echo, match.complete) == (True, True)


def test_same_request_again_is_a_retry() -> None:
    tree = Tree()
    tree.send([user(Q)], A)
    assert told(tree.send([user(Q)], words("other"))) == (0, "retry")


def test_echo_counts_before_overlap() -> None:
    tree = Tree()
    tree.send([user(Q), assistant(A), user(R)], words("first"))
    tree.send([user(Q), assistant(A), user(words("elsewhere"))], words("second"))
    changed = [
        user(words("edited")),
        assistant(A),
        user(R),
        assistant(words("first")),
        user("Go on, please."),
    ]
    assert told(tree.send(changed)) == (0, "echo")


def test_pruned_history_overlaps() -> None:
    tree = Tree()
    tree.send([user(Q), assistant(A), user(R), user(words("more", 80))])
    match = tree.send([user(Q), user(R), user(words("more", 80)), user("And?")])
    assert match is not None
    assert match.relation in ("overlap", "echo")
    assert match.overlap >= 160


def test_the_head_alone_makes_no_parent() -> None:
    tree = Tree()
    tree.send([user(Q)], A)
    assert tree.send([user(words("unrelated"))], words("reply")) is None


def test_short_answers_say_nothing_of_where_they_come_from() -> None:
    tree = Tree(keyed=False)
    tree.send([user(Q)], "ok")
    assert tree.send([user(words("unrelated")), assistant("ok"), user("yes")], "ok") is None


def test_other_scope_only_by_echo_or_prefix() -> None:
    tree = Tree()
    tree.send([user(Q), assistant(A), user(R)], words("reply"), scope="one")
    resumed = [user(Q), assistant(A), user(R), assistant(words("reply")), user("Go on.")]
    assert told(tree.send(resumed, scope="two")) == (0, "prefix")
    other = Tree()
    other.send([user(Q), assistant(A), user(R)], None, scope="one")
    assert other.send([user(words("edited")), assistant(A), user(R)], None, scope="two") is None


def test_link_outranks_content() -> None:
    tree = Tree()
    tree.send([user(Q)], A)
    tree.send([user(R)], words("b"))
    fresh = tree.node([user("More.")], None)
    object.__setattr__(
        fresh.prompt, "link", __import__("prefixguard.prompt", fromlist=["Link"]).Link("response", "r0", "/x")
    )
    assert told(tree.lineage.parent(fresh)) == (0, "linked")


def test_helper_request_that_quotes_the_history() -> None:
    tree = Tree()
    long = [user(words("a", 120)), assistant(words("b", 120)), user(words("c", 120))]
    tree.send(long, A)
    quoted = "Summarise this:\n" + "\n".join(m["content"] for m in long)
    assert told(tree.send([user(quoted)], system="You summarise.")) == (0, "quoted")


def test_what_a_reply_quotes_of_its_own_prompt_is_no_summary() -> None:
    tree = Tree()
    tree.send([user(Q)], SYSTEM[:400])
    assert tree.send([user(words("unrelated"))]) is None


def test_two_threads_of_one_session_each_go_on_from_their_own() -> None:
    tree = Tree()
    tree.send([user(Q)], A)
    tree.send([user(words("sub")), user("Look into the tests.")], words("sub-answer"))
    main = tree.send([user(Q), assistant(A), user(R)], words("next"))
    sub = tree.send(
        [user(words("sub")), user("Look into the tests."), assistant(words("sub-answer")), user("Go on.")]
    )
    assert (told(main), told(sub)) == ((0, "prefix"), (1, "prefix"))


def test_raw_prompts_by_characters() -> None:
    decoder, counter, lineage = Decoder({}), Counter(Words()), Lineage()

    def node(index: int, prompt: str, reply: str) -> Node:
        response = json.dumps({"choices": [{"text": reply}]}).encode()
        reading = decoder.read(
            Exchange(0.0, "/v1/completions", json.dumps({"prompt": prompt}).encode(), response=response)
        )
        return Node(index, float(index), None, reading.prompt, reading.reply, "s", "p", counter, keyed=False)

    first = node(0, words("once", 60), " upon a time")
    lineage.add(first)
    assert told(lineage.parent(node(1, words("once", 60) + " upon a time there was", "x"))) == (0, "raw")
    assert told(lineage.parent(node(1, words("once", 60), "x"))) == (0, "retry")
    assert lineage.parent(node(1, words("other", 60), "x")) is None


@pytest.mark.parametrize("keyed", [True, False])
def test_same_opening_of_a_conversation_long_since_carried_on(keyed: bool) -> None:
    """With a session key it is asked again; without one it is another run of the same agent."""
    tree = Tree(keyed=keyed)
    tree.send([user(Q)], A)
    tree.send([user(Q), assistant(A), user(R)], words("next"))
    match = tree.send([user(Q)], A)
    assert told(match) == ((0, "retry") if keyed else None)


def test_identities_often_seen_are_kept_to_the_latest() -> None:
    tree = Tree(keyed=False)
    for i in range(200):
        tree.send([user(Q), user(words(f"x{i}_"))], words(f"r{i}_"))
    match = tree.send([user(Q), user(words("x199_")), assistant(words("r199_")), user("Go on.")])
    assert told(match) == (199, "prefix")
