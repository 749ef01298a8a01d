"""The verdict for people at a terminal or in a build log."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import TextIO

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from prefixguard.gate import Verdict
from prefixguard.reports import figures
from prefixguard.reports.advice import advice
from prefixguard.reports.text import console
from prefixguard.reports.text.line import SEVERITY_STYLE
from prefixguard.reports.verdict import Rows
from prefixguard.reports.verdict.causes import Cause, by_cause, places, price, summary
from prefixguard.reports.visible import one_line, windows
from prefixguard.rulebook import FindingRule

_REACH = 48  # characters of the text before, of the difference, and behind it
_PLACES = 6  # turns named per place, and places per cause


def write(verdict: Verdict, findings: Mapping[str, FindingRule], rows: Rows) -> bytes:
    """The verdict as plain text."""
    page = io.StringIO()
    show(verdict, findings, page)
    return page.getvalue().encode()


def show(verdict: Verdict, findings: Mapping[str, FindingRule], stream: TextIO | None = None) -> None:
    """Prints the verdict, in colours where the stream takes them; standard output by default."""
    paper = console(stream)
    several = len(verdict.inputs) > 1
    for cause in by_cause(verdict.faults):
        paper.print(_cause(cause, findings, several=several))
        paper.print()
    for key, count in verdict.unneeded:
        paper.print(
            Text(
                f"The baseline accepts {key.code} at {one_line(key.place)} {figures.plural(count, 'time')} "
                "more than it occurs: write it anew with --write-baseline.",
                "dim",
            )
        )
    for violation in verdict.violations:
        line = Text("broken  ", "bold red")
        line.append(f"{violation.limit}: {violation.message}", "default not bold")
        paper.print(line)
    if verdict.holds:
        paper.print(
            Text("The policy holds: ", "bold green") + Text(summary(verdict) + ".", "default not bold")
        )
    else:
        paper.print(
            Text("The policy is broken: ", "bold red") + Text(summary(verdict) + ".", "default not bold")
        )


def _cause(cause: Cause, findings: Mapping[str, FindingRule], *, several: bool) -> RenderableType:
    rule = findings.get(cause.code)
    heading = Text(cause.title, f"bold {SEVERITY_STYLE[cause.severity]}")
    if rule is not None:
        heading.append(f": {rule.title}", "default not bold")
    lines: list[RenderableType] = []
    sums = [figures.plural(len(cause.faults), "turn"), price(cause.faults)]
    lines.append(Text(", ".join(part for part in sums if part), "dim"))
    lines += [Text(one_line(place), "cyan") for place in places(cause.faults, several=several, most=_PLACES)]
    worst = cause.worst
    told = Text(f"at {one_line(worst.pointer)}", "bold") if worst.pointer else Text()
    if len(cause.faults) > 1:
        told.append(f" of turn {worst.turn.index}", "not bold")
    if worst.finding is not None and worst.finding.message:
        told.append(f": {one_line(worst.finding.message)}", "default not bold")
    if told:
        lines.append(told)
    divergence = worst.turn.divergence
    if divergence is not None and (worst.finding is None or worst.finding.primary):
        for label, window in zip(("before ", "after  "), windows(divergence, reach=_REACH), strict=True):
            if window is not None:
                lines.append(Padding(Text(label, "bold") + window, (0, 0, 0, 2)))
    if rule is not None:
        general, special = advice(rule, worst.turn)
        lines.append(Text("To do: ", "bold") + Text(special or general, "default not bold"))
    return Group(heading, Padding(Group(*lines), (0, 0, 0, 2)))
