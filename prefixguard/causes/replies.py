"""What became of a reply between the server that generated it and the prompt that carries it back (PG704)."""

from __future__ import annotations

from prefixguard.caches.model import Readable
from prefixguard.causes.evidence import Catalogue
from prefixguard.finding import Finding
from prefixguard.prompt import Kind
from prefixguard.rendering.ids import common_prefix
from prefixguard.shape import LEAST_REBILLED
from prefixguard.step import Step


def retokenised(catalogue: Catalogue, step: Step, readable: Readable) -> list[Finding]:
    """A reply that came back unchanged, of which the server could read a part only: it splits otherwise.

    Needs the server's ids of both prompts, and either those of the reply or how
    many there were and how many tokens were read. Replies that are more than
    text are laid out by templates, which is another cause.
    """
    before, now, match = step.before, step.seen.ids, step.match
    if before is None or before.ids is None or now is None or match is None or not match.echo:
        return []
    if any(segment.kind is not Kind.TEXT for segment in match.node.reply):
        return []
    begin = len(before.ids.prompt)
    if now.prompt[:begin] != before.ids.prompt:
        return []
    if before.ids.reply is not None:
        again, total = common_prefix(before.ids.reply, now.prompt[begin:]), len(before.ids.reply)
    else:
        # Nobody knows the ids; the figures say how many were kept and how many of them were read.
        read = step.usage.read if step.usage is not None else None
        if read is None or readable.donor != match.node.index or read < begin:
            return []
        again, total = read - begin, readable.high - begin
    lost = total - again
    if lost < 1:
        return []
    text = f"{again:,} of the {total:,} tokens of the reply are the same when its text is sent back"
    small = lost < LEAST_REBILLED
    return [catalogue.finding("PG704", text, by="server", severity="info" if small else None)]
