"""What to mend first: the findings that cost most, each with a place, a window and the advice."""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from prefixguard.reports import figures
from prefixguard.reports.advice import advice
from prefixguard.reports.ranking import Ranked
from prefixguard.reports.text.line import SEVERITY_STYLE
from prefixguard.reports.visible import one_line, windows
from prefixguard.rulebook import FindingRule

_REACH = 48  # characters of the text before, of the difference, and behind it
_EXPLAINED = 3  # findings told in full; the rest get a line

type Catalogue = Mapping[str, FindingRule]


def first_to_mend(order: list[Ranked], findings: Catalogue) -> list[RenderableType]:
    """The findings that cost most, with the place and the advice; the others by name."""
    loud = [r for r in order if r.severity != "info"]
    if not loud:
        return [remarks(order)] if order else []
    parts: list[RenderableType] = [Text("What to mend first", "bold underline")]
    for entry in loud[:_EXPLAINED]:
        parts += [Text(), _entry(entry, findings)]
    rest = [*loud[_EXPLAINED:], *[r for r in order if r.severity == "info"]]
    if rest:
        parts += [Text(), remarks(rest)]
    return parts


def _entry(entry: Ranked, findings: Catalogue) -> RenderableType:
    rule = findings.get(entry.code)
    heading = Text()
    heading.append(f"{entry.code} {entry.name}", f"bold {SEVERITY_STYLE[entry.severity]}")
    if rule is not None:
        heading.append(f": {rule.title}")
    sums = [figures.plural(entry.turns, "turn")]
    if entry.tokens:
        sums.append(f"{figures.tokens(entry.tokens, estimated=entry.estimated)} tokens re-billed")
    if entry.cost is not None:
        sums.append(f"{figures.money(entry.cost, entry.worst.cost)} avoidable")
    if entry.deliberate:
        sums.append("looks like a decision")
    lines: list[RenderableType] = [Text(", ".join(sums), "dim")]
    turn = entry.worst
    finding = next(f for f in turn.findings if f.code == entry.code)
    place = Text(f"turn {turn.index}", "bold")
    where = finding.pointer or (turn.divergence.pointer if turn.divergence and finding.primary else "")
    if where:
        place.append(f" at {one_line(where)}", "cyan not bold")
    if finding.source is not None:
        place.append(f" from {one_line(finding.source.filename)}:{finding.source.row}", "cyan not bold")
    if finding.message:
        place.append(f": {one_line(finding.message)}", "default not bold")
    lines.append(place)
    if finding.primary and turn.divergence is not None:
        for label, window in zip(("before ", "after  "), windows(turn.divergence, reach=_REACH), strict=True):
            if window is not None:
                lines.append(Padding(Text(label, "bold") + window, (0, 0, 0, 2)))
    if rule is not None:
        general, special = advice(rule, turn)
        lines.append(Text("To do: ", "bold") + Text(general, "default not bold"))
        if special is not None:
            lines.append(Padding(Text(special), (0, 0, 0, 7)))
    return Group(heading, Padding(Group(*lines), (0, 0, 0, 2)))


def remarks(entries: list[Ranked]) -> Text:
    text = Text("Also: ", "bold")
    for number, entry in enumerate(entries):
        text.append(", " if number else "", "default not bold")
        text.append(f"{entry.code} {entry.name}", f"not bold {SEVERITY_STYLE[entry.severity]}")
        text.append(f" ({figures.plural(entry.turns, 'turn')})", "dim not bold")
    return text
