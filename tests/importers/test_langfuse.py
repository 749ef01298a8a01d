"""Langfuse: a framework's generation around an SDK's is one call, whichever comes first in the export."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from prefixguard.importers.foreign import read_foreign
from prefixguard.importers.formats import named_format
from prefixguard.importers.told import Told


def generation(name: str, parent: str | None, **fields: Any) -> dict[str, Any]:
    return {
        "id": name, "traceId": "t", "type": "GENERATION", "parentObservationId": parent, "model": "gpt-4o",
        "startTime": "2026-11-30T10:00:00.000Z", "endTime": "2026-11-30T10:00:01.000Z", **fields,
    }  # fmt: skip


FRAMEWORK = generation(
    "outer", "run", input={"messages": ["role='user' content='Hi'"]}, usageDetails={"input": 542, "output": 9}
)
SDK = generation(
    "inner", "outer", input=[{"role": "user", "content": "Hi"}], usageDetails={"input": 163, "output": 9}
)
NEXT = generation(
    "next", "run", input=[{"role": "user", "content": "Bye"}], usageDetails={"input": 170, "output": 3}
)


@pytest.mark.parametrize("order", [(FRAMEWORK, SDK, NEXT), (NEXT, SDK, FRAMEWORK)], ids=["outer", "inner"])
def test_a_call_told_twice_is_one(order: tuple[dict[str, Any], ...], tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    run = {"id": "run", "traceId": "t", "type": "AGENT", "startTime": "2026-11-30T10:00:00.000Z"}
    path.write_text(json.dumps({"trace": {"id": "t", "sessionId": "s"}, "observations": [run, *order]}))
    rule = named_format("langfuse")
    told = Told("trace.json", rule.title)
    captures = list(read_foreign(path, rule, told))
    texts = sorted(json.loads(capture.body)["messages"][0]["content"] for capture in captures)
    assert texts == ["Bye", "Hi"], "what the SDK saw is kept, not the framework's print of it"
    assert told.aside["spans that tell a call a second time"] == 1
