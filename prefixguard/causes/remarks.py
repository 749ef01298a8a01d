"""Findings beside the cause of a divergence: settings, figures, and forms that cost nothing by themselves."""

from __future__ import annotations

from prefixguard.caches.model import Readable
from prefixguard.causes.evidence import Catalogue
from prefixguard.causes.replies import retokenised
from prefixguard.causes.setup import setup_findings, volatile_tail
from prefixguard.causes.usage import usage_findings
from prefixguard.divergence import Parting
from prefixguard.finding import Finding
from prefixguard.lineage import Match
from prefixguard.prompt import Prompt
from prefixguard.shape import LEAST_REBILLED
from prefixguard.step import Step
from prefixguard.tokens.layout import Layout
from prefixguard.turn import Shape

_REPEATED = ("PG502", "PG505", "PG506", "PG210", "PG704", "PG803")
"""Said on every turn that shows them; the others once per thread."""


def remarks(
    catalogue: Catalogue, step: Step, shape: Shape, readable: Readable, said: set[str]
) -> list[Finding]:
    """All remarks on a step. said: the codes that this thread was told already; it is added to."""
    minimum = step.rule.minimum_for(step.prompt.model)
    found = setup_findings(
        catalogue,
        step.rule,
        step.layout,
        step.earlier,
        step.grand.layout if step.grand else None,
        readable,
        minimum,
    )
    if step.parting is not None and step.earlier is not None:
        if shape not in ("side", "retry"):
            found += replaced_tail(catalogue, step, step.earlier, step.parting)
        if not step.prompt.raw:
            found += _merged(catalogue, step.parting, shape)
    if step.match is not None and step.match.node.reply and shape == "append" and not step.match.echo:
        found += _not_echoed(catalogue, step.match, step.prompt)
    if shape == "append":
        found += retokenised(catalogue, step, readable)
    options = step.reading.body.get("stream_options")
    found += usage_findings(catalogue, step.rule, step.prompt, step.exchange, step.decoded, options)
    kept = [f for f in found if f.code in _REPEATED or f.code not in said]
    said.update(f.code for f in kept)
    return kept


def replaced_tail(catalogue: Catalogue, step: Step, earlier: Layout, parting: Parting) -> list[Finding]:
    """PG509, when all that `earlier` wrote ended in a block that is another one now."""
    minimum = step.rule.minimum_for(step.prompt.model)
    if step.rule.kind != "breakpoint" or parting.parameter is not None:
        return []
    if not volatile_tail(step.rule, earlier, parting.boundary, minimum):
        return []
    text = "the only cached position ends in a block that is replaced on each request"
    return [catalogue.finding("PG509", text, pointer=parting.pointer)]


def _merged(catalogue: Catalogue, parting: Parting, shape: Shape) -> list[Finding]:
    """A message that grew at its end, before anybody had answered it."""
    old, new = parting.old, parting.new
    if shape not in ("rewind", "fork", "append") or old is None or new is None or old.role != new.role:
        return []
    if not old.text or parting.char != len(old.text):
        return []
    text = "a message was merged into the one before it"
    return [catalogue.finding("PG210", text, pointer=parting.pointer, severity="info")]


def _not_echoed(catalogue: Catalogue, match: Match, prompt: Prompt) -> list[Finding]:
    """The server's reply came back as something else: what was kept of it is of no use."""
    at = len(match.node.prompt.history)
    if at >= len(prompt.history) or prompt.history[at][1].role != "assistant":
        return []
    if sum(match.node.reply_weights) < LEAST_REBILLED:
        return []
    base, segment = prompt.history[at]
    text = "the assistant message differs from the reply that the server gave"
    return [catalogue.finding("PG307", text, pointer=base + segment.pointer, severity="info")]


def shape_note(catalogue: Catalogue, note: Parting) -> Finding:
    """PG208: the same text in another JSON shape."""
    assert note.old is not None
    assert note.new is not None
    text = f"the same text as {_word(note.new.shape)} where it was {_word(note.old.shape)}"
    return catalogue.finding("PG208", text, pointer=note.pointer, severity="info")


def _word(shape: str) -> str:
    return "a string" if shape == "string" else "a list of blocks"
