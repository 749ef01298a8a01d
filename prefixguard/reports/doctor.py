"""A check-up for readers and for programs: `prefixguard-doctor/1`."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from prefixguard.checkup import Checkup, Remark

_WORDS = {"problem": "PROBLEM", "advice": "ADVICE", "ok": "ok", "unknown": "unknown"}
_STYLES = {"problem": "bold red", "advice": "yellow", "ok": "green", "unknown": "dim"}
_ORDER = ("problem", "advice", "unknown", "ok")


def doctor_to_json(checkup: Checkup) -> bytes:
    """`prefixguard-doctor/1`. `todo` is null where nothing has to be done, `figure` where there is none."""
    fields = {
        "schema": "prefixguard-doctor/1",
        "engine": {
            "kind": checkup.kind,
            "version": checkup.version,
            "url": checkup.url,
            "model": checkup.model,
        },
        "problems": checkup.count("problem"),
        "remarks": [
            {
                "severity": remark.severity,
                "topic": remark.topic,
                "found": remark.found,
                "figure": remark.figure or None,
                "todo": remark.todo or None,
            }
            for remark in checkup.remarks
        ],
    }
    return msgspec.json.format(msgspec.json.encode(fields), indent=2) + b"\n"


def doctor_page(checkup: Checkup) -> RenderableType:
    """Problems first, what is well last."""
    return Group(*_parts(checkup))


def _parts(checkup: Checkup) -> Iterator[RenderableType]:
    yield Text.assemble((f"{checkup.kind} {checkup.version}", "bold"), f" at {checkup.url}, {checkup.model}")
    for severity in _ORDER:
        for remark in checkup.remarks:
            if remark.severity == severity:
                yield from _remark(remark)
    yield Text()
    problems, advice = checkup.count("problem"), checkup.count("advice")
    if problems or advice:
        yield Text(f"{problems} problem{'s' * (problems != 1)}, {advice} to consider", "bold")
    else:
        yield Text("Nothing that wastes cache was found", "bold green")


def _remark(remark: Remark) -> Iterator[RenderableType]:
    yield Text()
    yield Text.assemble(
        (f"{_WORDS[remark.severity]:<8}", _STYLES[remark.severity]),
        (f"{remark.topic}: ", "bold"),
        remark.found,
    )
    if remark.figure:
        yield Padding(Text(remark.figure, "dim"), (0, 0, 0, 8))
    if remark.todo:
        yield Padding(Text(f"To do: {remark.todo}"), (0, 0, 0, 8))
