"""Names a change inside the history: dropped, pruned, summarised, edited, moved ... (PG3xx).

The first region in which the two histories differ is taken: what is gone from
the earlier one, what is new in the later one, up to the next segment that both
have. The rules are asked in the order of `docs/architecture.md`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rapidfuzz.distance import LCSseq

from prefixguard.causes.evidence import Catalogue, Evidence, shortened
from prefixguard.causes.form import merged, same_content
from prefixguard.finding import Finding
from prefixguard.prompt import Kind, Segment
from prefixguard.tokens.layout import common_length

_PINNED = 2
"""A window may keep the first message, and a note that says what was left out."""


@dataclass(frozen=True, slots=True)
class Region:
    """The first differing region: gone from `start` to `gone_end`, new from `start` to `new_end`."""

    start: int
    gone_end: int
    new_end: int
    tail: int
    """Where the earlier prompt's tail begins: what follows its last assistant segment."""
    last_user: int
    """Where the earlier prompt's last user message begins."""
    last_user_end: int
    """Where it ends."""


def region(evidence: Evidence) -> Region:
    """Aligns both histories by `alike` and takes the first place where they differ."""
    old = evidence.parent.extended
    new = evidence.fresh.alikes
    head = evidence.earlier.prompt.head_length
    start = max(0, evidence.parting.boundary - head)
    rest_old, rest_new = old[start:], new[start:]
    gone_end, new_end = len(old), len(new)
    if rest_old and rest_new and not set(rest_old).isdisjoint(rest_new):
        same = common_length(rest_old, rest_new)
        if same:
            gone_end, new_end = start, start
        else:
            for block in LCSseq.opcodes(list(rest_old), list(rest_new)):
                if block.tag == "equal":
                    gone_end, new_end = start + block.src_start, start + block.dest_start
                    break
    history = evidence.earlier.prompt.history
    tail = next((i + 1 for i in range(len(history) - 1, -1, -1) if history[i][1].role == "assistant"), 0)
    last_user, last_user_end = len(history), len(history)
    for i in range(len(history) - 1, -1, -1):
        if history[i][1].role == "user":
            last_user_end = i + 1 if last_user == len(history) else last_user_end
            last_user = i
        elif last_user < len(history):
            break
    return Region(start, min(gone_end, len(history)), new_end, tail, last_user, last_user_end)


def history_change(
    catalogue: Catalogue, evidence: Evidence, replies: Sequence[Segment], summaries: Sequence[str]
) -> Finding:
    """The finding for a divergence in the history.

    replies: what the server had answered in this thread. summaries: texts of
    earlier replies, which prove a compaction when they stand in a new message.
    """
    where = region(evidence)
    pointer = evidence.parting.pointer
    history = evidence.earlier.prompt.history
    later = evidence.later.prompt.history
    gone = [s for _, s in history[where.start : where.gone_end]]
    fresh = [s for _, s in later[where.start : where.new_end]]
    old, new = evidence.parting.old, evidence.parting.new
    if not gone and not fresh and old is not None and new is not None:
        return same_content(catalogue, old, new, pointer)
    if merged(gone, fresh):
        return catalogue.finding("PG210", "neighbouring messages were merged or split", pointer=pointer)
    return (
        _media(catalogue, gone, fresh, pointer)
        or _reasoning(catalogue, gone, fresh, pointer)
        or _reply(catalogue, gone, fresh, replies, pointer)
        or _tail(catalogue, where, gone, fresh, evidence, pointer)
        or _same_slot(catalogue, gone, fresh, pointer)
        or _runs(catalogue, where, gone, fresh, evidence, summaries, pointer)
        or _inserted(catalogue, gone, fresh, evidence, pointer)
    )


def _media(catalogue: Catalogue, gone: list[Segment], fresh: list[Segment], pointer: str) -> Finding | None:
    if not any(s.kind is Kind.MEDIA for s in gone[:3]) or len(gone) > 6:
        return None
    if any(s.kind is Kind.MEDIA for s in fresh):
        return catalogue.finding("PG305", "the same medium was encoded anew", pointer=pointer)
    text = next((s.text for s in fresh if s.kind is Kind.TEXT), "")
    return catalogue.finding(
        "PG304", "a medium was removed from an earlier message",
        evidence=f"now: {shortened(text)!r}" if text else "nothing in its place", pointer=pointer,
    )  # fmt: skip


def _reasoning(
    catalogue: Catalogue, gone: list[Segment], fresh: list[Segment], pointer: str
) -> Finding | None:
    kinds = [s.kind for s in gone]
    if not kinds or kinds[0] is not Kind.REASONING or len(gone) > 4:
        return None
    if any(s.kind is Kind.REASONING for s in fresh):
        return catalogue.finding("PG311", "earlier reasoning was changed", pointer=pointer)
    return catalogue.finding(
        "PG306", "reasoning that was sent before is no longer sent",
        evidence=shortened(gone[0].text), pointer=pointer,
    )  # fmt: skip


def _reply(
    catalogue: Catalogue, gone: list[Segment], fresh: list[Segment], replies: Sequence[Segment], pointer: str
) -> Finding | None:
    if not gone or not fresh or gone[0].role != "assistant" or fresh[0].role != "assistant":
        return None
    if gone[0].kind is not fresh[0].kind or len(gone) > 3:
        return None
    if gone[0].alike not in {s.alike for s in replies}:
        return None
    return catalogue.finding(
        "PG307", "an assistant message no longer is what the server had answered",
        evidence=f"{shortened(gone[0].text)!r} became {shortened(fresh[0].text)!r}", pointer=pointer,
    )  # fmt: skip


def _tail(
    catalogue: Catalogue,
    where: Region,
    gone: list[Segment],
    fresh: list[Segment],
    evidence: Evidence,
    pointer: str,
) -> Finding | None:
    """What rode on the last message only, and is gone or changed once it is history."""
    in_tail = where.start >= where.tail
    on_last_user = where.last_user <= where.start < where.last_user_end and len(gone) <= 3
    if not gone or not (in_tail or on_last_user):
        return None
    again = {s.alike for _, s in evidence.later.prompt.history[where.new_end :]}
    rides = any(s.alike in again for s in gone)
    before, after = gone[0].text, fresh[0].text if fresh else ""
    evidence_text = (
        "an equal block rides on the new last message" if rides
        else f"{shortened(before)!r} became {shortened(after)!r}" if fresh else f"gone: {shortened(before)!r}"
    )  # fmt: skip
    if gone[0].kind is Kind.TOOL_RESULT and fresh and len(after) * 2 < len(before):
        return catalogue.finding(
            "PG302", "a tool result was shortened one request after it was sent",
            evidence=evidence_text, pointer=pointer,
        )  # fmt: skip
    if gone[0].role == "system":
        return catalogue.finding(
            "PG312", "a system message stood near the end of the history and is gone from there",
            evidence=evidence_text, pointer=pointer,
        )  # fmt: skip
    return catalogue.finding(
        "PG309",
        "a block that rode on the last message is gone from it",
        evidence=evidence_text,
        pointer=pointer,
    )


def _same_slot(
    catalogue: Catalogue, gone: list[Segment], fresh: list[Segment], pointer: str
) -> Finding | None:
    if not gone or not fresh:
        return None
    one, other = gone[0], fresh[0]
    same_call = one.call_id is not None and one.call_id == other.call_id and one.kind is other.kind
    if not same_call and not (one.role == other.role and len(gone) == len(fresh)):
        return None
    pruned = sum(len(s.text) for s in fresh) < sum(len(s.text) for s in gone)
    result = one.kind in (Kind.TOOL_RESULT, Kind.TOOL_CALL)
    if pruned and (result or len(other.text) * 2 < len(one.text)):
        return catalogue.finding(
            "PG302", f"an old {one.kind.value.replace('-', ' ')} was shortened or replaced",
            evidence=f"{len(one.text):,} characters became {len(other.text):,}: {shortened(other.text)!r}",
            pointer=pointer,
        )  # fmt: skip
    return catalogue.finding(
        "PG311", f"an earlier {one.role} message was edited",
        evidence=f"{shortened(one.text)!r} became {shortened(other.text)!r}", pointer=pointer,
    )  # fmt: skip


def _runs(
    catalogue: Catalogue,
    where: Region,
    gone: list[Segment],
    fresh: list[Segment],
    evidence: Evidence,
    summaries: Sequence[str],
    pointer: str,
) -> Finding | None:
    if not gone:
        return None
    weights = evidence.parent.weights
    lost = sum(weights[where.start : where.gone_end])
    if not fresh:
        return _gone(catalogue, where, gone, evidence, pointer)
    written = sum(evidence.fresh.weights[where.start : where.new_end])
    proven = any(text in s.text for text in summaries for s in fresh)
    if (
        len(fresh) <= 3 and written * 2 < lost and lost * 2 >= sum(weights[: where.tail] or weights)
    ) or proven:
        return catalogue.finding(
            "PG303", f"{len(gone)} blocks of history were replaced by a summary",
            evidence="the summary is an earlier reply" if proven else shortened(fresh[0].text),
            confidence="high" if proven else "medium", pointer=pointer,
        )  # fmt: skip
    if written * 2 < lost:
        return catalogue.finding(
            "PG302", f"{len(gone)} earlier blocks were replaced by less",
            evidence=shortened(fresh[0].text), pointer=pointer,
        )  # fmt: skip
    return catalogue.finding(
        "PG311", f"{len(gone)} earlier blocks were rewritten",
        evidence=f"{shortened(gone[0].text)!r} became {shortened(fresh[0].text)!r}", pointer=pointer,
    )  # fmt: skip


def _gone(
    catalogue: Catalogue, where: Region, gone: list[Segment], evidence: Evidence, pointer: str
) -> Finding:
    """Blocks that no longer stand where they stood, with nothing in their place."""
    one, later = gone[0], evidence.later.prompt.history
    depth = len(evidence.earlier.prompt.history) - where.start
    there = later[len(later) - depth][1] if 0 < depth <= len(later) else None
    known = set(evidence.parent.extended)
    floats = (
        there is not None
        and there.role == one.role
        and (there.alike == one.alike or there.alike not in known)
    )
    again = one.alike in {s.alike for _, s in later[where.new_end :]}
    if len(gone) == 1 and one.role == "system" and (floats or again):
        return catalogue.finding(
            "PG312",
            "a system message is put in anew further down",
            evidence=shortened(one.text),
            pointer=pointer,
        )
    if len(gone) == 1 and floats:
        return catalogue.finding(
            "PG308", f"a block floats {depth} blocks before the end of the history",
            evidence=shortened(one.text), pointer=pointer,
        )  # fmt: skip
    if again and len(gone) <= 3:
        return catalogue.finding("PG310", "a block was moved", evidence=shortened(one.text), pointer=pointer)
    if where.start <= _PINNED:
        return catalogue.finding(
            "PG301", f"the oldest {len(gone)} blocks of the history were dropped", pointer=pointer
        )
    return catalogue.finding(
        "PG313", f"{len(gone)} earlier blocks are gone", evidence=shortened(one.text), pointer=pointer
    )


def summary_in_head(catalogue: Catalogue, evidence: Evidence, summaries: Sequence[str]) -> Finding:
    """The finding for a summary that stands among the system messages, with most of the history gone."""
    new = evidence.parting.new
    text = new.text if new is not None else ""
    proven = any(summary in text for summary in summaries)
    return catalogue.finding(
        "PG303", "the history was replaced by a summary among the system messages",
        evidence="the summary is an earlier reply" if proven else shortened(text),
        confidence="high" if proven else "medium", pointer=evidence.parting.pointer,
    )  # fmt: skip


def _inserted(
    catalogue: Catalogue, gone: list[Segment], fresh: list[Segment], evidence: Evidence, pointer: str
) -> Finding:
    first = fresh[0] if fresh else evidence.parting.new
    if first is None:
        return catalogue.finding("PG313", "an earlier message is gone", pointer=pointer)
    if first.alike in set(evidence.parent.extended):
        return catalogue.finding(
            "PG310", "a block was moved", evidence=shortened(first.text), pointer=pointer
        )
    if first.role == "system":
        return catalogue.finding(
            "PG312", "a system message was inserted into the history",
            evidence=shortened(first.text), pointer=pointer,
        )  # fmt: skip
    return catalogue.finding(
        "PG308", "a block was inserted before the end of the history",
        evidence=shortened(first.text), pointer=pointer,
    )  # fmt: skip
