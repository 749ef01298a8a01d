"""A server's own diagnosis of a cache miss: read when it is there, held against ours.

Anthropic answers `diagnostics.cache_miss_reason`, OpenAI `prompt_cache_diagnostics`,
when a client asks for them. Asking is the client's affair; nothing is added to requests.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import msgspec

from prefixguard.finding import Finding
from prefixguard.rulebook import Dated
from prefixguard.turn import Diagnosis


class Reason(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One row: a vendor's reason and what it corresponds to here."""

    name: str
    groups: tuple[str, ...]
    codes: tuple[str, ...]


class ReasonTable(Dated, frozen=True, forbid_unknown_fields=True):
    """The file `rules/diagnoses.toml`."""

    reason: tuple[Reason, ...]


def read_diagnosis(response: Mapping[str, Any]) -> Diagnosis | None:
    """The diagnosis in a response, not yet compared; None when there is none, or it is still pending."""
    diagnostics = response.get("diagnostics")
    if isinstance(diagnostics, Mapping):
        reason = diagnostics.get("cache_miss_reason")
        if isinstance(reason, Mapping) and isinstance(reason.get("type"), str):
            return Diagnosis("anthropic", reason["type"], _count(reason.get("cache_missed_input_tokens")))
        return None
    diagnostics = response.get("prompt_cache_diagnostics")
    if isinstance(diagnostics, Mapping) and isinstance(diagnostics.get("type"), str):
        named = diagnostics.get("reason")
        text = named if isinstance(named, str) else diagnostics["type"]
        return Diagnosis("openai", text, _count(diagnostics.get("cache_missed_tokens")))
    return None


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def compared(
    table: ReasonTable, diagnosis: Diagnosis, group: str | None, findings: list[Finding]
) -> Diagnosis:
    """The diagnosis with whether ours agrees: the same place or the same cause; None where it says nothing.

    group: where our divergence lies, or None when we saw none.
    """
    if diagnosis.reason == "cache_hit":
        return replace(diagnosis, agrees=not any(f.primary for f in findings))
    row = next((row for row in table.reason if row.name == diagnosis.reason), None)
    if row is None:
        return diagnosis
    same_place = group is not None and group in row.groups
    same_cause = any(f.code in row.codes for f in findings)
    return replace(diagnosis, agrees=same_place or same_cause)
