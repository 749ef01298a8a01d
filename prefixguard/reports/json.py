"""The analysis as JSON: `prefixguard-analysis/1` for other programs, and single turns for the store.

The public format is a contract: its field names are spelled out here rather
than derived, so that renaming an attribute cannot change what others read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from prefixguard.errors import InputError
from prefixguard.finding import Finding
from prefixguard.turn import (
    Analysis,
    CacheOutcome,
    Cost,
    Divergence,
    Session,
    Tokens,
    Totals,
    Turn,
    Usage,
)

SCHEMA = "prefixguard-analysis/1"

type Json = dict[str, Any]

_encoder = msgspec.json.Encoder()
_SURROGATE = re.compile("[\ud800-\udfff]")
_turn_decoder = msgspec.json.Decoder(Turn)


def to_json(analysis: Analysis, *, indent: int = 0) -> bytes:
    """The analysis as one `prefixguard-analysis/1` document in UTF-8, with a final line end.

    indent: spaces per level; 0 gives one compact line.
    """
    return encode(analysis_to_dict(analysis), indent=indent) + b"\n"


def analysis_to_dict(analysis: Analysis) -> Json:
    """The same document as plain dictionaries and lists."""
    prices = analysis.prices
    return {
        "schema": SCHEMA,
        "version": analysis.version,
        "prices": prices and {"source": prices.source, "version": prices.version, "date": prices.date},
        "sessions": [session_to_dict(session) for session in analysis.sessions],
    }


def session_to_dict(session: Session) -> Json:
    """One entry of `sessions`."""
    return {
        "id": session.id,
        "key": {"kind": session.key_kind, "name": session.key_name},
        "turns": [turn_to_dict(turn) for turn in session.turns],
        "totals": totals_to_dict(session.totals),
    }


def totals_to_dict(totals: Totals) -> Json:
    """The `totals` of a session."""
    return {
        "turns": totals.turns,
        "breaks": totals.breaks,
        "breaks_deliberate": totals.breaks_deliberate,
        "rebilled_tokens": totals.rebilled_tokens,
        "hit_rate": totals.hit_rate,
        "cost": cost_to_dict(totals.cost),
        "by_code": {
            code: {"turns": sum_.turns, "tokens": sum_.tokens, "cost": sum_.cost}
            for code, sum_ in sorted(totals.by_code.items())
        },
    }


def turn_to_dict(turn: Turn) -> Json:
    """One entry of `turns`.

    `aborted`, `diagnosis` (the server's own), `note` (why a turn could not be
    understood), `unseen` (what an imported record does not hold) and a cost's
    `estimated` are present only where they say something.
    """
    result: Json = {
        "index": turn.index,
        "t": turn.t,
        "status": turn.status,
        "upstream": turn.upstream,
        "domain": turn.domain,
        "thread": turn.thread,
        "parent": turn.parent,
        "donor": turn.donor,
        "shape": turn.shape,
        "api": turn.api,
        "model": turn.model,
        "divergence": turn.divergence and _divergence(turn.divergence),
        "findings": [finding_to_dict(finding) for finding in turn.findings],
        "break": turn.is_break,
        "tokens": _tokens(turn.tokens),
        "usage": turn.usage and _usage(turn.usage),
        "cache": turn.cache and _cache(turn.cache),
        "timing": {
            "first_token_ms": turn.timing.first_token_ms,
            "total_ms": turn.timing.total_ms,
        },
        "cost": cost_to_dict(turn.cost),
    }
    if turn.aborted:
        result["aborted"] = True
    if turn.diagnosis is not None:
        result["diagnosis"] = {
            "by": turn.diagnosis.by,
            "reason": turn.diagnosis.reason,
            "missed_tokens": turn.diagnosis.missed_tokens,
            "agrees": turn.diagnosis.agrees,
        }
    if turn.note:
        result["note"] = turn.note
    if turn.unseen:
        result["unseen"] = list(turn.unseen)
    return result


def finding_to_dict(finding: Finding) -> Json:
    """One entry of `findings`."""
    source = finding.source
    return {
        "code": finding.code,
        "name": finding.name,
        "primary": finding.primary,
        "severity": finding.severity,
        "confidence": finding.confidence,
        "deliberate": finding.deliberate,
        "by": finding.by,
        "recurrence": finding.recurrence,
        "pointer": finding.pointer,
        "message": finding.message,
        "evidence": finding.evidence,
        "source": source and {"filename": source.filename, "row": source.row},
    }


def _divergence(divergence: Divergence) -> Json:
    return {
        "against": divergence.against,
        "in": divergence.within,
        "pointer": divergence.pointer,
        "kind": divergence.kind,
        "certainty": divergence.certainty,
        "char_offset": divergence.char_offset,
        "token_offset": divergence.token_offset,
        "before": divergence.before,
        "after": divergence.after,
    }


def _tokens(tokens: Tokens) -> Json:
    return {
        "prompt": tokens.prompt,
        "shared": tokens.shared,
        "lost": tokens.lost,
        "rebilled": tokens.rebilled,
        "method": tokens.method,
        "exact": tokens.exact,
    }


def _usage(usage: Usage) -> Json:
    # The two lifetimes that the contract names are always there; other lifetimes
    # ("30m", "12h", "default" where the server did not say) when they occur.
    write: Mapping[str, int] = {"5m": 0, "1h": 0, **usage.write}
    return {"uncached": usage.uncached, "read": usage.read, "write": write, "output": usage.output}


def _cache(cache: CacheOutcome) -> Json:
    return {
        "model": cache.model,
        "decided_by": cache.decided_by,
        "verified": cache.verified,
        "read_low": cache.read_low,
        "read_high": cache.read_high,
        "reported_read": cache.reported_read,
        "verdict": cache.verdict,
    }


def cost_to_dict(cost: Cost) -> Json:
    """The `cost` of a turn, or of a sum of turns."""
    result: Json = {
        "currency": cost.currency,
        "actual": cost.actual,
        "uncached": cost.uncached,
        "ideal": cost.ideal,
        "avoidable": cost.avoidable,
    }
    if cost.estimated:
        result["estimated"] = True
    if cost.least is not None:
        result["least"], result["most"] = cost.least, cost.most
    return result


def turn_to_json(turn: Turn) -> bytes:
    """A turn with all that is known of it, for keeping. Not the public format: see `to_json`."""
    return encode(turn)


def turn_from_json(data: bytes) -> Turn:
    """The turn that `turn_to_json` wrote.

    Raises InputError when the data is something else, for instance a turn kept
    by a version with other fields; such a turn has to be analysed again.
    """
    try:
        return _turn_decoder.decode(data)
    except (msgspec.DecodeError, ValueError) as error:
        raise InputError(f"a kept turn cannot be read ({error}): analyse the session again") from error


def encode(value: object, *, indent: int = 0) -> bytes:
    """A value of dictionaries, lists, structs and dataclasses as JSON in UTF-8, whatever its strings hold."""
    encoded = _encoded(value)
    return msgspec.json.format(encoded, indent=indent) if indent else encoded


def _encoded(value: object) -> bytes:
    try:
        return _encoder.encode(value)
    except UnicodeEncodeError:
        # JSON can spell half of a surrogate pair, UTF-8 cannot: prompts cut inside an emoji have them.
        return _encoder.encode(_whole_characters(msgspec.to_builtins(value)))


def _whole_characters(value: Any) -> Any:
    if isinstance(value, str):
        return _SURROGATE.sub("\N{REPLACEMENT CHARACTER}", value)
    if isinstance(value, dict):
        return {_whole_characters(key): _whole_characters(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_whole_characters(item) for item in value]
    return value
