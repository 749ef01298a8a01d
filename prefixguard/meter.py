"""Counts each step in the best way to be had, and keeps the caches that predictions rest on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from prefixguard.caches.blocks import Blocks
from prefixguard.caches.radix import Radix
from prefixguard.caches.rule import CacheRule
from prefixguard.caches.slots import Slots
from prefixguard.causes.setup import switched_off
from prefixguard.divergence import part
from prefixguard.measure import Numbers, by_ids, by_segments, partial_tokens
from prefixguard.prompt import Prompt
from prefixguard.rendering.template import ChatTemplate
from prefixguard.step import Seen, Step
from prefixguard.timeline import Timeline
from prefixguard.tokens.layout import Layout, lay_out
from prefixguard.wire.completions import prompt_text


class Meter:
    """The numbers of each step, and what each leaves behind in its cache domain.

    recall: what was kept of an earlier exchange, by its index.
    """

    def __init__(self, recall: Callable[[int], Seen | None], template: ChatTemplate | None) -> None:
        self._recall = recall
        self._template = template
        self._timeline = Timeline()
        self._slots: dict[str, Slots | Blocks | Radix] = {}

    def numbers(self, step: Step) -> Numbers:
        """Counted on the server's ids, else on the template's text, else segment by segment."""
        numbers = self._by_segments(step)
        if step.exchange.rendered is not None:
            return self._by_ids(step, numbers)
        if self._template is not None:
            return self._by_template(self._template, step, numbers)
        return numbers

    def _by_segments(self, step: Step) -> Numbers:
        seen, before, earlier = step.seen, step.before, step.earlier
        cache = self._timeline.model(seen.domain, seen.rule, step.prompt.model)
        also = step.match.node.index if step.match else None
        readable = cache.read(seen.request, partial_tokens(self._layout_of, step.counter, also))
        if switched_off(seen.rule, seen.layout):
            readable = replace(readable, low=0, high=0)
        parent_cache = parent_request = None
        if before is not None and earlier is not None:
            parent_cache = self._timeline.model(before.domain, before.rule, before.layout.prompt.model)
            parent_request = replace(before.request, layout=earlier)
        grain = seen.rule.grain if seen.rule.kind == "prefix" else 0
        return by_segments(
            seen.layout, earlier, step.parting, readable, cache, parent_cache, seen.request, parent_request,
            step.counter, grain,
        )  # fmt: skip

    def _by_ids(self, step: Step, segments: Numbers) -> Numbers:
        rendered, seen, before = step.exchange.rendered, step.seen, step.before
        assert rendered is not None
        seen.ids = rendered
        earlier_ids = before.ids.prompt if before is not None and before.ids is not None else None
        numbers = by_ids(
            rendered.prompt, earlier_ids, segments, seen.rule, self._slots_of(seen), step.earlier
        )
        if switched_off(seen.rule, seen.layout):
            return replace(numbers, readable=replace(numbers.readable, low=0, high=0))
        return numbers

    def _slots_of(self, seen: Seen) -> Slots | Blocks | Radix:
        rule = seen.rule
        if seen.domain not in self._slots:
            self._slots[seen.domain] = _cache_of(rule)
        return self._slots[seen.domain]

    def _by_template(self, template: ChatTemplate, step: Step, fallback: Numbers) -> Numbers:
        """The same numbers on the text that the chat template makes of the request."""
        text = template.render(step.exchange)
        if text is None:
            return fallback
        seen, before, counter = step.seen, step.before, step.counter
        history = tuple(("", segment) for segment in prompt_text(text))
        layout = lay_out(
            Prompt("rendered", step.prompt.model, (), (), history, raw=True), counter, seen.layout.keyed
        )
        request = replace(seen.request, layout=layout, reply=())
        seen.template, seen.template_request = layout, request
        cache = self._timeline.model(f"rendered {seen.domain}", seen.rule, step.prompt.model)
        also = before.node.index if before else None
        readable = cache.read(request, partial_tokens(self._template_of, counter, also))
        earlier = before.template if before else None
        parting = part(earlier, layout) if earlier is not None else None
        if (
            parting is not None
            and earlier is not None
            and parting.char >= len(earlier.prompt.segments[0].text)
        ):
            parting = None  # the earlier text is a prefix of this one
        numbers = by_segments(
            layout, earlier, parting, readable, cache, cache, request,
            before.template_request if before else None, counter,
        )  # fmt: skip
        return replace(numbers, method="template", exact=counter.exact)

    def _layout_of(self, index: int) -> Layout | None:
        seen = self._recall(index)
        return seen.layout if seen else None

    def _template_of(self, index: int) -> Layout | None:
        seen = self._recall(index)
        return seen.template if seen else None

    def observe(self, seen: Seen, generated: int | None) -> None:
        """Takes an answered exchange into its cache domain. generated: tokens of its reply, if reported."""
        model = seen.layout.prompt.model
        self._timeline.model(seen.domain, seen.rule, model).observe(seen.request)
        if seen.template_request is not None:
            self._timeline.model(f"rendered {seen.domain}", seen.rule, model).observe(seen.template_request)
        if seen.ids is not None:
            slots = self._slots_of(seen)
            if isinstance(slots, Slots):
                slots.observe(seen.node.index, seen.ids.prompt, seen.ids.reply, generated)
            else:
                slots.observe(seen.node.index, seen.ids.prompt, seen.ids.reply)


def _cache_of(rule: CacheRule) -> Slots | Blocks | Radix:
    """What follows token ids under a rule: whole blocks, one tree of everything, or slots."""
    if rule.grain > 1:
        return Blocks(rule.grain)
    return Slots(rule.slots or 1) if rule.slotted else Radix()
