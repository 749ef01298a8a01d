"""Whose successor is a request? Finds the earlier exchange that it continues.

The parent explains: it shares history with the new request, by a link, by an
echo of its reply, by being a prefix of it, or by overlap. The head (tools and
system text) never makes a parent, or two agents with one system prompt would
be each other's children. See `docs/architecture.md` for the definitions.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from operator import attrgetter
from typing import Literal

from rapidfuzz.distance import LCSseq

from prefixguard.prompt import Prompt, Segment
from prefixguard.rendering.prefixes import shared_characters
from prefixguard.tokens.counter import Counter
from prefixguard.tokens.layout import common_length
from prefixguard.working_set import WorkingSet

type Relation = Literal["linked", "retry", "prefix", "echo", "raw", "overlap", "quoted", "summary"]

_RANK: dict[Relation, int] = {
    "linked": 4, "retry": 3, "prefix": 2, "echo": 2, "raw": 2, "overlap": 1, "quoted": 0, "summary": 0,
}  # fmt: skip
LEAST_KEY_TOKENS = 8
"""Shorter segments ("yes", "ok") say nothing of where they come from."""
LEAST_OVERLAP = 32
LEAST_QUOTED = 256
LEAST_SUMMARY = 120
"""Characters of a reply that must stand in a new message to show that it is a summary."""
_alike = attrgetter("alike")
_POSTINGS = 64
_CANDIDATES = 24


@dataclass(slots=True, eq=False)
class Node:
    """An exchange in the tree of conversations. end: when the exchange was over, if known."""

    index: int
    t: float
    end: float | None
    prompt: Prompt
    reply: tuple[Segment, ...]
    scope: str
    pool: str
    counter: Counter
    keyed: bool
    session: str = ""
    thread: int = 0
    parent: Node | None = None
    echoed: bool = False
    """Some later request continues this one's reply."""
    _history: tuple[bytes, ...] | None = None
    _alikes: tuple[bytes, ...] | None = None
    _extended: tuple[bytes, ...] | None = None
    _weights: tuple[int, ...] | None = None
    _reply_weights: tuple[int, ...] | None = None

    @property
    def history(self) -> tuple[bytes, ...]:
        """Exact identities of the history."""
        if self._history is None:
            self._history = self.prompt.exacts[self.prompt.head_length :]  # history comes last in every order
        return self._history

    @property
    def alikes(self) -> tuple[bytes, ...]:
        """Alike identities of the history."""
        if self._alikes is None:
            self._alikes = tuple(map(_alike, self.prompt.segments[self.prompt.head_length :]))
        return self._alikes

    @property
    def extended(self) -> tuple[bytes, ...]:
        """Alike identities of the history and the reply."""
        if self._extended is None:
            self._extended = (*self.alikes, *[s.alike for s in self.reply])
        return self._extended

    @property
    def weights(self) -> tuple[int, ...]:
        """Tokens of the history's segments."""
        if self._weights is None:
            n = self.prompt.head_length
            segments = self.prompt.segments[n:]
            self._weights = tuple(self.counter.segments(segments, self.history))
        return self._weights

    def weigh_beside(self, other: Node) -> None:
        """Takes the weights of the history that `other` has too from there, instead of asking for each."""
        known = other._weights
        if known is None or other.counter is not self.counter:
            return
        common = common_length(other.history, self.history)
        new = self.prompt.segments[self.prompt.head_length + common :]
        self._weights = (*known[:common], *self.counter.segments(new, self.history[common:]))

    @property
    def reply_weights(self) -> tuple[int, ...]:
        """Tokens of the reply's segments."""
        if self._reply_weights is None:
            self._reply_weights = tuple(self.counter.segments(self.reply))
        return self._reply_weights

    @property
    def size(self) -> int:
        """About how many values are derived."""
        return 4 * len(self.prompt.history)

    def pack(self) -> None:
        """Drops what was derived."""
        self._history = self._alikes = self._extended = self._weights = self._reply_weights = None


@dataclass(frozen=True, slots=True)
class Match:
    """A parent and how it is one. overlap: W, the tokens of history that both have, in order."""

    node: Node
    relation: Relation
    echo: bool
    overlap: int
    complete: bool
    prefix: int


class Lineage:
    """The tree so far, with an index from history segments to the exchanges that brought them in."""

    def __init__(self, in_use: WorkingSet | None = None) -> None:
        self._in_use = in_use or WorkingSet()
        self._postings: dict[str, dict[bytes, Node | list[Node]]] = {}
        self._recent: dict[str, list[Node]] = {}
        self._links: dict[str, Node] = {}
        self._tips: dict[tuple[str, int], Node] = {}

    def parent(self, fresh: Node) -> Match | None:
        """The exchange that `fresh` continues, or None. `fresh` is not in the tree yet."""
        link = fresh.prompt.link
        if link is not None and link.id in self._links:
            node = self._links[link.id]
            match = self._judge(node, fresh)
            overlap, complete = (match.overlap, match.complete) if match else (0, False)
            return Match(node, "linked", True, overlap, complete, match.prefix if match else 0)
        latest = self._recent.get(fresh.scope)
        if latest:
            fresh.weigh_beside(latest[-1])
        match = self._best(fresh, fresh.scope)
        if match is None and fresh.keyed:
            match = self._best(fresh, fresh.pool, only=("echo", "prefix", "raw", "retry"))
        if match is None:
            match = self._quoted(fresh) or self._summarised(fresh)
        return match

    def _best(self, fresh: Node, scope: str, only: tuple[Relation, ...] = ()) -> Match | None:
        best: Match | None = None
        for node in self._candidates(fresh, scope):
            match = self._judge(node, fresh)
            if match is None or (only and match.relation not in only):
                continue
            if match.complete and match.relation == "prefix" and not node.echoed:
                return match  # the everyday case: the open end of a conversation, carried on
            if best is None or _order(match) > _order(best):
                best = match
        return best

    def _candidates(self, fresh: Node, scope: str) -> Iterable[Node]:
        """Exchanges that brought in what `fresh` still holds, the newest content first, and the open ends."""
        seen: set[int] = set()
        alikes = fresh.alikes
        found = 0
        index = self._postings.get(scope, {})
        for i in range(len(alikes) - 1, -1, -1):
            if fresh.weights[i] < LEAST_KEY_TOKENS:
                continue
            posted = index.get(alikes[i])
            if posted is None:
                continue
            found += 1
            for node in reversed(posted[-4:]) if isinstance(posted, list) else (posted,):
                for candidate in (node, self._tips.get((node.session, node.thread), node)):
                    if candidate.index not in seen:
                        seen.add(candidate.index)
                        yield candidate
            if found >= 8 or len(seen) >= _CANDIDATES:
                break
        for node in reversed(
            self._recent.get(scope, ())[-(16 if fresh.prompt.raw else 8 if fresh.keyed or not seen else 2) :]
        ):
            if node.index not in seen:
                seen.add(node.index)
                yield node

    def _judge(self, node: Node, fresh: Node) -> Match | None:
        if node.prompt.api != fresh.prompt.api:
            return None
        self._in_use.touch(node)
        if fresh.prompt.raw:
            return _judge_raw(node, fresh)
        n = len(node.history)
        common = common_length(node.history, fresh.history)
        whole = common == n
        same_head = (
            node.prompt.exacts[: node.prompt.head_length] == fresh.prompt.exacts[: fresh.prompt.head_length]
        )
        overlap, behind = self._overlap(node, fresh, common)
        echo = _echoed(node, fresh, overlap)
        tail_only = all(s.role != "assistant" for _, s in fresh.prompt.history[behind:])
        complete = whole and tail_only and (echo or not node.reply)
        prefix_tokens = sum(fresh.weights[:common])
        if whole and n == len(fresh.history) and same_head:
            # Keyless: asking again what was already answered and carried on is another run.
            if fresh.keyed or not node.echoed:
                return Match(node, "retry", False, overlap, False, prefix_tokens)
            return None if not node.parent and not fresh.keyed else Match(
                node, "prefix", False, overlap, False, prefix_tokens
            )  # fmt: skip
        if whole and n and same_head and n < len(fresh.history):
            return Match(node, "prefix", echo, overlap, complete, prefix_tokens)
        if echo:
            return Match(node, "echo", True, overlap, complete, prefix_tokens)
        if not fresh.keyed and _opens_anew(node, fresh):
            return None
        if overlap >= LEAST_OVERLAP or (overlap and overlap * 2 >= sum(node.weights)):
            return Match(node, "overlap", False, overlap, complete, prefix_tokens)
        return None

    @staticmethod
    def _overlap(node: Node, fresh: Node, common: int) -> tuple[int, int]:
        """(tokens of history shared in order, where the shared part ends in `fresh`)."""
        old, new = node.extended, fresh.alikes
        start = max(common, common_length(old, new))
        total = sum(fresh.weights[:start])
        end_old, end_new = len(old), len(new)
        if start in (end_old, end_new):
            return total, start
        suffix = common_length(old[start:][::-1], new[start:][::-1])
        total += sum(fresh.weights[end_new - suffix : end_new]) if suffix else 0
        middle_old, middle_new = old[start : end_old - suffix], new[start : end_new - suffix]
        last = end_new if suffix else start
        if middle_old and middle_new and not set(middle_old).isdisjoint(middle_new):
            for tag in LCSseq.opcodes(list(middle_old), list(middle_new)):
                if tag.tag == "equal":
                    at, to = start + tag.dest_start, start + tag.dest_end
                    total += sum(fresh.weights[at:to])
                    last = max(last, to)
        return total, last

    def _quoted(self, fresh: Node) -> Match | None:
        """A request whose new texts hold an earlier history verbatim: a compaction or title call."""
        texts = [s for s in fresh.prompt.segments if len(s.text) >= 64]
        best: Match | None = None
        for node in reversed(self._recent.get(fresh.scope, ())[-6:] if texts else []):
            if node.prompt.raw:
                continue
            self._in_use.touch(node)
            known = set(node.prompt.exacts)
            new = [s.text for s in texts if s.exact not in known]
            quoted = sum(
                weight
                for (_, s), weight in zip(node.prompt.history, node.weights, strict=True)
                if len(s.text) >= 24 and any(len(text) > len(s.text) and s.text in text for text in new)
            )
            if quoted >= LEAST_QUOTED and (best is None or quoted > best.overlap):
                best = Match(node, "quoted", False, quoted, False, 0)
        return best

    def _summarised(self, fresh: Node) -> Match | None:
        """A request that goes on from a reply written as a summary: nothing else of the history is left."""
        texts = [s for s in fresh.prompt.segments if s.role != "assistant" and len(s.text) >= LEAST_SUMMARY]
        for node in reversed(self._recent.get(fresh.scope, ())[-6:] if texts else ()):
            known = set(node.prompt.exacts)  # what a reply quotes of its own prompt is no summary
            new = [s.text for s in texts if s.exact not in known]
            if any(len(s.text) >= LEAST_SUMMARY and any(s.text in text for text in new) for s in node.reply):
                own = (
                    node.prompt.exacts[: node.prompt.head_length]
                    == fresh.prompt.exacts[: fresh.prompt.head_length]
                )
                parent = node if own or node.parent is None else node.parent
                return Match(parent, "summary", True, 0, False, 0)
        return None

    def add(self, node: Node, response_ids: tuple[str, ...] = ()) -> None:
        """Takes an exchange into the tree. Its parent, session and thread are set."""
        self._in_use.touch(node)
        before = node.parent.extended if node.parent is not None else ()
        known = common_length(before, node.extended)
        new = node.extended[known:]
        weights = (node.weights + node.reply_weights)[known:]
        old = frozenset(before) if len(new) > 1 else before
        fresh = [a for a, w in zip(new, weights, strict=True) if w >= LEAST_KEY_TOKENS and a not in old]
        for scope in {node.scope, node.pool}:
            _post(self._postings.setdefault(scope, {}), fresh, node)
        for scope in {node.scope, node.pool}:
            recent = self._recent.setdefault(scope, [])
            recent.append(node)
            if len(recent) > 16:
                del recent[:8]
        self._tips[node.session, node.thread] = node
        link = node.prompt.link
        if link is not None and link.kind == "conversation":
            self._links[link.id] = node
        for name in response_ids:
            self._links[name] = node


def _post(index: dict[bytes, Node | list[Node]], alikes: Iterable[bytes], node: Node) -> None:
    """Nearly every identity is posted once: a list is made for the second time."""
    for alike in alikes:
        posted = index.get(alike)
        if posted is None:
            index[alike] = node
        elif isinstance(posted, list):
            posted.append(node)
            if len(posted) > _POSTINGS:
                del posted[: _POSTINGS // 2]
        else:
            index[alike] = [posted, node]


def _order(match: Match) -> tuple[int, bool, int, bool, int, int]:
    """A prefix that was carried on already ranks with mere overlap: its successors may share more."""
    open_end = match.complete and not match.node.echoed
    prefix = match.relation == "prefix"
    rank = 1 if prefix and match.node.echoed and not open_end else _RANK[match.relation]
    return rank, open_end, match.overlap, prefix, match.prefix, match.node.index


def _opens_anew(node: Node, fresh: Node) -> bool:
    """Whether a keyless request is as short as the opening of a conversation long since carried on.

    Two runs of an agent open alike: the same instructions, another listing or date.
    """
    root = node
    while root.parent is not None and root.parent.session == root.session:
        root = root.parent
    return root.echoed and len(fresh.prompt.history) <= len(root.prompt.history)


def _echoed(node: Node, fresh: Node, overlap: int) -> bool:
    """Whether the reply that `node` got stands in the new history."""
    if node.reply:
        there, n = fresh.alikes, len(node.prompt.history)
        weights = zip(node.reply, node.reply_weights, strict=True)
        telling = {segment.alike for segment, weight in weights if weight >= LEAST_KEY_TOKENS}
        if not telling.isdisjoint(there[n:]) or not telling.isdisjoint(there[:n]):
            return True
        small = all(weight < LEAST_KEY_TOKENS for weight in node.reply_weights)
        in_place = small and fresh.alikes[n : n + len(node.reply)] == node.extended[n:]
        # "ok" in the same place of another talk is no echo: what came before it must be there as well.
        return in_place and (overlap - sum(node.reply_weights)) * 2 >= sum(node.weights)
    before = sum(1 for _, s in node.prompt.history if s.role == "assistant")
    after = sum(1 for _, s in fresh.prompt.history if s.role == "assistant")
    shares_head = bool(node.prompt.head_length) and (
        node.prompt.exacts[: node.prompt.head_length] == fresh.prompt.exacts[: fresh.prompt.head_length]
    )
    return after > before and overlap > 0 and (shares_head or overlap >= LEAST_OVERLAP)


def _judge_raw(node: Node, fresh: Node) -> Match | None:
    """A raw prompt continues another when it starts with it."""
    if not node.prompt.history or not fresh.prompt.history:
        return None
    old, new = node.prompt.history[0][1].text, fresh.prompt.history[0][1].text
    reply = "".join(s.text for s in node.reply)
    tokens = sum(node.weights)
    if old == new:
        return Match(node, "retry", False, tokens, False, tokens)
    if new.startswith(old):
        echo = bool(reply) and new.startswith(reply.strip(), len(old) + _gap(new, len(old)))
        return Match(node, "raw", echo, tokens, True, tokens)
    shared = shared_characters(old, new)
    overlap = tokens * shared // max(len(old), 1)
    if overlap >= LEAST_OVERLAP:
        return Match(node, "overlap", bool(reply) and reply.strip() in new, overlap, False, overlap)
    return None


def _gap(text: str, at: int) -> int:
    return len(text[at:]) - len(text[at:].lstrip())
