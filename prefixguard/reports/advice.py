"""What to do about a finding, for the API and server that the turn went to."""

from __future__ import annotations

from prefixguard.rulebook import FindingRule
from prefixguard.turn import Turn

# Names of servers as cache models begin with them: what to do on one's own
# engine differs more than what to do in one API.
_ENGINES = ("vllm", "llama.cpp", "sglang")
_SAME_ADVICE = {"llamacpp": "llama.cpp"}


def advice(rule: FindingRule, turn: Turn) -> tuple[str, str | None]:
    """(what to do in general, what to do with this turn's server or API, where that differs)."""
    for name in names(turn):
        if name in rule.mend_for:
            return flow(rule.mend), flow(rule.mend_for[name])
    return flow(rule.mend), None


def names(turn: Turn) -> list[str]:
    """The names under which `mend_for` may hold advice for a turn, most specific first."""
    model = turn.cache.model if turn.cache else ""
    engines = [engine for engine in _ENGINES if model.startswith(engine)]
    return [*engines, _SAME_ADVICE.get(turn.api, turn.api)]


def flow(text: str) -> str:
    """A text of the catalogue as one paragraph: its line breaks are those of the file, not of the reader."""
    return " ".join(text.split())
