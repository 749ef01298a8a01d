"""The fold: for each exchange in time, what it continues, where it parts, why, and what it cost.

The same fold serves a log (`analyze`), the live proxy (`Fold.step`, one
exchange at a time) and simulations. It is pure: rules, tokenizers and templates
are handed in, nothing is read and no clock is asked.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace

from prefixguard import __version__
from prefixguard.caches.choose import Choice, Chooser, cache_rules
from prefixguard.caches.dropped import as_read
from prefixguard.caches.keys import keyed_parameters, parameter_names, routing_key
from prefixguard.caches.model import Request
from prefixguard.caches.rule import CacheRule
from prefixguard.causes.domain import DomainTable, domain_parts
from prefixguard.describe import Describer
from prefixguard.divergence import part
from prefixguard.exchange import Exchange, SessionKey
from prefixguard.lineage import LEAST_SUMMARY, Lineage, Match, Node
from prefixguard.meter import Meter
from prefixguard.options import Options
from prefixguard.partial import (
    EVENT,
    HEAD,
    PROMPT,
    THREAD,
    explained,
    figures_cost,
    figures_turn,
    unseen,
    without_guesses,
)
from prefixguard.prompt import Prompt, Segment
from prefixguard.recurrence import Facts, facts_of, relabel
from prefixguard.rulebook import Rulebook
from prefixguard.sessions import SessionKeyRules, body_fields, named_fields, session_key
from prefixguard.step import Seen, Step, Thread, begun
from prefixguard.timeline import domain_of
from prefixguard.tokens.choose import Counters, TokenizerTable
from prefixguard.tokens.counter import Counter
from prefixguard.tokens.layout import Layout, lay_out
from prefixguard.totals import totals
from prefixguard.turn import Analysis, Cost, Prices, Session, Tokens, Turn
from prefixguard.wire.decoder import Decoder, Reading, UnreadableError
from prefixguard.wire.identity import digest
from prefixguard.wire.reported import fields_of, response_ids, usage_of
from prefixguard.wire.usage import DecodedUsage
from prefixguard.working_set import WorkingSet

__all__ = ["Analysis", "Fold", "Options", "analyze"]

_SUMMARIES = 8
"""How many replies of helper requests a session remembers, to know a summary again."""


class Fold:
    """The analysis of a stream of exchanges, in the order of their times."""

    def __init__(self, rulebook: Rulebook | None = None, options: Options | None = None) -> None:
        """Raises InputError or RuleError when an option or a rule is wrong."""
        self.rulebook = rulebook or Rulebook()
        self.options = options or Options()
        rules = cache_rules(self.rulebook)
        self._chooser = Chooser(rules, self.options.server)
        self._decoder = Decoder({"*": parameter_names(rules)})
        self._counters = Counters(self.rulebook.table("tokenizers", TokenizerTable), self.options.tokenizer)
        self._keys = self.rulebook.table("session-keys", SessionKeyRules)
        self._accounts = self.rulebook.table("domains", DomainTable)
        self._describer = Describer(self.rulebook, self.options)
        self._in_use = WorkingSet()
        self._lineage = Lineage(self._in_use)
        self._meter = Meter(self._recall, self.options.template)
        self._seen: dict[int, Seen] = {}
        self._turns: list[Turn] = []
        self._facts: list[Facts] = []
        self._sessions: dict[str, SessionKey] = {}
        self._threads: dict[tuple[str, int], Thread] = defaultdict(Thread)
        self._thread_counts: dict[str, int] = {}
        self._scales: dict[str, float] = {}
        self._domains: dict[tuple[object, ...], tuple[Mapping[str, str | None], str]] = {}
        self._summaries: dict[str, list[str]] = defaultdict(list)
        self._openings: dict[tuple[str, str | None, bytes], int] = {}
        self._named_threads: dict[tuple[str, str], int] = {}
        self._incomplete: dict[int, tuple[CacheRule, str, bool]] = {}

    def step(self, exchange: Exchange) -> Turn:
        """Takes the next exchange and says everything about it. Never raises on odd exchanges."""
        index = len(self._turns)
        try:
            reading = self._decoder.read(exchange)
        except UnreadableError as error:
            turn = self._unreadable(index, exchange, usage_of(exchange, None), str(error))
            facts = Facts(False, 0.0)
        else:
            turn, facts = self._read(index, exchange, reading)
        self._turns.append(turn)
        self._facts.append(facts)
        return turn

    def _read(self, index: int, exchange: Exchange, reading: Reading) -> tuple[Turn, Facts]:
        missing = unseen(exchange.headers)
        if PROMPT in missing:
            return self._figures_only(index, exchange, reading), Facts(False, 0.0)
        step = self._prepare(index, exchange, reading)
        numbers = self._meter.numbers(step)
        node = step.seen.node
        thread, summaries = self._threads[node.session, node.thread], self._summaries[node.session]
        turn = self._describer.describe(step, numbers, thread, summaries, self._recall)
        facts = facts_of(step.earlier, step.layout, is_break=turn.is_break)
        if step.answered:
            self._observe(step, turn)
        if missing:
            turn = without_guesses(turn, missing)
            if HEAD & set(missing):
                self._incomplete[index] = step.rule, step.choice.decided_by, _compacted(exchange)
        return turn, facts

    def _unreadable(self, index: int, exchange: Exchange, decoded: DecodedUsage | None, why: str) -> Turn:
        named = session_key(exchange.headers, body_fields(exchange.request, self._keys), self._keys)
        key = named or SessionKey("content", "", "unreadable")
        self._sessions.setdefault(key.value, key)
        usage = decoded.usage if decoded else None
        return Turn(
            index=index, t=exchange.t, status=exchange.status, upstream=exchange.upstream, domain="",
            session=key.value, thread=0, parent=None, donor=None, shape="first", api="unknown", model=None,
            divergence=None, findings=(), is_break=False,
            tokens=Tokens(usage.total if usage else 0, 0, 0, 0, "none", False), usage=usage, cache=None,
            timing=exchange.timing, cost=Cost(), aborted=exchange.aborted, note=why,
        )  # fmt: skip

    def _figures_only(self, index: int, exchange: Exchange, reading: Reading) -> Turn:
        """A turn of a record that keeps no prompts: what the server reported, in its session and thread."""
        decoded = usage_of(exchange, reading)
        api, model = reading.prompt.api, reading.prompt.model
        choice = self._choose(exchange, reading.prompt, decoded)
        self._incomplete[index] = choice.rule, choice.decided_by, _compacted(exchange)
        named = session_key(exchange.headers, named_fields(reading.body.fields, self._keys), self._keys)
        key = named or SessionKey("content", "", "figures")
        self._sessions.setdefault(key.value, key)
        thread = (key.value, exchange.headers.get(THREAD, ""))
        if thread not in self._named_threads:
            self._named_threads[thread] = self._thread_counts.get(key.value, 0)
            self._thread_counts[key.value] = self._named_threads[thread] + 1
        cost = figures_cost(self.options, choice.rule, exchange, api, model, decoded, reading.response)
        place = (key.value, self._named_threads[thread])
        return figures_turn(index, exchange, place, api, model, decoded, cost)

    def _prepare(self, index: int, exchange: Exchange, reading: Reading) -> Step:
        """Finds the parent, lays both prompts out in tokens, and sees where they part."""
        decoded = usage_of(exchange, reading)
        whole = not HEAD & set(unseen(exchange.headers))
        choice = self._choose(exchange, reading.prompt, decoded)
        rule = choice.rule
        prompt = reading.prompt.in_order(rule.rendered_order)
        if exchange.rendered is None:  # else the server itself says what it read
            prompt = as_read(rule, prompt, exchange.upstream)
        counter = self._counters.counter(prompt.model)
        key = session_key(exchange.headers, named_fields(reading.body.fields, self._keys), self._keys)
        fresh = _node(index, exchange, prompt, reading.reply, key, counter)
        match = self._lineage.parent(fresh)
        if match is not None and match.relation == "linked":
            prompt = _resolved(match.node, prompt)
            fresh = _node(index, exchange, prompt, reading.reply, key, counter)
        self._place(fresh, match, key)
        before = self._recall(match.node.index) if match else None
        earlier = before.layout if before else None
        if earlier is not None and earlier.prompt.order != prompt.order:
            turned = earlier.prompt.in_order(prompt.order)
            earlier = lay_out(turned, counter, earlier.keyed, last_scale=earlier.scale)
        usage = decoded.usage if decoded else None
        layout = lay_out(
            prompt, counter, keyed_parameters(rule, prompt),
            reported=usage.total if usage and usage.total and whole else None,
            last_scale=self._scales.get(fresh.session, 1.0), earlier=earlier,
        )  # fmt: skip
        self._scales[fresh.session] = layout.scale
        parts, domain = self._domain(rule, domain_parts(self._accounts, exchange, prompt))
        request = Request(
            index, exchange.t, begun(exchange), layout, routing_key(rule, exchange.headers, prompt),
            tuple(s.exact for s in reading.reply), settled=bool(match and match.echo),
        )  # fmt: skip
        seen = Seen(fresh, layout, request, domain, parts, rule)
        grand = before.node.parent if before else None
        return Step(
            exchange, reading, decoded, choice, counter, seen, match, before,
            grand=self._recall(grand.index) if grand else None,
            earlier=earlier,
            parting=part(earlier, layout, rule.blind) if earlier is not None else None,
            opening=self._other_opening(fresh) if match is None else None,
        )  # fmt: skip

    def _domain(self, rule: CacheRule, parts: dict[str, str | None]) -> tuple[Mapping[str, str | None], str]:
        """The parts and the name of a cache domain, one copy for all turns that lie in it."""
        key = (rule.name, *parts.items())
        if key not in self._domains:
            self._domains[key] = parts, domain_of(rule, parts)
        return self._domains[key]

    def _other_opening(self, fresh: Node) -> Seen | None:
        """The latest first request of another session with the same tools."""
        index = self._openings.get(_opening_key(fresh))
        seen = self._recall(index) if index is not None else None
        return seen if seen is not None and seen.node.session != fresh.session else None

    def _choose(self, exchange: Exchange, prompt: Prompt, decoded: DecodedUsage | None) -> Choice:
        if exchange.rendered is not None and self.options.server is None:
            name = exchange.rendered.engine.split()[0]
            for rule in self._chooser.rules:
                if name in (rule.name, *rule.aliases):
                    return Choice(rule, f"engine {exchange.rendered.engine}")
        dialect = decoded.dialect if decoded else None
        return self._chooser.choose(exchange.upstream, prompt.model, prompt.api, dialect)

    def _place(self, fresh: Node, match: Match | None, key: SessionKey | None) -> None:
        """Gives a node its session and thread."""
        parent = match.node if match else None
        fresh.parent = parent
        if key is not None:
            fresh.session = key.value
        elif parent is not None:
            fresh.session = parent.session
        else:
            opening = digest(f"{fresh.t}", *(exact.hex() for exact in fresh.prompt.exacts[:64]))
            fresh.session = f"c{opening.hex()[:10]}"
            while fresh.session in self._sessions:
                fresh.session += "'"
        self._sessions.setdefault(fresh.session, key or SessionKey("content", "", fresh.session))
        if parent is not None and parent.session == fresh.session and match is not None:
            branches = match.relation == "quoted" or (parent.echoed and match.echo)
            if not branches:
                fresh.thread = parent.thread
                return
        fresh.thread = self._thread_counts.get(fresh.session, 0)
        self._thread_counts[fresh.session] = fresh.thread + 1

    def _recall(self, index: int) -> Seen | None:
        seen = self._seen.get(index)
        if seen is not None:
            self._in_use.touch(seen.layout)
        return seen

    def laid_out(self, index: int) -> tuple[Layout, tuple[Segment, ...], tuple[int, ...]] | None:
        """A prompt in tokens, its reply's segments and their tokens; None where nothing was cached of it."""
        seen = self._recall(index)
        return (seen.layout, seen.node.reply, seen.node.reply_weights) if seen is not None else None

    def _observe(self, step: Step, turn: Turn) -> None:
        """Remembers an answered exchange for those that follow."""
        seen, node = step.seen, step.seen.node
        thread = self._threads[node.session, node.thread]
        parent = node.parent
        if parent is not None and not parent.echoed and turn.shape in ("append", "changed"):
            added = node.prompt.history[len(parent.prompt.history) :]
            parent.echoed = turn.shape == "changed" or any(s.role == "assistant" for _, s in added)
        if turn.divergence is not None and turn.divergence.group == "tools":
            thread.tool_changes += 1
        thread.replies += node.reply
        if turn.shape in ("side", "first") or node.thread > 0:
            texts = self._summaries[node.session]
            texts += [s.text for s in node.reply if len(s.text) >= LEAST_SUMMARY]
            del texts[:-_SUMMARIES]
        self._lineage.add(node, response_ids(fields_of(step.reading.response)))
        if parent is None:
            self._openings[_opening_key(node)] = node.index
        self._seen[node.index] = seen
        self._in_use.touch(seen.layout)
        self._meter.observe(seen, step.usage.output if step.usage else None)

    def turns(self) -> list[Turn]:
        """All turns so far, with recurrence over what has been seen."""
        catalogue = self._describer.catalogue
        chosen = [code for code in self.rulebook.findings if catalogue.can_be_deliberate(code)]
        by_session: dict[str, list[int]] = defaultdict(list)
        for i, turn in enumerate(self._turns):
            by_session[turn.session].append(i)
        found: list[Turn] = list(self._turns)
        for places in by_session.values():
            turns, facts = [self._turns[i] for i in places], [self._facts[i] for i in places]
            for i, turn in zip(places, relabel(turns, facts, chosen, self.options.deliberate), strict=True):
                found[i] = turn
        return explained(found, self._incomplete, catalogue) if self._incomplete else found

    def result(self) -> Analysis:
        """Everything, by session, in the order in which the sessions began."""
        by_session: dict[str, list[Turn]] = {}
        for turn in self.turns():
            by_session.setdefault(turn.session, []).append(turn)
        prices: Prices | None = self.options.pricer.prices if self.options.pricer else None
        sessions = tuple(
            Session(name, self._sessions[name].kind, self._sessions[name].name, tuple(turns), totals(turns))
            for name, turns in by_session.items()
        )
        return Analysis(__version__, prices, sessions)


def _compacted(exchange: Exchange) -> bool:
    return exchange.headers.get(EVENT) == "compaction"


def _opening_key(node: Node) -> tuple[str, str | None, bytes]:
    """What two sessions must have in common for their first requests to be held side by side."""
    return node.pool, node.prompt.model, digest(*(s.exact.hex() for _, s in node.prompt.tools))


def analyze(
    exchanges: Iterable[Exchange],
    rulebook: Rulebook | None = None,
    options: Options | None = None,
    *,
    server: str | None = None,
) -> Analysis:
    """The analysis of a log. Exchanges are taken in the order given. Raises InputError for wrong options.

    server: the cache rule, for callers that need no other option.
    """
    rulebook = rulebook or Rulebook()
    fold = Fold(rulebook, options or Options.standard(rulebook, server=server))
    for exchange in exchanges:
        fold.step(exchange)
    return fold.result()


def _node(
    index: int,
    exchange: Exchange,
    prompt: Prompt,
    reply: tuple[Segment, ...],
    key: SessionKey | None,
    counter: Counter,
) -> Node:
    total = exchange.timing.total_ms
    pool = f"{exchange.upstream or ''} {prompt.api}"
    return Node(
        index, exchange.t, exchange.t + total / 1000 if total is not None else None, prompt, reply,
        scope=f"{key.name}={key.value}" if key else pool, pool=pool, counter=counter, keyed=key is not None,
    )  # fmt: skip


def _resolved(parent: Node, prompt: Prompt) -> Prompt:
    """A prompt whose start lives in an earlier response: the history there, its reply, then what is new."""
    if prompt.link is None or prompt.link.kind == "diagnostics":
        return prompt
    # Of the head only what stood in the list of input is carried on; the rest is sent each time.
    own, new = _by_place(prompt.head)
    _, carried = _by_place(parent.prompt.head)
    said = (*parent.prompt.history, *(("", segment) for segment in parent.reply))
    if not said:  # a request that only warmed the server up: the head goes on
        return replace(prompt, head=(*own, *carried, *new))
    return replace(prompt, head=(*own, *carried), history=(*said, *new, *prompt.history))


type _Entries = tuple[tuple[str, Segment], ...]


def _by_place(head: _Entries) -> tuple[_Entries, _Entries]:
    """The entries of a head that stand in a field of their own, and those that open the list of input."""
    own = tuple(entry for entry in head if entry[0].startswith("/instructions"))
    return own, tuple(entry for entry in head if not entry[0].startswith("/instructions"))
