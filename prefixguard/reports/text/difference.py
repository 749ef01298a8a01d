"""Two sessions, or two turns, compared on a page."""

from __future__ import annotations

from itertools import groupby

from rich import box
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from prefixguard.prompt import Kind, Segment
from prefixguard.reports import figures
from prefixguard.reports.comparison import Measure, codes, compare_sessions
from prefixguard.reports.prompts import Change, Step
from prefixguard.reports.visible import around, marked, one_line
from prefixguard.turn import Session

_SIGNS: dict[Change, tuple[str, str]] = {
    "same": ("=", "dim"),
    "rewritten": ("~", "yellow"),
    "changed": ("!", "bold yellow"),
    "gone": ("-", "red"),
    "new": ("+", "green"),
    "moved": (">", "cyan"),
}
_WORDS: dict[Change, str] = {
    "same": "the same",
    "rewritten": "same content, other bytes",
    "changed": "changed",
    "gone": "gone",
    "new": "new",
    "moved": "moved",
}
_NAME = 24  # characters of a session that fit over a column
_EXCERPT = 160  # characters of a segment that came or went


def sessions_difference(before: Session, after: Session) -> RenderableType:
    """A table of the figures, the findings on either side, and which side is better."""
    measures = compare_sessions(before, after)
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 2, 0, 0), pad_edge=False, show_edge=False)
    table.add_column("")
    names = [one_line(session.id) for session in (before, after)]
    if max(map(len, names)) > _NAME:  # the line above tells them
        names = ["before", "after"]
    for name in names:
        table.add_column(name, justify="right", no_wrap=True)
    for measure in measures:
        if measure.before is None and measure.after is None:
            continue
        style = {None: "", True: "green", False: "red"}[measure.better]
        table.add_row(
            measure.label,
            measure.written(measure.before, before),
            Text(measure.written(measure.after, after), style),
        )
    found = codes(before, after)
    if found:
        table.add_section()
    for code, name, one, other in found:
        style = "" if one == other else "green" if other < one else "red"
        table.add_row(f"{code} {name}", _turns(one), Text(_turns(other), style))
    return Group(_verdict(measures, before, after), Text(), table)


def _turns(count: int) -> str:
    return figures.plural(count, "turn") if count else figures.NONE


def _verdict(measures: list[Measure], before: Session, after: Session) -> Text:
    by_name = {measure.name: measure for measure in measures}
    told = []
    for name in ("breaks", "hit_rate", "rebilled_tokens", "first_token_ms", "cost"):
        measure = by_name[name]
        if measure.better is not None:
            one = measure.written(measure.before, before)
            other = measure.written(measure.after, after)
            told.append((f"{measure.label} {one} -> {other}", measure.better))
    if not told:
        return Text("No difference in breaks, cached tokens or cost.")
    text = Text(f"{one_line(before.id)} -> {one_line(after.id)}: ", "bold")
    for number, (phrase, better) in enumerate(told):
        text.append(", " if number else "", "default not bold")
        text.append(phrase, "not bold " + ("green" if better else "red"))
    text.append(".", "default not bold")
    return text


def turns_difference(
    steps: list[Step], parameters: list[tuple[str, str | None, str | None]], *, estimated: bool
) -> RenderableType:
    """The segments of two turns; what is the same is one line."""
    parts: list[RenderableType] = []
    for name, was, now in parameters:
        line = Text("! ", "bold yellow")
        line.append(f"parameter {one_line(name)}: ", "default")
        line.append(f"[-{one_line(was or 'absent')}-] ", "red")
        line.append(f"{{+{one_line(now or 'absent')}+}}", "green")
        parts.append(line)
    for same, run in groupby(steps, lambda step: step.change == "same"):
        if same:
            parts.append(_same(list(run), estimated=estimated))
        else:
            parts += [_step(step, estimated=estimated) for step in run]
    if all(step.change == "same" for step in steps) and not parameters:
        parts.append(Text("The two prompts are the same.", "green"))
    return Group(*parts)


def _same(run: list[Step], *, estimated: bool) -> Text:
    total = figures.exact_tokens(sum(step.tokens for step in run), estimated=estimated)
    first, last = run[0].after, run[-1].after
    place = one_line(first or "") if len(run) == 1 else f"{one_line(first or '')} to {one_line(last or '')}"
    return Text(f"= {figures.plural(len(run), 'segment')} the same, {total} tokens: {place}", "dim")


def _step(step: Step, *, estimated: bool) -> RenderableType:
    sign, style = _SIGNS[step.change]
    segment = step.new or step.old
    assert segment is not None
    line = Text(f"{sign} ", style)
    places = [place for place in (step.before, step.after) if place is not None]
    line.append(" -> ".join(one_line(place) for place in dict.fromkeys(places)), "cyan")
    line.append(f" {_what(segment)}: {_direction(step)}", "default")
    line.append(f", {figures.exact_tokens(step.tokens, estimated=estimated)} tokens", "dim")
    if step.change == "moved":
        return line
    return Group(line, Padding(_texts(step), (0, 0, 0, 4)))


def _direction(step: Step) -> str:
    if step.change != "moved":
        return _WORDS[step.change]
    return "moved here" if step.new is not None else "moved away"


def _what(segment: Segment) -> str:
    kind = segment.kind
    what = kind.value if kind in (Kind.TOOL, Kind.TOOL_RESULT) else f"{segment.role} {kind.value}"
    return f"{what} {one_line(segment.name)}" if segment.name else what


def _texts(step: Step) -> RenderableType:
    if step.old is not None and step.new is not None:
        before, after = step.old, step.new
        texts = (before.text, after.text)
        if texts[0] == texts[1]:
            texts = (before.json or before.media or "", after.json or after.media or "")
        if texts[0] == texts[1]:
            return Text("(differs in an id or in its form only)", "dim")
        return Group(*[window for window in marked(*around(*texts)) if window is not None])
    segment = step.new or step.old
    assert segment is not None
    text = one_line(segment.text[:_EXCERPT])
    return Text(text + ("..." if len(segment.text) > _EXCERPT else ""), "green" if step.new else "red")
