"""The overview page as data: every session with its sums, and the causes that cost most over all of them.

From the analysis to the page; see the package's docstring for the way.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from prefixguard.finding import Severity
from prefixguard.reports import figures
from prefixguard.reports.advice import advice, flow
from prefixguard.reports.html.marks import TurnMark, mark_of
from prefixguard.reports.json import cost_to_dict
from prefixguard.reports.ranking import Ranked, misses, ranked
from prefixguard.reports.text.summary import session_facts, verdict
from prefixguard.rulebook import FindingRule
from prefixguard.turn import Prices, Session

type Recording = Literal["full", "redacted", "hashes"]

_EPOCH = 1e8  # seconds: logs that count from their first exchange start far below, recordings far above
_STRIP = 96  # marks of a session's strip


@dataclass(frozen=True, slots=True)
class Listed:
    """A session under the name that the page calls it by.

    key: unique on the page, made of letters, digits, "-", "_" and ".". agent:
    the client, where it is known. recording: what was kept of its prompts.
    source: the log or record that it comes from.
    """

    key: str
    session: Session
    recording: Recording = "full"
    agent: str | None = None
    source: str = ""


class SessionEntry(msgspec.Struct, frozen=True):
    """One session in the list. started: seconds since the epoch, None in logs that do not know it.

    span: seconds. prompt_tokens: sent in all; estimated: whether token counts
    are. verdict: the sentence of the terminal report. facts: turns, span, APIs,
    models, as the terminal report's heading has them. breaks: None where the
    record holds no prompts, so that none can be seen. codes: of all findings,
    the dearest first. strip: up to 96 pairs of (share of the prompt read from
    the cache or None, mark), for a small picture of the session; each stands for
    as many neighbouring turns as are needed.
    """

    key: str
    id: str
    agent: str | None
    source: str
    recording: Recording
    started: float | None
    span: float
    turns: int
    threads: int
    facts: list[str]
    verdict: str
    breaks: int | None
    decided: int
    misses: int
    hit_rate: float | None
    rewrite_factor: float | None
    prompt_tokens: int
    rebilled_tokens: int
    estimated: bool
    cost: dict[str, Any]
    top: str
    codes: list[str]
    strip: list[tuple[float | None, TurnMark]]


class Cause(msgspec.Struct, frozen=True):
    """One code over the sessions at hand, the dearest first.

    cost: avoidable money, None where no price is known; currency and estimated
    go with it. key, turn: where it cost most; pointer, message, filename and
    row: the place. why, mend, mend_here: the catalogue's texts, the last for
    the server or API of that turn.
    """

    code: str
    name: str
    title: str
    severity: Severity
    turns: int
    sessions: int
    tokens: int
    cost: float | None
    currency: str
    estimated: bool
    deliberate: bool
    key: str
    turn: int
    pointer: str
    message: str
    source: str | None
    why: str
    mend: str
    mend_here: str | None


class Overview(msgspec.Struct, frozen=True):
    """The first page. prices: the snapshot that costs rest on, as text; None without prices."""

    version: str
    prices: str | None
    sessions: list[SessionEntry]
    causes: list[Cause]


def overview(
    listed: Sequence[Listed], findings: Mapping[str, FindingRule], prices: Prices | None, version: str
) -> Overview:
    """The overview over sessions, in the order given. findings: the catalogue."""
    return Overview(
        version=version,
        prices=f"{prices.source} {prices.version} of {prices.date}" if prices else None,
        sessions=[session_entry(one) for one in listed],
        causes=causes(listed, findings),
    )


def session_entry(listed: Listed) -> SessionEntry:
    """One line of the list."""
    session = listed.session
    turns, totals = session.turns, session.totals
    sizes = [figures.prompt_tokens(turn) for turn in turns]
    started = turns[0].t if turns else 0.0
    found = ranked([session])
    order = [entry for entry in found if entry.severity != "info"]
    return SessionEntry(
        key=listed.key,
        id=session.id,
        agent=listed.agent,
        source=listed.source,
        recording=listed.recording,
        started=started if started > _EPOCH else None,
        span=turns[-1].t - started if turns else 0.0,
        turns=totals.turns,
        threads=len({turn.thread for turn in turns}),
        facts=session_facts(session),
        verdict=verdict(session).plain.strip(),
        breaks=None if figures.is_unseen(session) else totals.breaks - totals.breaks_deliberate,
        decided=totals.breaks_deliberate,
        misses=misses(session),
        hit_rate=totals.hit_rate,
        rewrite_factor=figures.rewrite_factor(session),
        prompt_tokens=sum(size for size, _ in sizes),
        rebilled_tokens=totals.rebilled_tokens,
        estimated=figures.is_estimated(session),
        cost=cost_to_dict(totals.cost),
        top=f"{order[0].code} {order[0].name}" if order else "",
        codes=[entry.code for entry in found],
        strip=_strip(session),
    )


def causes(listed: Iterable[Listed], findings: Mapping[str, FindingRule]) -> list[Cause]:
    """What to mend, the dearest first; remarks (severity info) at the end."""
    listed = list(listed)
    keys = {id(one.session): one.key for one in listed}
    order = ranked(one.session for one in listed)
    within: dict[str, int] = {}
    for one in listed:
        for code in {finding.code for turn in one.session.turns for finding in turn.findings}:
            within[code] = within.get(code, 0) + 1
    order.sort(key=lambda entry: entry.severity == "info")  # stable: the order by money stays
    return [
        _cause(entry, keys[id(entry.session)], within[entry.code], findings.get(entry.code))
        for entry in order
    ]


def _cause(entry: Ranked, key: str, sessions: int, rule: FindingRule | None) -> Cause:
    turn = entry.worst
    finding = next(f for f in turn.findings if f.code == entry.code)
    pointer = finding.pointer or (turn.divergence.pointer if turn.divergence and finding.primary else "")
    general, special = advice(rule, turn) if rule else ("", None)
    source = finding.source
    return Cause(
        code=entry.code,
        name=entry.name,
        title=rule.title if rule else "",
        severity=entry.severity,
        turns=entry.turns,
        sessions=sessions,
        tokens=entry.tokens,
        cost=entry.cost,
        currency=turn.cost.currency,
        estimated=entry.estimated,
        deliberate=entry.deliberate,
        key=key,
        turn=turn.index,
        pointer=pointer,
        message=finding.message,
        source=f"{source.filename}:{source.row}" if source else None,
        why=flow(rule.why) if rule else "",
        mend=general,
        mend_here=special,
    )


def _strip(session: Session) -> list[tuple[float | None, TurnMark]]:
    turns = session.turns
    step = -(-len(turns) // _STRIP) or 1
    found: list[tuple[float | None, TurnMark]] = []
    for group in itertools.batched(turns, step):
        shares = [share for turn in group if (share := figures.cached_share(turn)) is not None]
        worst = max((mark_of(turn) for turn in group), key=_RANK.index)
        found.append((round(min(shares), 3) if shares else None, worst))
    return found


_RANK: tuple[TurnMark, ...] = ("", "failed", "unread", "remark", "decided", "miss", "break")
