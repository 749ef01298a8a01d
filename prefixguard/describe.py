"""From a measured step to a turn: its shape, whether it is a break, its findings, its price."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from prefixguard.callsite import with_source
from prefixguard.causes.diagnoses import ReasonTable, compared, read_diagnosis
from prefixguard.causes.domain import moved_part
from prefixguard.causes.evidence import Catalogue, Evidence
from prefixguard.causes.head import CauseTable, HeadCauses
from prefixguard.causes.misses import Circumstances, miss_findings
from prefixguard.causes.naming import name_divergence
from prefixguard.causes.openings import opening_findings
from prefixguard.causes.remarks import remarks, replaced_tail, shape_note
from prefixguard.causes.setup import switched_off
from prefixguard.costs import cost_of_turn, terms_of
from prefixguard.divergence import Parting, part, shape_difference, token_offset, windows
from prefixguard.finding import Finding
from prefixguard.lineage import LEAST_SUMMARY
from prefixguard.measure import Numbers
from prefixguard.options import Options
from prefixguard.rulebook import Rulebook
from prefixguard.shape import LEAST_REBILLED, shape_of
from prefixguard.step import Seen, Step, Thread
from prefixguard.turn import CacheOutcome, Cost, Divergence, Shape, Tokens, Turn, Usage, Verdict
from prefixguard.verdict import confirmed, costs_enough, tolerance_of, verdict_of
from prefixguard.wire.reported import fields_of
from prefixguard.wire.usage import DecodedUsage

_TERMS = ("service_tier", "speed", "inference_geo")
_ELSEWHERE = Parting(0, 0, "changed", "certain", "", "turn")
"""Stands for a divergence that only the rendered prompt has."""


class Describer:
    """Says what a step is. Everything it remembers is handed in."""

    def __init__(self, rulebook: Rulebook, options: Options) -> None:
        """Raises RuleError when a rule is wrong."""
        self.catalogue = Catalogue(rulebook.findings)
        self._options = options
        self._head = HeadCauses(rulebook.table("causes", CauseTable), self.catalogue)
        self._reasons = rulebook.table("diagnoses", ReasonTable)

    def describe(
        self,
        step: Step,
        numbers: Numbers,
        thread: Thread,
        summaries: Sequence[str],
        recall: Callable[[int], Seen | None],
    ) -> Turn:
        """The turn. summaries: texts of replies that may be summaries of this session's history."""
        lost, again = (numbers.lost, numbers.rebilled) if numbers.parted else (0, 0)
        only_rendered = step.parting is None and numbers.parted and numbers.method in ("server", "template")
        shape = shape_of(
            step.match, step.seen.node, _ELSEWHERE if only_rendered else step.parting, lost, again
        )
        tolerance = tolerance_of(step.rule, numbers, step.layout.total)
        verdict = verdict_of(step.usage, numbers, tolerance)
        moved = moved_part(step.before.parts, step.seen.parts) if step.before and step.rule.hosted else None
        is_break, findings = self._cause(step, numbers, shape, moved, thread, summaries)
        if only_rendered and shape == "changed" and again >= LEAST_REBILLED:
            is_break = step.answered
            findings.append(self._template_fault(numbers))
        against, visible = (step.match.node.index, step.parting) if step.match else (None, None)
        if step.earlier is not None and step.parting is None:
            visible = shape_difference(step.earlier.prompt, step.prompt)
            findings += [shape_note(self.catalogue, visible)] if visible else []
        findings += remarks(self.catalogue, step, shape, numbers.readable, thread.said)
        if step.answered:
            others = _others(step, recall) if verdict == "less" and not step.rule.hosted else 0
            findings += self._misses(step, numbers, shape, moved, verdict, tolerance, others)
        if step.match is None:
            against, visible, beside = self._beside_donor(step, numbers, recall)
            findings += beside
        divergence = None
        if visible is not None and against is not None:
            divergence = _divergence(step, against, visible, numbers)
        exchange, seen = step.exchange, step.seen
        turn = Turn(
            index=seen.node.index, t=exchange.t, status=exchange.status, upstream=exchange.upstream,
            domain=seen.domain, session=seen.node.session, thread=seen.node.thread,
            parent=step.match.node.index if step.match else None, donor=numbers.readable.donor, shape=shape,
            api=step.prompt.api, model=step.prompt.model, divergence=divergence,
            findings=with_source(tuple(findings), exchange.extra), is_break=is_break,
            tokens=Tokens(numbers.prompt, numbers.shared, lost, again, numbers.method, numbers.exact),
            usage=step.usage, cache=_outcome(step, numbers, verdict), timing=exchange.timing,
            cost=self._cost(step, numbers, shape), aborted=exchange.aborted,
        )  # fmt: skip
        told = read_diagnosis(fields_of(step.reading.response))
        if told is None:
            return turn
        place = divergence.group if divergence is not None else None
        return replace(turn, diagnosis=compared(self._reasons, told, place, findings))

    def _cause(
        self,
        step: Step,
        numbers: Numbers,
        shape: Shape,
        moved: str | None,
        thread: Thread,
        summaries: Sequence[str],
    ) -> tuple[bool, list[Finding]]:
        """Whether the divergence is a break, and its causes; those of no break are remarks."""
        if step.parting is None or step.earlier is None or step.match is None:
            return False, []
        if shape not in ("changed", "side"):
            return False, []
        evidence = Evidence(
            step.seen.node, step.match, step.earlier, step.layout, step.parting, step.rule, numbers.readable,
            numbers.keep, numbers.got,
        )  # fmt: skip
        named = self._named(evidence, shape, thread, summaries)
        reported = step.usage.read if step.usage else None
        is_break = (
            step.answered
            and moved is None
            and confirmed(step.parting, numbers, reported, step.rule)
            and costs_enough(shape, named, numbers, numbers.lost, numbers.rebilled)
        )
        return is_break, named if is_break else [f.but(severity="info") for f in named]

    def _named(
        self, evidence: Evidence, shape: Shape, thread: Thread, summaries: Sequence[str]
    ) -> list[Finding]:
        if shape == "side":
            text = "a helper request quotes the history behind another prefix and reads nothing of its cache"
            pointer = evidence.parting.pointer
            return [self.catalogue.finding("PG511", text, pointer=pointer, primary=True)]
        named = name_divergence(
            self.catalogue, self._head, evidence,
            replies=thread.replies,
            summaries=[*summaries, *(s.text for s in thread.replies[-4:] if len(s.text) >= LEAST_SUMMARY)],
            tools_changed_before=thread.tool_changes > 0,
        )  # fmt: skip
        old = evidence.parting.old
        if evidence.rule.kind == "breakpoint" and old is not None and old.mark is not None:
            text = "a breakpoint stands on a block that changes"
            pointer = evidence.parting.pointer
            named.append(self.catalogue.finding("PG501", text, pointer=pointer, severity="info"))
        return named

    def _template_fault(self, numbers: Numbers) -> Finding:
        return self.catalogue.finding(
            "PG701",
            "the requests are append-only, but the chat template renders earlier turns anew",
            evidence=f"{numbers.shared:,} of {numbers.keep:,} tokens stay the same",
            primary=True,
            by="server",
        )

    def _misses(
        self, step: Step, numbers: Numbers, shape: Shape, moved: str | None, verdict: Verdict, tolerance: int,
        others: int,
    ) -> list[Finding]:  # fmt: skip
        rule, layout = step.rule, step.layout
        facts = Circumstances(
            rule, numbers.readable, numbers.keep, step.parting is not None and shape == "changed", moved,
            _routing_change(step), rule.routing[0] if rule.routing else "", layout.total, step.usage, verdict,
            tolerance, _longest_ttl(step), bool(switched_off(rule, layout)), others,
            _cleared(step),
        )  # fmt: skip
        return miss_findings(self.catalogue, facts)

    def _beside_donor(
        self, step: Step, numbers: Numbers, recall: Callable[[int], Seen | None]
    ) -> tuple[int | None, Parting | None, list[Finding]]:
        """Without a parent, a request is shown beside another session's first, or the closest cache entry."""
        opening = step.opening
        if opening is not None and opening.layout.prompt.order == step.prompt.order:
            parting, found = opening_findings(
                self.catalogue, self._head, opening.layout, step.layout, step.counter
            )
            if parting is not None:
                return opening.node.index, parting, found
        donor = numbers.readable.donor
        other = recall(donor) if donor is not None else None
        if other is None or other.layout.prompt.order != step.prompt.order:
            return None, None, []
        parting = part(other.layout, step.layout, step.rule.blind)
        if parting is None or not (parting.boundary or parting.char):
            return None, None, []
        return donor, parting, replaced_tail(self.catalogue, step, other.layout, parting)

    def _cost(self, step: Step, numbers: Numbers, shape: Shape) -> Cost:
        options, rule = self._options, step.rule
        decoded = step.decoded or _unreported(step, numbers)
        if options.pricer is None or decoded is None:
            return Cost()
        body, prompt = step.reading.body, step.reading.prompt
        terms = terms_of(
            {name: body.get(name) for name in _TERMS if name in body.fields},
            fields_of(step.reading.response) or None,
            price_date=options.price_date,
            local=not rule.hosted or options.local,
        )
        ideal = numbers.keep if shape in ("append", "retry", "changed", "side") else decoded.usage.read
        writes = rule.kind == "breakpoint" and decoded.usage.total >= rule.minimum_for(prompt.model)
        return cost_of_turn(
            options.pricer, prompt.model, prompt.api, step.exchange.upstream, decoded.usage, step.exchange.t,
            ideal_read=ideal or 0, rule_write_ttl=next(iter(rule.ttl), None) if writes else None,
            options=terms, beside=decoded.beside, estimated=step.decoded is None,
            possible_read=numbers.readable.high,
        )  # fmt: skip


def _unreported(step: Step, numbers: Numbers) -> DecodedUsage | None:
    """The usage of an answered request whose server said nothing, as far as it can be counted here."""
    node = step.seen.node
    if not step.answered or not node.reply:
        return None
    return DecodedUsage(Usage(numbers.prompt, None, {}, sum(node.reply_weights)), "openai-chat")


def _divergence(step: Step, against: int, parting: Parting, numbers: Numbers) -> Divergence:
    layout = step.layout
    before, before_at, after, after_at = windows(parting)
    group = layout.prompt.group(parting.boundary) if parting.boundary < len(layout.counts) else "history"
    exact_ids = numbers.method == "server"
    return Divergence(
        against=against,
        within="parent" if parting.within == "parent" else "turn",
        pointer=parting.pointer,
        kind=parting.kind,
        certainty="certain" if numbers.method in ("server", "template") else parting.certainty,
        char_offset=parting.char,
        token_offset=numbers.shared
        if exact_ids
        else token_offset(layout, parting.boundary, parting.char, step.counter),
        before=before,
        after=after,
        before_at=before_at,
        after_at=after_at,
        group="parameters" if parting.parameter else group,
    )


def _outcome(step: Step, numbers: Numbers, verdict: Verdict) -> CacheOutcome:
    readable = numbers.readable
    reported = step.usage.read if step.usage else None
    return CacheOutcome(
        step.rule.name,
        step.choice.decided_by,
        step.rule.verified,
        readable.low,
        readable.high,
        reported,
        verdict,
    )


def _routing_change(step: Step) -> tuple[str | None, str | None] | None:
    """(before, now) of the routing key within a session, where it changed, or is missing and needed."""
    before, seen = step.before, step.seen
    if not step.rule.routing or before is None or before.node.session != seen.node.session:
        return None
    old, new = before.request.routing, seen.request.routing
    if old != new:
        return old, new
    return (None, None) if new is None and step.rule.needs_routing else None


def _cleared(step: Step) -> int:
    """Tokens that Anthropic's context management took out of the prompt before it was read."""
    management = fields_of(step.reading.response).get("context_management")
    edits = management.get("applied_edits") if isinstance(management, dict) else None
    if not isinstance(edits, list):
        return 0
    counts = [e.get("cleared_input_tokens") for e in edits if isinstance(e, dict)]
    return sum(n for n in counts if isinstance(n, int) and not isinstance(n, bool) and n > 0)


_MOST_OTHERS = 256


def _others(step: Step, recall: Callable[[int], Seen | None]) -> int:
    """Tokens of other threads' prompts in the same cache since the parent, the latest of them."""
    if step.before is None:
        return 0
    now, before = step.seen.node, step.before.node
    total = 0
    for index in range(max(before.index + 1, now.index - _MOST_OTHERS), now.index):
        seen = recall(index)
        if seen is None or seen.domain != step.seen.domain:
            continue
        if (seen.node.session, seen.node.thread) != (now.session, now.thread):
            total += seen.layout.total
    return total


def _longest_ttl(step: Step) -> str | None:
    asked = [mark.ttl for _, mark in step.layout.marks if mark.ttl]
    return max(asked, key=lambda ttl: step.rule.ttl_seconds(ttl) or 0, default=None)
