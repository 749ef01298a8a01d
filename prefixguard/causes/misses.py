"""Why fewer tokens were read than an append could have, when the client sent nothing wrong (PG6xx, PG8xx)."""

from __future__ import annotations

from dataclasses import dataclass

from prefixguard.caches.model import Readable
from prefixguard.caches.rule import CacheRule
from prefixguard.causes.evidence import Catalogue
from prefixguard.finding import Finding
from prefixguard.turn import Usage, Verdict


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What surrounded a turn.

    keep: tokens of the parent that an append would have read. moved: which part
    of the domain differs from the parent's ("host", "account"), or None.
    routing: (before, now) of the routing key when it matters and differs.
    asked_ttl: the longest lifetime that the client asked for. others: tokens of
    other threads' prompts that the same cache took since the turn before.
    cleared: tokens that the server itself took out of the history.
    """

    rule: CacheRule
    readable: Readable
    keep: int
    parted: bool
    moved: str | None
    routing: tuple[str | None, str | None] | None
    routing_name: str
    total: int
    usage: Usage | None
    verdict: Verdict
    tolerance: int
    asked_ttl: str | None
    off: bool
    others: int = 0
    cleared: int = 0


def miss_findings(catalogue: Catalogue, facts: Circumstances) -> list[Finding]:
    """The findings that account for a miss; PG804 when none does."""
    found = []
    readable, rule = facts.readable, facts.rule
    reported = facts.usage.read if facts.usage is not None else None
    missed = reported is None or reported < facts.keep - facts.tolerance
    if facts.moved and facts.keep and missed:
        code = "PG604" if facts.moved == "account" else "PG603"
        found.append(
            catalogue.finding(
                code, f"another {facts.moved} than the turn before: its cache holds nothing of this session",
                by="client",
            )
        )  # fmt: skip
    if facts.routing is not None and not facts.moved:
        before, now = facts.routing
        if now is None and before is None:
            text = f"{facts.routing_name} is not set; this server matches prefixes well only with it"
        else:
            text = f"{facts.routing_name} changed: {before or 'unset'} → {now or 'unset'}"
        found.append(catalogue.finding("PG508", text, pointer=f"/{facts.routing_name}"))
    if readable.ageless > readable.high and (
        reported is None or reported < readable.ageless - facts.tolerance
    ):
        found.append(_expired(catalogue, readable, sure=True))
    elif (
        rule.hosted and rule.idle and readable.age is not None and readable.age > rule.idle
        and reported is not None and reported < readable.high - facts.tolerance
    ):  # fmt: skip
        found.append(_expired(catalogue, readable, sure=False))
    if readable.raced > readable.high and (reported is None or reported < readable.raced - facts.tolerance):
        found.append(
            catalogue.finding(
                "PG605", f"{readable.raced:,} tokens were still being written by a parallel request",
                by="client",
            )
        )  # fmt: skip
    found += _downgraded(catalogue, facts)
    rounding = readable.common - readable.high
    if rule.grain >= 512 and readable.high < readable.common and 256 <= rounding < rule.grain + 256:
        found.append(
            catalogue.finding(
                "PG703",
                f"{rounding:,} shared tokens lie in an unfinished block of {rule.grain:,}",
                by="server",
            )
        )
    if facts.cleared and facts.verdict == "less" and not found:
        found.append(
            catalogue.finding(
                "PG302", f"the server cleared {facts.cleared:,} tokens of the history, as it was allowed to",
                by="server", severity="info",
            )
        )  # fmt: skip
    explained = found or facts.off or facts.parted or readable.unreachable > readable.high
    if (
        facts.verdict == "less"
        and not explained
        and facts.others
        and not rule.hosted
        and _much(facts, reported)
    ):
        found.append(_pushed_out(catalogue, facts, reported or 0))
    elif facts.verdict == "less" and not explained:
        found.append(
            catalogue.finding(
                "PG804",
                f"the prefix is unchanged, yet only {reported:,} of {readable.low:,} tokens were read",
                severity="warning" if not rule.hosted and _much(facts, reported) else "info",
                by="server", confidence="medium",
            )
        )  # fmt: skip
    return found


def _pushed_out(catalogue: Catalogue, facts: Circumstances, reported: int) -> Finding:
    """Other work came between on a server with room for so much: in slots, or in blocks."""
    seen = f"{reported:,} of {facts.readable.high:,} tokens were left after {facts.others:,} of others"
    if facts.rule.slotted:
        return catalogue.finding(
            "PG606", f"another session took the slot: {seen}", by="server", confidence="medium"
        )
    return catalogue.finding("PG602", f"pushed out by other work: {seen}", by="server", confidence="medium")


def _much(facts: Circumstances, reported: int | None) -> bool:
    """Whether a miss is more than a block size that nobody told us could explain."""
    missing = facts.readable.low - (reported or 0)
    return missing > max(256, facts.readable.low // 10)


def _expired(catalogue: Catalogue, readable: Readable, *, sure: bool) -> Finding:
    age = f"{readable.age:,.0f} s" if readable.age is not None else "a while"
    return catalogue.finding(
        "PG601", f"the entry had expired: it was last used {age} before",
        by="time", confidence="high" if sure else "medium",
    )  # fmt: skip


def _downgraded(catalogue: Catalogue, facts: Circumstances) -> list[Finding]:
    usage = facts.usage
    if usage is None or facts.asked_ttl in (None, "5m") or not usage.write.get("5m"):
        return []
    if any(tokens for ttl, tokens in usage.write.items() if ttl != "5m"):
        return []
    return [
        catalogue.finding(
            "PG607", f"asked for a lifetime of {facts.asked_ttl}, the server wrote 5m entries", by="server"
        )
    ]
