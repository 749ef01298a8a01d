"""Two taps, one behind a gateway: what the client kept and the gateway broke (PG705).

The same requests are seen twice, as the client sent them and as the server got
them. A turn that breaks only behind the gateway is the gateway's doing.
"""

from __future__ import annotations

from dataclasses import replace

from prefixguard.errors import InputError
from prefixguard.finding import Finding
from prefixguard.rulebook import FindingRule
from prefixguard.totals import totals
from prefixguard.turn import Analysis, Session, Turn


def compare_taps(client: Analysis, upstream: Analysis, rule: FindingRule) -> Analysis:
    """The client's analysis, with PG705 on each turn that parts only behind the gateway.

    Turns are paired by their order in time. Raises InputError when the logs
    hold different numbers of exchanges.
    """
    behind = _in_order(upstream)
    before = _in_order(client)
    if len(behind) != len(before):
        raise InputError(
            f"--upstream-log: {len(behind)} exchanges, but the client's log has {len(before)}; "
            "both taps must have seen the same requests"
        )
    pairs = {turn.index: other for turn, other in zip(before, behind, strict=True)}
    sessions = []
    for session in client.sessions:
        turns = [_judged(turn, pairs[turn.index], rule) for turn in session.turns]
        sessions.append(Session(session.id, session.key_kind, session.key_name, tuple(turns), totals(turns)))
    return replace(client, sessions=tuple(sessions))


def _in_order(analysis: Analysis) -> list[Turn]:
    return sorted((t for s in analysis.sessions for t in s.turns), key=lambda turn: turn.index)


def _judged(turn: Turn, behind: Turn, rule: FindingRule) -> Turn:
    if not behind.is_break or turn.is_break:
        return turn
    named = next((f for f in behind.findings if f.primary), None)
    why = f": {named.code} {named.message}" if named else ""
    at = behind.divergence
    finding = Finding(
        code=rule.code, name=rule.name, severity=rule.severity, primary=True, by="gateway",
        message=f"the client's prompt only grew, but behind the gateway it parts{why}",
        evidence=f"at {at.pointer} of the request that the server got" if at else "",
    )  # fmt: skip
    others = tuple(f for f in turn.findings if f.code != "PG804")
    return replace(
        turn, is_break=True, findings=(finding, *others), divergence=turn.divergence,
        tokens=replace(turn.tokens, lost=behind.tokens.lost, rebilled=behind.tokens.rebilled),
    )  # fmt: skip
