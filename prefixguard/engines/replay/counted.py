"""A server's own figures of one prompt."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Counted:
    """For what a server's usage lacks, in tokens and milliseconds; None is what it does not say."""

    prompt: int | None = None
    cached: int | None = None
    prefill_ms: float | None = None
