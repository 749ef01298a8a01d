"""The rulebook for readers: the catalogue, one finding in full, the cache rules with their sources."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import groupby

from rich import box
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from prefixguard.caches.rule import CacheRule
from prefixguard.reports import figures
from prefixguard.reports.advice import flow
from prefixguard.reports.json import encode
from prefixguard.reports.text.line import SEVERITY_STYLE
from prefixguard.rulebook import FindingRule

FAMILIES: Mapping[str, str] = {
    "PG1": "Values that change, in reused parts",
    "PG2": "The same content, written or ordered differently",
    "PG3": "History rewritten",
    "PG4": "Tools, model and parameters",
    "PG5": "Breakpoints, keys and layout",
    "PG6": "Misses without a change of the prompt",
    "PG7": "Templates, engines and gateways",
    "PG8": "Figures missing or contradictory",
}
"""The families of codes, by their first digit."""

_LANGUAGES = {"python": "Python", "typescript": "TypeScript"}
_UNITS = ((86400, "d"), (3600, "h"), (60, "min"), (1, "s"))


def catalogue(findings: Iterable[FindingRule]) -> RenderableType:
    """A line per finding, under the heading of its family."""
    rules = list(findings)
    width = max((len(rule.name) for rule in rules), default=0)
    parts: list[RenderableType] = []
    for family, members in groupby(rules, lambda rule: rule.code[:3]):
        table = Table.grid(padding=(0, 2, 0, 0))
        for column in (5, width, 7, 12):
            table.add_column(no_wrap=True, min_width=column)
        table.add_column(overflow="fold")
        for rule in members:
            title = Text(rule.title)
            if rule.can_be_deliberate:
                title.append(" (can be a decision)", "dim")
            table.add_row(
                Text(rule.code, "bold"),
                rule.name,
                Text(rule.severity, SEVERITY_STYLE[rule.severity]),
                Text(", ".join(rule.seen_by), "dim"),
                title,
            )
        heading = Text(FAMILIES.get(family, family), "bold underline")
        parts += [*([Text()] if parts else []), heading, table]
    return Group(*parts)


def finding_page(rule: FindingRule) -> RenderableType:
    """One entry of the catalogue in full."""
    heading = Text(f"{rule.code} {rule.name}", f"bold {SEVERITY_STYLE[rule.severity]}")
    heading.append(f": {rule.title}", "default")
    facts = [rule.severity, "seen by " + ", ".join(rule.seen_by)]
    if rule.can_be_deliberate:
        facts.append("can be a decision: once or now and then it is reported, priced, and not called a fault")
    parts: list[RenderableType] = [heading, Text("; ".join(facts), "dim"), Text()]
    parts += [Text("Why it hurts", "bold"), _indented(flow(rule.why)), Text()]
    parts += [Text("What to do", "bold"), _indented(flow(rule.mend))]
    for name, text in rule.mend_for.items():
        parts += [Text(), Padding(Text(f"With {name}", "cyan"), (0, 0, 0, 2)), _indented(flow(text))]
    for example in rule.examples:
        language = _LANGUAGES[example.language]
        for label, code in ((f"Not this ({language})", example.bad), ("But this", example.good)):
            parts += [Text(), Text(label, "bold"), _code(code, example.language)]
    return Group(*parts)


def _indented(text: str) -> RenderableType:
    return Padding(Text(text), (0, 0, 0, 2))


def _code(code: str, language: str) -> RenderableType:
    syntax = Syntax(code.strip("\n"), language, theme="ansi_dark", background_color="default")
    return Padding(syntax, (0, 0, 0, 2))


def caches_table(rules: Iterable[CacheRule]) -> Table:
    """A line per cache rule: how it decides, and who says so, as of when."""
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
    table.add_column("rule", no_wrap=True, style="bold")
    table.add_column("kind", no_wrap=True)
    table.add_column("minimum", justify="right", no_wrap=True)
    table.add_column("grain", justify="right", no_wrap=True)
    table.add_column("lifetime", no_wrap=True)
    table.add_column("date", no_wrap=True)
    table.add_column("checked", no_wrap=True)
    table.add_column("source", overflow="fold", ratio=1)
    for rule in rules:
        table.add_row(
            rule.name,
            rule.kind,
            minimum_of(rule),
            f"{rule.grain:,}" if rule.kind != "breakpoint" else figures.NONE,
            lifetime_of(rule),
            rule.date.isoformat(),
            Text("yes", "green") if rule.verified else Text("no", "yellow"),
            Text(rule.source, "dim"),
        )
    return table


def cache_page(rule: CacheRule) -> RenderableType:
    """One cache rule in full."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(overflow="fold")
    for label, value in cache_facts(rule):
        grid.add_row(label, value)
    heading = Text(rule.name, "bold")
    heading.append(f": {rule.title}", "not bold")
    return Group(heading, Text(), grid)


def cache_facts(rule: CacheRule) -> list[tuple[str, str]]:
    """What there is to say of a cache rule: label and value, the label empty where it goes on."""
    facts: list[tuple[str, str]] = []

    def row(label: str, value: str) -> None:
        if value:
            facts.append((label, value))

    row("Kind", rule.kind + (", hits are likely but not certain" if rule.hosted else ", exact"))
    row("Also called", ", ".join(rule.aliases))
    row("Order", "tools before system" if rule.order == "tools-first" else "system before tools")
    row("Minimum", f"{rule.minimum:,} tokens" if rule.minimum else "none")
    for minimum in rule.minimums:
        row("", f"{minimum.minimum:,} tokens for {', '.join(minimum.models)}")
    if rule.kind != "breakpoint":
        row("Grain", figures.plural(rule.grain, "token"))
    else:
        row("Breakpoints", f"{rule.marks} at most" if rule.marks else "")
        row("Lookback", f"{rule.lookback} blocks" if rule.lookback else "no limit")
        row("Unmarked", "cached too" if rule.unmarked else "not cached")
    row("Lifetime", lifetime_of(rule))
    row("Kept apart by", ", ".join(rule.domain))
    row("Routing by", ", ".join(rule.routing))
    for level, names in rule.levels.items():
        row(f"Key, {level}", ", ".join(names))
    row("Switched off by", ", ".join(switch.name for switch in rule.off))
    row("Does not see", ", ".join(rule.blind))
    row("Notes", rule.notes)
    row("Source", f"{rule.source} ({rule.date.isoformat()}, {'checked' if rule.verified else 'not checked'})")
    return facts


def minimum_of(rule: CacheRule) -> str:
    """The least number of tokens that is kept, as one figure or a range over models."""
    values = [rule.minimum, *(row.minimum for row in rule.minimums)]
    low, high = min(values), max(values)
    if not high:
        return figures.NONE
    return f"{low:,}" if low == high else f"{low:,}-{high:,}"


def lifetime_of(rule: CacheRule) -> str:
    """How long an entry can be read, in words."""
    if rule.ttl:
        return ", ".join(rule.ttl)
    if rule.idle is not None and rule.longest is not None:
        return f"{_time(rule.idle)} idle, {_time(rule.longest)} at most"
    if rule.idle is not None:
        return f"{_time(rule.idle)} idle"
    return "until evicted"


def _time(seconds: int) -> str:
    for size, unit in _UNITS:
        if seconds % size == 0 and seconds >= size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"


def rules_to_json(rules: FindingRule | CacheRule | list[FindingRule] | list[CacheRule]) -> bytes:
    """Rules as they stand in the rulebook, as indented JSON with a final line end."""
    return encode(rules, indent=2) + b"\n"
