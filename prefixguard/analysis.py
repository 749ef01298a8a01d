"""The fold: for each exchange in time, what it continues, where it parts, why, and what it cost.

The same fold serves a log (`analyze`), the live proxy (`Fold.step`, one
exchange at a time) and simulations. It is pure: rules, tokenizers and templates
are handed in, nothing is read and no clock is asked.
"""

from __future__ import annotations

import datetime
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from prefixguard import __version__
from prefixguard.caches.choose import Choice, Chooser, cache_rules
from prefixguard.caches.model import Request
from prefixguard.caches.rule import CacheRule
from prefixguard.caches.slots import Slots
from prefixguard.callsite import with_source
from prefixguard.causes.diagnoses import ReasonTable, compared, read_diagnosis
from prefixguard.causes.domain import DomainTable, domain_parts, moved_part
from prefixguard.causes.evidence import Catalogue, Evidence
from prefixguard.causes.head import CauseTable, HeadCauses
from prefixguard.causes.misses import Circumstances, miss_findings
from prefixguard.causes.naming import name_divergence
from prefixguard.causes.setup import setup_findings, switched_off, volatile_tail
from prefixguard.causes.usage import usage_findings
from prefixguard.costs import ListPricer, Pricer, PriceTable, cost_of_turn, sum_costs, terms_of
from prefixguard.divergence import Parting, part, shape_difference, token_offset, windows
from prefixguard.exchange import Exchange, SessionKey
from prefixguard.finding import Finding
from prefixguard.lineage import LEAST_SUMMARY, Lineage, Match, Node
from prefixguard.measure import Numbers, by_ids, by_segments, partial_tokens
from prefixguard.prompt import Parameter, Prompt, Segment
from prefixguard.recurrence import Facts, relabel
from prefixguard.rendering.template import ChatTemplate
from prefixguard.rulebook import Rulebook
from prefixguard.sessions import SessionKeyRules, body_fields, named_fields, session_key
from prefixguard.shape import LEAST_REBILLED, shape_of
from prefixguard.timeline import Timeline, domain_of
from prefixguard.tokens.choose import Counters, TokenizerTable
from prefixguard.tokens.counter import Counter, Tokenizer
from prefixguard.tokens.layout import KeyedParameters, Layout, lay_out
from prefixguard.turn import (
    Analysis,
    CacheOutcome,
    CodeTotal,
    Cost,
    Divergence,
    Prices,
    Session,
    Shape,
    Tokens,
    Totals,
    Turn,
    Usage,
    Verdict,
)
from prefixguard.wire.decoder import Decoder, Reading, UnreadableError
from prefixguard.wire.usage import DecodedUsage, decode_usage
from prefixguard.working_set import WorkingSet

__all__ = ["Analysis", "Fold", "Options", "analyze"]

_TERMS = ("service_tier", "speed", "inference_geo")
_LEAST_LOST = 256
_LEAST_SIDE = 1024
_ASSUMED_LATENCY = 1.0
"""Seconds until a reply begins, where a log has no timing."""


@dataclass(frozen=True, slots=True)
class Options:
    """What a user may say about the analysis.

    server: name of a cache rule, with options. template: the server's chat
    template. tokenizer: counts everything. deliberate: codes that were decided
    on. pricer: prices turns; without one, costs are unknown.
    """

    server: str | None = None
    template: ChatTemplate | None = None
    tokenizer: Tokenizer | None = None
    deliberate: frozenset[str] = frozenset()
    pricer: Pricer | None = None
    local: bool = False
    price_date: datetime.date | None = None

    @classmethod
    def standard(cls, rulebook: Rulebook, *, server: str | None = None, **more: Any) -> Options:
        """The options that commands start from: list prices from the rulebook."""
        return cls(server=server, pricer=ListPricer(rulebook.tables("prices", PriceTable)), **more)


@dataclass(slots=True)
class _Seen:
    """What is kept of an exchange for those that follow."""

    node: Node
    layout: Layout
    request: Request
    domain: str
    parts: Mapping[str, str | None]
    rule: CacheRule
    rendered: Layout | None = None
    rendered_request: Request | None = None
    exchange_ids: Any = None


@dataclass(slots=True)
class _Thread:
    """What a thread remembers: replies, changes of tools, codes that are said once only."""

    tool_changes: int = 0
    replies: list[Segment] = field(default_factory=list)
    said: set[str] = field(default_factory=set)


class Fold:
    """The analysis of a stream of exchanges, in the order of their times."""

    def __init__(self, rulebook: Rulebook | None = None, options: Options | None = None) -> None:
        """Raises InputError or RuleError when an option or a rule is wrong."""
        self.rulebook = rulebook or Rulebook()
        self.options = options or Options()
        rules = cache_rules(self.rulebook)
        self._chooser = Chooser(rules, self.options.server)
        self._decoder = Decoder({"*": _parameter_names(rules)})
        self._counters = Counters(self.rulebook.table("tokenizers", TokenizerTable), self.options.tokenizer)
        self._keys = self.rulebook.table("session-keys", SessionKeyRules)
        self._accounts = self.rulebook.table("domains", DomainTable)
        self._reasons = self.rulebook.table("diagnoses", ReasonTable)
        self._catalogue = Catalogue(self.rulebook.findings)
        self._head = HeadCauses(self.rulebook.table("causes", CauseTable), self._catalogue)
        self._in_use = WorkingSet()
        self._lineage = Lineage(self._in_use)
        self._timeline = Timeline()
        self._slots: dict[str, Slots] = {}
        self._seen: dict[int, _Seen] = {}
        self._turns: list[Turn] = []
        self._facts: list[Facts] = []
        self._sessions: dict[str, SessionKey] = {}
        self._threads: dict[tuple[str, int], _Thread] = defaultdict(_Thread)
        self._thread_counts: dict[str, int] = {}
        self._scales: dict[str, float] = {}
        self._domains: dict[tuple[object, ...], tuple[Mapping[str, str | None], str]] = {}
        self._summaries: dict[str, list[str]] = defaultdict(list)

    # -- one step ---------------------------------------------------------------------------

    def step(self, exchange: Exchange) -> Turn:
        """Takes the next exchange and says everything about it. Never raises on odd exchanges."""
        index = len(self._turns)
        try:
            reading = self._decoder.read(exchange)
        except UnreadableError as error:
            turn = self._unreadable(index, exchange, _usage_of(exchange, None), str(error))
            facts = Facts(False, 0.0)
        else:
            turn, facts = self._understood(index, exchange, reading, _usage_of(exchange, reading))
        self._turns.append(turn)
        self._facts.append(facts)
        return turn

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

    def _understood(
        self, index: int, exchange: Exchange, reading: Reading, decoded: DecodedUsage | None
    ) -> tuple[Turn, Facts]:
        usage = decoded.usage if decoded else None
        choice = self._choose(exchange, reading.prompt, decoded)
        rule = choice.rule
        prompt, reply = reading.prompt.in_order(rule.rendered_order), reading.reply
        counter = self._counters.counter(prompt.model)
        key = session_key(exchange.headers, named_fields(reading.body.fields, self._keys), self._keys)
        pool = f"{exchange.upstream or ''} {prompt.api}"
        fresh = self._node(index, exchange, prompt, reply, key, pool, counter)
        match = self._lineage.parent(fresh)
        if match is not None and match.relation == "linked" and prompt.link is not None:
            prompt, fresh = self._resolve(match.node, prompt, fresh, exchange, key, pool, counter)
        self._place(fresh, match, key)
        before = self._recall(match.node.index) if match else None
        earlier = before.layout if before else None
        if earlier is not None and earlier.prompt.order != prompt.order:
            earlier = lay_out(earlier.prompt.in_order(prompt.order), counter, earlier.keyed, last_scale=earlier.scale)
        layout = lay_out(
            prompt, counter, _keyed(rule, prompt),
            reported=usage.total if usage and usage.total else None,
            last_scale=self._scales.get(fresh.session, 1.0), earlier=earlier,
        )  # fmt: skip
        self._scales[fresh.session] = layout.scale
        parts, domain = self._domain(rule, domain_parts(self._accounts, exchange, prompt))
        request = Request(
            index, exchange.t, _begun(exchange), layout, _routing(rule, exchange, prompt),
            tuple(s.exact for s in reply), settled=bool(match and match.echo),
        )  # fmt: skip
        seen = _Seen(fresh, layout, request, domain, parts, rule)
        parting = part(earlier, layout, rule.blind) if earlier is not None else None
        numbers = self._numbers(seen, before, earlier, parting, counter, exchange, match)
        turn, facts = self._describe(
            seen, before, earlier, match, parting, numbers, counter, exchange, choice, decoded, reading
        )
        if exchange.status is None or exchange.status < 400:
            self._observe(seen, exchange, turn, reading)
        return turn, facts

    def _domain(
        self, rule: CacheRule, parts: dict[str, str | None]
    ) -> tuple[Mapping[str, str | None], str]:
        """The parts and the name of a cache domain, one copy for all turns that lie in it."""
        key = (rule.name, *parts.items())
        if key not in self._domains:
            self._domains[key] = parts, domain_of(rule, parts)
        return self._domains[key]

    def _choose(self, exchange: Exchange, prompt: Prompt, decoded: DecodedUsage | None) -> Choice:
        if exchange.rendered is not None and self.options.server is None:
            name = exchange.rendered.engine.split()[0]
            for rule in self._chooser.rules:
                if name in (rule.name, *rule.aliases):
                    return Choice(rule, f"engine {exchange.rendered.engine}")
        dialect = decoded.dialect if decoded else None
        return self._chooser.choose(exchange.upstream, prompt.model, prompt.api, dialect)

    def _node(
        self, index: int, exchange: Exchange, prompt: Prompt, reply: tuple[Segment, ...],
        key: SessionKey | None, pool: str, counter: Counter,
    ) -> Node:  # fmt: skip
        total = exchange.timing.total_ms
        return Node(
            index, exchange.t, exchange.t + total / 1000 if total is not None else None, prompt, reply,
            scope=f"{key.name}={key.value}" if key else pool, pool=pool,
            counter=counter, keyed=key is not None,
        )  # fmt: skip

    def _resolve(
        self, parent: Node, prompt: Prompt, fresh: Node, exchange: Exchange,
        key: SessionKey | None, pool: str, counter: Counter,
    ) -> tuple[Prompt, Node]:  # fmt: skip
        """A prompt whose start lives in an earlier response: history there, reply, then what is new."""
        assert prompt.link is not None
        if prompt.link.kind == "diagnostics":
            return prompt, fresh
        carried = (*parent.prompt.history, *(("", s) for s in parent.reply))
        whole = replace(prompt, history=(*carried, *prompt.history))
        return whole, self._node(fresh.index, exchange, whole, fresh.reply, key, pool, counter)

    def _place(self, fresh: Node, match: Match | None, key: SessionKey | None) -> None:
        """Gives a node its session and thread."""
        parent = match.node if match else None
        fresh.parent = parent
        if key is not None:
            fresh.session = key.value
        elif parent is not None:
            fresh.session = parent.session
        else:
            fresh.session = f"c{_root_digest(fresh)}"
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

    # -- numbers ----------------------------------------------------------------------------

    def _numbers(
        self, seen: _Seen, before: _Seen | None, earlier: Layout | None, parting: Parting | None,
        counter: Counter, exchange: Exchange, match: Match | None,
    ) -> Numbers:  # fmt: skip
        cache = self._timeline.model(seen.domain, seen.rule, seen.layout.prompt.model)
        parent_index = match.node.index if match else None
        partial = partial_tokens(self._layout_of, counter, parent_index)
        readable = cache.read(seen.request, partial)
        if switched_off(seen.rule, seen.layout):
            readable = replace(readable, low=0, high=0)
        parent_cache = None
        if before is not None:
            parent_cache = self._timeline.model(before.domain, before.rule, before.layout.prompt.model)
        parent_request = replace(before.request, layout=earlier) if before and earlier is not None else None
        numbers = by_segments(
            seen.layout, earlier, parting, readable, cache, parent_cache, seen.request, parent_request, counter,
            seen.rule.grain if seen.rule.kind == "prefix" else 0,
        )  # fmt: skip
        if exchange.rendered is not None:
            slots = self._slots.setdefault(seen.domain, Slots(seen.rule.slots or 1))
            seen.exchange_ids = exchange.rendered
            ids = before.exchange_ids.prompt if before and before.exchange_ids is not None else None
            return by_ids(exchange.rendered.prompt, ids, numbers, seen.rule, slots, earlier)
        if self.options.template is not None:
            return self._by_template(self.options.template, seen, before, counter, exchange, numbers)
        return numbers

    def _by_template(
        self, template: ChatTemplate, seen: _Seen, before: _Seen | None, counter: Counter,
        exchange: Exchange, fallback: Numbers,
    ) -> Numbers:  # fmt: skip
        """The same numbers on the text that the chat template makes of the request."""
        from prefixguard.wire.completions import prompt_text

        text = template.render(exchange)
        if text is None:
            return fallback
        rendered = Prompt("rendered", seen.layout.prompt.model, (), (), tuple(("", s) for s in prompt_text(text)), raw=True)
        layout = lay_out(rendered, counter, seen.layout.keyed, last_scale=1.0)
        request = replace(seen.request, layout=layout, reply=())
        cache = self._timeline.model(f"rendered {seen.domain}", seen.rule, seen.layout.prompt.model)
        seen.rendered, seen.rendered_request = layout, request
        earlier = before.rendered if before else None
        also = before.node.index if before else None
        readable = cache.read(request, partial_tokens(self._rendered_of, counter, also))
        parting = part(earlier, layout) if earlier is not None else None
        if parting is not None and earlier is not None and parting.char >= len(earlier.prompt.segments[0].text):
            parting = None  # the earlier text is a prefix of this one
        numbers = by_segments(
            layout, earlier, parting, readable, cache, cache, request,
            before.rendered_request if before else None, counter,
        )  # fmt: skip
        return replace(numbers, method="template", exact=counter.exact)

    def _rendered_of(self, index: int) -> Layout | None:
        seen = self._seen.get(index)
        return seen.rendered if seen else None

    def _layout_of(self, index: int) -> Layout | None:
        seen = self._recall(index)
        return seen.layout if seen else None

    def laid_out(self, index: int) -> tuple[Layout, tuple[Segment, ...], tuple[int, ...]] | None:
        """A prompt in tokens, its reply's segments and their tokens; None where nothing was cached of it."""
        seen = self._recall(index)
        return (seen.layout, seen.node.reply, seen.node.reply_weights) if seen is not None else None

    def _recall(self, index: int) -> _Seen | None:
        seen = self._seen.get(index)
        if seen is not None:
            self._in_use.touch(seen.layout)
        return seen

    # -- words ------------------------------------------------------------------------------

    def _describe(
        self, seen: _Seen, before: _Seen | None, earlier: Layout | None, match: Match | None,
        parting: Parting | None, numbers: Numbers, counter: Counter, exchange: Exchange, choice: Choice,
        decoded: DecodedUsage | None, reading: Reading,
    ) -> tuple[Turn, Facts]:  # fmt: skip
        fresh, layout, rule = seen.node, seen.layout, seen.rule
        prompt = layout.prompt
        usage = decoded.usage if decoded else None
        thread = self._threads[fresh.session, fresh.thread]
        ok = exchange.status is None or exchange.status < 400
        lost, again = (numbers.lost, numbers.rebilled) if numbers.parted else (0, 0)
        unseen = (numbers.method in ("server", "template")) and parting is None and numbers.parted
        shape = shape_of(match, fresh, parting or (_somewhere(prompt) if unseen else None), lost, again)
        moved = moved_part(before.parts, seen.parts) if before and rule.hosted else None
        routing = self._routing_change(rule, before, seen)
        tolerance = rule.grain if numbers.exact else max(rule.grain, round(0.03 * layout.total))
        verdict = _verdict(usage, numbers, tolerance)
        reported = usage.read if usage else None
        confirmed = _confirmed(parting, numbers, reported, rule)
        findings: list[Finding] = []
        is_break = False
        if parting is not None and earlier is not None and match is not None and shape in ("changed", "side"):
            evidence = Evidence(
                fresh, match, earlier, layout, parting, rule, numbers.readable, numbers.keep, numbers.got
            )
            named = self._named(evidence, shape, thread)
            is_break = (
                confirmed and moved is None and ok and self._breaks(shape, named, numbers, lost, again)
            )
            findings += named if is_break else [f.but(severity="info") for f in named]
        elif unseen and shape == "changed" and again >= LEAST_REBILLED:
            is_break = ok
            findings.append(
                self._catalogue.finding(
                    "PG701", "the requests are append-only, but the chat template renders earlier turns anew",
                    evidence=f"{numbers.shared:,} of {numbers.keep:,} tokens stay the same", primary=True, by="server",
                )
            )  # fmt: skip
        note = shape_difference(earlier.prompt, prompt) if earlier is not None and parting is None else None
        if note is not None:
            findings.append(self._shape_finding(note))
        findings += self._remarks(seen, before, earlier, match, parting, numbers, shape, exchange, decoded, thread)
        findings += miss_findings(
            self._catalogue,
            Circumstances(
                rule, numbers.readable, numbers.keep, parting is not None and shape == "changed", moved, routing,
                rule.routing[0] if rule.routing else "", layout.total, usage, verdict, tolerance,
                _longest_ttl(rule, layout), bool(switched_off(rule, layout)),
            ),
        ) if ok else []  # fmt: skip
        visible = parting or note
        against = match.node.index if match else None
        if match is None:
            against, visible, remarks = self._beside_donor(seen, numbers, counter)
            findings += remarks
        turn = Turn(
            index=fresh.index, t=exchange.t, status=exchange.status, upstream=exchange.upstream,
            domain=seen.domain, session=fresh.session, thread=fresh.thread,
            parent=match.node.index if match else None, donor=numbers.readable.donor, shape=shape,
            api=prompt.api, model=prompt.model,
            divergence=None
            if visible is None or against is None
            else self._divergence(against, visible, layout, counter, numbers),
            findings=with_source(tuple(findings), exchange.extra), is_break=is_break,
            tokens=Tokens(numbers.prompt, numbers.shared, lost, again, numbers.method, numbers.exact), usage=usage,
            cache=CacheOutcome(
                rule.name, choice.decided_by, rule.verified, numbers.readable.low, numbers.readable.high,
                reported, verdict,
            ),
            timing=exchange.timing, cost=self._cost(exchange, reading, numbers, decoded, rule, shape), aborted=exchange.aborted,
        )  # fmt: skip
        told = read_diagnosis(_fields(reading.response))
        if told is not None:
            place = turn.divergence.group if turn.divergence is not None else None
            turn = replace(turn, diagnosis=compared(self._reasons, told, place, findings))
        tail = _tail_roles(prompt)
        freed = _freed(earlier, layout) if earlier is not None and is_break else 0.0
        return turn, Facts("user" in tail, freed)

    def _beside_donor(
        self, seen: _Seen, numbers: Numbers, counter: Counter
    ) -> tuple[int | None, Parting | None, list[Finding]]:
        """Without a parent, a request is shown beside the exchange whose cache entry it comes closest to."""
        donor = numbers.readable.donor
        layout = self._layout_of(donor) if donor is not None else None
        if layout is None or layout.prompt.order != seen.layout.prompt.order:
            return None, None, []
        parting = part(layout, seen.layout, seen.rule.blind)
        if parting is None or not parting.boundary and not parting.char:
            return None, None, []
        found = []
        minimum = seen.rule.minimum_for(seen.layout.prompt.model)
        if seen.rule.kind == "breakpoint" and volatile_tail(seen.rule, layout, parting.boundary, minimum):
            found.append(self._volatile_tail(parting))
        return donor, parting, found

    def _volatile_tail(self, parting: Parting) -> Finding:
        text = "the only cached position ends in a block that is replaced on each request"
        return self._catalogue.finding("PG509", text, pointer=parting.pointer)

    def _named(self, evidence: Evidence, shape: Shape, thread: _Thread) -> list[Finding]:
        if shape == "side":
            text = "a helper request quotes the history behind another prefix and reads nothing of its cache"
            side = self._catalogue.finding("PG511", text, pointer=evidence.parting.pointer, primary=True)
            return [side]
        named = name_divergence(
            self._catalogue, self._head, evidence,
            replies=thread.replies,
            summaries=[
                *self._summaries[evidence.fresh.session],
                *(s.text for s in thread.replies[-4:] if len(s.text) >= LEAST_SUMMARY),
            ],
            tools_changed_before=thread.tool_changes > 0,
        )  # fmt: skip
        old = evidence.parting.old
        if evidence.rule.kind == "breakpoint" and old is not None and old.mark is not None:
            named.append(
                self._catalogue.finding(
                    "PG501", "a breakpoint stands on a block that changes", pointer=evidence.parting.pointer,
                    severity="info",
                )
            )  # fmt: skip
        return named

    def _breaks(self, shape: Shape, named: list[Finding], numbers: Numbers, lost: int, again: int) -> bool:
        if shape == "side":
            return again >= max(_LEAST_SIDE, numbers.keep // 4)
        return again >= LEAST_REBILLED or (named[0].code == "PG303" and lost >= _LEAST_LOST)

    def _shape_finding(self, note: Parting) -> Finding:
        old, new = note.old, note.new
        assert old is not None and new is not None
        return self._catalogue.finding(
            "PG208", f"the same text as {_shape_word(new.shape)} where it was {_shape_word(old.shape)}",
            pointer=note.pointer, severity="info",
        )  # fmt: skip

    def _remarks(
        self, seen: _Seen, before: _Seen | None, earlier: Layout | None, match: Match | None,
        parting: Parting | None, numbers: Numbers, shape: Shape, exchange: Exchange,
        decoded: DecodedUsage | None, thread: _Thread,
    ) -> list[Finding]:  # fmt: skip
        """Findings that do not explain a divergence; those about settings are said once per thread."""
        rule, layout = seen.rule, seen.layout
        minimum = rule.minimum_for(layout.prompt.model)
        grand = before.node.parent if before else None
        grand_seen = self._recall(grand.index) if grand else None
        found = setup_findings(
            self._catalogue, rule, layout, earlier, grand_seen.layout if grand_seen else None,
            numbers.readable, minimum,
        )  # fmt: skip
        if parting is not None and earlier is not None:
            if shape in ("rewind", "fork", "append", "changed") and rule.kind == "breakpoint" and parting.parameter is None:
                if volatile_tail(rule, earlier, parting.boundary, minimum):
                    found.append(self._volatile_tail(parting))
            old, new = parting.old, parting.new
            if (
                shape in ("rewind", "fork", "append") and old is not None and new is not None and old.role == new.role
                and parting.char == len(old.text) > 0
            ):  # fmt: skip
                found.append(
                    self._catalogue.finding(
                        "PG210", "a message was merged into the one before it", pointer=parting.pointer, severity="info"
                    )
                )
        if match is not None and match.node.reply and shape == "append" and not match.echo:
            found += self._not_echoed(match, layout.prompt)
        found += usage_findings(self._catalogue, rule, layout.prompt, exchange, decoded)
        repeated = ("PG502", "PG505", "PG506", "PG210", "PG803")
        kept = [f for f in found if f.code in repeated or f.code not in thread.said]
        thread.said.update(f.code for f in kept)
        return kept

    def _not_echoed(self, match: Match, prompt: Prompt) -> list[Finding]:
        """The server's reply came back as something else: the cached reply is of no use."""
        at = len(match.node.prompt.history)
        if at >= len(prompt.history) or prompt.history[at][1].role != "assistant":
            return []
        if sum(match.node.reply_weights) < LEAST_REBILLED:
            return []
        base, segment = prompt.history[at]
        return [
            self._catalogue.finding(
                "PG307", "the assistant message differs from the reply that the server gave",
                pointer=base + segment.pointer, severity="info",
            )
        ]  # fmt: skip

    def _divergence(
        self, against: int, parting: Parting, layout: Layout, counter: Counter, numbers: Numbers
    ) -> Divergence:
        before, before_at, after, after_at = windows(parting)
        group = layout.prompt.group(parting.boundary) if parting.boundary < len(layout.counts) else "history"
        offset = token_offset(layout, parting.boundary, parting.char, counter)
        if numbers.method == "server":
            offset = numbers.shared
        return Divergence(
            against=against, within="parent" if parting.within == "parent" else "turn",
            pointer=parting.pointer, kind=parting.kind,
            certainty="certain" if numbers.method in ("server", "template") else parting.certainty,
            char_offset=parting.char, token_offset=offset, before=before, after=after,
            before_at=before_at, after_at=after_at,
            group="parameters" if parting.parameter else group,
        )  # fmt: skip

    def _routing_change(
        self, rule: CacheRule, before: _Seen | None, seen: _Seen
    ) -> tuple[str | None, str | None] | None:
        if not rule.routing or before is None or before.node.session != seen.node.session:
            return None
        old, new = before.request.routing, seen.request.routing
        if old != new:
            return old, new
        return (None, None) if new is None and rule.name == "openai-5.6" else None

    def _cost(
        self, exchange: Exchange, reading: Reading, numbers: Numbers, decoded: DecodedUsage | None,
        rule: CacheRule, shape: Shape,
    ) -> Cost:  # fmt: skip
        if self.options.pricer is None or decoded is None:
            return Cost()
        prompt, body = reading.prompt, reading.body
        terms = terms_of(
            {name: body.get(name) for name in _TERMS if name in body.fields},
            _fields(reading.response) or None,
            price_date=self.options.price_date, local=not rule.hosted or self.options.local,
        )  # fmt: skip
        minimum = rule.minimum_for(prompt.model)
        ideal = numbers.keep if shape in ("append", "retry", "changed", "side") else decoded.usage.read
        writes = rule.kind == "breakpoint" and decoded.usage.total >= minimum
        return cost_of_turn(
            self.options.pricer, prompt.model, prompt.api, exchange.upstream, decoded.usage, exchange.t,
            ideal_read=ideal or 0, rule_write_ttl=next(iter(rule.ttl), None) if writes else None,
            options=terms, beside=decoded.beside,
        )  # fmt: skip

    # -- memory -----------------------------------------------------------------------------

    def _observe(self, seen: _Seen, exchange: Exchange, turn: Turn, reading: Reading) -> None:
        node = seen.node
        thread = self._threads[node.session, node.thread]
        if node.parent is not None and turn.shape in ("append", "changed") and not node.parent.echoed:
            node.parent.echoed = any(s.role == "assistant" for _, s in node.prompt.history[len(node.parent.prompt.history):]) or turn.shape == "changed"
        if turn.divergence is not None and turn.divergence.group == "tools":
            thread.tool_changes += 1
        thread.replies += node.reply
        if turn.shape in ("side", "first") or node.thread > 0:
            texts = self._summaries[node.session]
            texts += [s.text for s in node.reply if len(s.text) >= LEAST_SUMMARY]
            del texts[:-8]
        self._lineage.add(node, _response_ids(_fields(reading.response)))
        self._seen[node.index] = seen
        self._in_use.touch(seen.layout)
        self._timeline.model(seen.domain, seen.rule, node.prompt.model).observe(seen.request)
        if seen.rendered_request is not None:
            self._timeline.model(f"rendered {seen.domain}", seen.rule, node.prompt.model).observe(seen.rendered_request)
        if exchange.rendered is not None:
            slots = self._slots.setdefault(seen.domain, Slots(seen.rule.slots or 1))
            slots.observe(node.index, exchange.rendered.prompt, exchange.rendered.reply)

    # -- the whole --------------------------------------------------------------------------

    def turns(self) -> list[Turn]:
        """All turns so far, with recurrence over what has been seen."""
        chosen = [code for code in self.rulebook.findings if self._catalogue.can_be_deliberate(code)]
        by_session: dict[str, list[int]] = defaultdict(list)
        for i, turn in enumerate(self._turns):
            by_session[turn.session].append(i)
        found: list[Turn] = list(self._turns)
        for places in by_session.values():
            labelled = relabel(
                [self._turns[i] for i in places], [self._facts[i] for i in places], chosen, self.options.deliberate
            )
            for i, turn in zip(places, labelled, strict=True):
                found[i] = turn
        return found

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


def totals(turns: list[Turn]) -> Totals:
    """Sums over turns."""
    reported = [t.usage for t in turns if t.usage is not None and t.usage.read is not None]
    prompt = sum(u.total for u in reported)
    breaks = [t for t in turns if t.is_break]
    codes: dict[str, list[Turn]] = defaultdict(list)
    for turn in turns:
        for code in {f.code for f in turn.findings}:
            codes[code].append(turn)
    by_code = {}
    for code in sorted(codes):
        mine = [t for t in codes[code] if t.is_break and any(f.code == code and f.primary for f in t.findings)]
        money = [t.cost.avoidable for t in mine if t.cost.avoidable is not None]
        by_code[code] = CodeTotal(
            len(codes[code]), sum(t.tokens.rebilled for t in mine), sum(money) if money else None
        )
    billed = [t.cost for t in turns if t.status is None or t.status < 400]
    return Totals(
        turns=len(turns),
        breaks=len(breaks),
        breaks_deliberate=sum(1 for t in breaks if not t.is_fault),
        rebilled_tokens=sum(t.tokens.rebilled for t in breaks),
        hit_rate=sum(u.read or 0 for u in reported) / prompt if prompt else None,
        cost=sum_costs(billed),
        by_code=by_code,
    )


# -- small readings ---------------------------------------------------------------------------


def _parameter_names(rules: tuple[CacheRule, ...]) -> tuple[str, ...]:
    names: dict[str, None] = {}
    for rule in rules:
        for level in rule.levels.values():
            names.update(dict.fromkeys(level))
        names.update(dict.fromkeys(switch.name for switch in rule.off))
        names.update(dict.fromkeys(rule.routing))
        names.update(dict.fromkeys(rule.domain))
    return tuple(name for name in names if name not in ("model", "host", "account"))


def _keyed(rule: CacheRule, prompt: Prompt) -> KeyedParameters:
    levels: dict[str, list[Parameter]] = {"top": [], "head": [], "history": [], "unknown": []}
    for parameter in prompt.parameters:
        level = rule.level(parameter.name)
        if level is not None:
            levels[level].append(parameter)
    return KeyedParameters(*(tuple(levels[name]) for name in ("top", "head", "history", "unknown")))


def _usage_of(exchange: Exchange, reading: Reading | None) -> DecodedUsage | None:
    if exchange.usage is not None or reading is None:
        body = _plain(exchange.usage or exchange.response)
    else:
        body = _fields(reading.response)
    return decode_usage(body) if body else None


def _fields(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _plain(raw: bytes | None) -> dict[str, Any]:
    """A JSON object's fields; {} for anything else."""
    try:
        return _fields(msgspec.json.decode(raw)) if raw is not None else {}
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}


def _begun(exchange: Exchange) -> float | None:
    timing = exchange.timing
    ms = timing.first_token_ms if timing.first_token_ms is not None else timing.total_ms
    return exchange.t + (ms / 1000 if ms is not None else _ASSUMED_LATENCY)


def _routing(rule: CacheRule, exchange: Exchange, prompt: Prompt) -> str | None:
    values = {p.name: p.value.strip('"') for p in prompt.parameters}
    return next((v for name in rule.routing if (v := exchange.headers.get(name) or values.get(name))), None)


def _root_digest(fresh: Node) -> str:
    from prefixguard.wire.identity import digest

    return digest(f"{fresh.t}", *(e.hex() for e in fresh.prompt.exacts[:64])).hex()[:10]


def _verdict(usage: Usage | None, numbers: Numbers, tolerance: int) -> Verdict:
    if usage is None or usage.read is None:
        return "not-reported"
    slack = 0 if numbers.exact and numbers.method == "server" else tolerance
    if usage.read < numbers.readable.low - slack:
        return "less"
    if usage.read > numbers.readable.high + slack:
        return "more"
    return "as-predicted"


def _confirmed(parting: Parting | None, numbers: Numbers, reported: int | None, rule: CacheRule) -> bool:
    """Whether a divergence that only some servers see was seen by this one."""
    if parting is None or parting.certainty == "certain" or numbers.method == "server":
        return True
    if reported is None or reported >= numbers.keep - rule.grain:
        return False
    seen = parting.parameter is not None
    expected = numbers.got if seen else max(numbers.got, numbers.readable.high)
    return reported <= expected + max(rule.grain, round(0.03 * numbers.prompt))


def _somewhere(prompt: Prompt) -> Parting:
    """Stands for a divergence that only the rendered prompt has."""
    return Parting(0, 0, "changed", "certain", "", "turn")


def _longest_ttl(rule: CacheRule, layout: Layout) -> str | None:
    asked = [mark.ttl for _, mark in layout.marks if mark.ttl]
    return max(asked, key=lambda ttl: rule.ttl_seconds(ttl) or 0, default=None)


def _tail_roles(prompt: Prompt) -> set[str]:
    roles: set[str] = set()
    for _, segment in reversed(prompt.history):
        if segment.role == "assistant":
            break
        roles.add(segment.role)
    return roles


def _freed(earlier: Layout, later: Layout) -> float:
    """The part of the earlier prompt that the later one no longer sends, 0 to 1."""
    there = {s.alike for s in later.prompt.segments}
    gone = sum(c for s, c in zip(earlier.prompt.segments, earlier.counts, strict=True) if s.alike not in there)
    known = {s.alike for s in earlier.prompt.segments}
    new = sum(
        c
        for s, c in zip(later.prompt.segments[: len(earlier.counts)], later.counts, strict=False)
        if s.alike not in known
    )
    total = sum(earlier.counts)
    return max(0, gone - new) / total if total else 0.0


def _shape_word(shape: str) -> str:
    return "a string" if shape == "string" else "a list of blocks"


def _response_ids(response: Mapping[str, Any]) -> tuple[str, ...]:
    conversation = response.get("conversation")
    names = [response.get("id"), conversation.get("id") if isinstance(conversation, dict) else conversation]
    return tuple(name for name in names if isinstance(name, str) and name)
