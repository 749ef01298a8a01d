"""Names a changed request parameter that enters the cache key (PG405 to PG409)."""

from __future__ import annotations

from prefixguard.causes.evidence import Catalogue, shortened
from prefixguard.finding import Finding
from prefixguard.prompt import Parameter

_CODES = {
    "model": "PG405",
    "reasoning_effort": "PG406", "reasoning.effort": "PG406", "thinking": "PG406", "think": "PG406",
    "output_config.effort": "PG406", "generationConfig.thinkingConfig": "PG406", "enable_thinking": "PG406",
    "reasoning": "PG406", "reasoning_format": "PG406",
    "tool_choice": "PG407", "parallel_tool_calls": "PG407", "toolConfig": "PG407", "tool_config": "PG407",
    "toolConfig.toolChoice": "PG407",
    "response_format": "PG408", "text.format": "PG408", "output_format": "PG408", "format": "PG408",
    "output_config.format": "PG408", "generationConfig.responseSchema": "PG408",
}  # fmt: skip
"""What a parameter is for, by its name; anything else in the key is PG409."""


def parameter_change(catalogue: Catalogue, before: Parameter | None, after: Parameter | None) -> Finding:
    """The finding for a parameter that differs, appeared or disappeared."""
    one = after or before
    assert one is not None
    was = shortened(before.value, 40) if before else "unset"
    now = shortened(after.value, 40) if after else "unset"
    return catalogue.finding(
        _CODES.get(one.name, "PG409"), f"{one.name} changed: {was} → {now}", pointer=one.pointer
    )
