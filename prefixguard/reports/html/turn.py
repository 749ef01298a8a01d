"""One turn as data: what it is, where it parts, why and what to do, what it cost, and its whole prompt."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import msgspec

from prefixguard.finding import Finding
from prefixguard.prompt import Segment
from prefixguard.reports.advice import advice, flow
from prefixguard.reports.html.difference import Difference, difference
from prefixguard.reports.html.marks import TurnMark, mark_of
from prefixguard.reports.html.overview import Listed, Recording
from prefixguard.reports.html.segments import PromptView, prompt_view
from prefixguard.reports.json import finding_to_dict, turn_to_dict
from prefixguard.reports.text.explanation import facts, headline, remarks_on
from prefixguard.rulebook import FindingRule
from prefixguard.tokens.layout import Layout, lay_out
from prefixguard.turn import Turn

MOST_OF_TEXT = 16_384
"""Characters of a segment's text that are given at once."""


class LaidOut(Protocol):
    """Where prompts are had from; `prefixguard.analysis.Fold` is one."""

    def laid_out(self, index: int) -> tuple[Layout, tuple[Segment, ...], tuple[int, ...]] | None:
        """(prompt in tokens, reply, the reply's tokens) of the exchange at that place, or None."""
        ...


class FindingView(msgspec.Struct, frozen=True):
    """A finding with the catalogue's texts.

    finding: as in `prefixguard-analysis/1`. remarks: severity, recurrence and
    the like, in words. mend_here: advice for the server or API of this turn.
    """

    finding: dict[str, Any]
    title: str
    remarks: list[str]
    why: str
    mend: str
    mend_here: str | None


class TurnView(msgspec.Struct, frozen=True):
    """One turn. turn: as in `prefixguard-analysis/1`.

    headline, about: the title of the terminal's explanation, and what stands
    under it. facts: (label, sentence) of tokens, money, seconds and cache; an
    empty label goes on with the one above. prompt: None where it is not at
    hand, and prompt_note says why. limits: what cannot be seen because of how
    it was recorded, or what its record does not hold; or "".
    """

    key: str
    session: str
    index: int
    mark: TurnMark
    headline: str
    about: list[str]
    facts: list[tuple[str, str]]
    difference: Difference | None
    findings: list[FindingView]
    turn: dict[str, Any]
    prompt: PromptView | None
    prompt_note: str
    recording: Recording
    limits: str


class TextWindow(msgspec.Struct, frozen=True):
    """A piece of a segment's text. start: in characters; chars: of the whole text."""

    start: int
    chars: int
    text: str


def turn_view(
    listed: Listed, turn: Turn, findings: Mapping[str, FindingRule], prompts: LaidOut | None
) -> TurnView:
    """The page of one turn. findings: the catalogue. prompts: the fold that the turn comes from."""
    layout = _layout(prompts, turn.index)
    against = turn.divergence.against if turn.divergence is not None else turn.parent
    earlier = _beside(_layout(prompts, against), layout)
    ordered = sorted(turn.findings, key=lambda finding: not finding.primary)
    word, about = headline(turn)
    return TurnView(
        key=listed.key,
        session=listed.session.id,
        index=turn.index,
        mark=mark_of(turn),
        headline=word,
        about=about,
        facts=facts(turn, listed.session),
        difference=difference(turn, layout, earlier),
        findings=[_finding(finding, turn, findings.get(finding.code)) for finding in ordered],
        turn=turn_to_dict(turn),
        prompt=prompt_view(turn, layout, earlier) if layout is not None else None,
        prompt_note="" if layout is not None else _missing(turn),
        recording=listed.recording,
        limits=_limits(listed.recording, turn),
    )


def segment_text(prompts: LaidOut, index: int, position: int, start: int = 0) -> TextWindow | None:
    """At most 16,384 characters of a segment's text; None where there is no such segment.

    index: of the turn. position: of the segment, in rendered order.
    """
    layout = _layout(prompts, index)
    if layout is None or not 0 <= position < len(layout.prompt.segments):
        return None
    text = layout.prompt.segments[position].text
    start = max(0, min(start, len(text)))
    return TextWindow(start, len(text), text[start : start + MOST_OF_TEXT])


def limits(recording: Recording) -> str:
    """What cannot be seen of a prompt that was recorded in this way; "" for a full recording."""
    match recording:
        case "hashes":
            return (
                "Recorded as digests only: the words shown stand for lines of text that cannot be read back. "
                "Equal lines have equal words, so that it can be seen where two prompts part, "
                "but not what they say; offsets and token counts are those of the stand-ins."
            )
        case "redacted":
            return (
                "Recorded with secrets taken out: [redacted:...] stands for each of them. "
                "Where a secret changed, its four digits change."
            )
        case "full":
            return ""


def _limits(recording: Recording, turn: Turn) -> str:
    parts = [limits(recording)]
    if turn.unseen and "prompt" not in turn.unseen:
        parts.append(f"Not in the record, so not shown and not judged: {', '.join(turn.unseen)}.")
    return " ".join(part for part in parts if part)


def _layout(prompts: LaidOut | None, index: int | None) -> Layout | None:
    found = prompts.laid_out(index) if prompts is not None and index is not None else None
    return found[0] if found is not None else None


def _beside(earlier: Layout | None, layout: Layout | None) -> Layout | None:
    """The earlier prompt in the rendered order of the later one."""
    if earlier is None or layout is None or earlier.prompt.order == layout.prompt.order:
        return earlier
    turned = earlier.prompt.in_order(layout.prompt.order)
    return lay_out(turned, layout.counter, earlier.keyed, last_scale=earlier.scale)


def _missing(turn: Turn) -> str:
    if turn.note:
        return f"The request could not be understood: {turn.note}"
    if "prompt" in turn.unseen:
        return "The record holds the figures of this turn, not its prompt, so that no break can be seen."
    if turn.status is not None and turn.status >= 400:
        return f"The server refused the request (status {turn.status}), so that nothing of it was cached."
    return "The prompt of this turn is not at hand."


def _finding(finding: Finding, turn: Turn, rule: FindingRule | None) -> FindingView:
    general, special = advice(rule, turn) if rule is not None else ("", None)
    return FindingView(
        finding=finding_to_dict(finding),
        title=rule.title if rule is not None else "",
        remarks=remarks_on(finding),
        why=flow(rule.why) if rule is not None else "",
        mend=general,
        mend_here=special,
    )
