"""One turn explained: where it parted, what was billed again, why, and what to do."""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from prefixguard.finding import Finding
from prefixguard.reports import figures
from prefixguard.reports.advice import advice, flow
from prefixguard.reports.text.line import SEVERITY_STYLE, is_miss, predicted
from prefixguard.reports.visible import one_line, safe, windows
from prefixguard.rulebook import FindingRule
from prefixguard.turn import Diagnosis, Divergence, Session, Turn

KINDS = {
    "changed": "changed",
    "inserted": "something was inserted",
    "removed": "something is gone",
    "moved": "something moved",
    "reordered": "the order changed",
    "shape": "same text in another form",
    "parameter": "a parameter changed",
}
_RECURRENCE = {
    "once": "once in this thread",
    "event": "now and then",
    "every-user-turn": "on every user turn",
    "every-request": "on every request",
}
VERDICTS = {
    "as-predicted": "as predicted",
    "less": "less than predicted",
    "more": "more than predicted",
    "not-reported": "the server reports no cached tokens",
}
SHAPES = {
    "first": "starts a thread",
    "append": "continues turn {}",
    "retry": "repeats turn {}",
    "rewind": "goes back to turn {}",
    "fork": "branches off turn {}",
    "side": "is a helper call beside turn {}",
    "changed": "continues turn {}, changed",
}


def explain_turn(
    turn: Turn, findings: Mapping[str, FindingRule], session: Session | None = None
) -> RenderableType:
    """Everything that is known of a turn, in the order in which a reader asks for it.

    findings: the catalogue, for the reasons and the advice. session: gives the
    usual time to the first token, to set this turn's beside it.
    """
    sections: list[RenderableType] = [_title(turn, session)]
    rows = _Rows()
    if turn.note:
        rows.add("Note", Text(safe(turn.note), "yellow"))
    if turn.divergence is not None:
        _add_divergence(rows, turn, turn.divergence)
    _add_price(rows, turn, session)
    _add_cache(rows, turn)
    ordered = sorted(turn.findings, key=lambda finding: not finding.primary)
    for finding in ordered:
        _add_finding(rows, turn, finding, findings.get(finding.code))
    if turn.is_break and not ordered:
        rows.add(
            "Why", Text("No cause of the catalogue fits this change; the window above shows what changed.")
        )
    sections.append(rows.table)
    return Group(*sections)


def facts(turn: Turn, session: Session | None = None) -> list[tuple[str, str]]:
    """(label, sentence) of what a turn cost and what its cache did, as plain text; a label may be empty."""
    rows = _Lines()
    _add_price(rows, turn, session)
    _add_cache(rows, turn)
    return rows.lines


def headline(turn: Turn) -> tuple[str, list[str]]:
    """What a turn is, in a word or two, and what else its title says: shape, API, model, server, status."""
    if turn.note:
        word = "not understood"
    elif turn.is_break:
        word = "break" if turn.is_fault else "break, by decision"
    elif is_miss(turn):
        word = "miss of what an append reads" if "prompt" in turn.unseen else "miss without a change"
    else:
        word = "no prompt in the record" if "prompt" in turn.unseen else "no break"
    shape = SHAPES[turn.shape].format("?" if turn.parent is None else turn.parent)
    if figures.shape(turn) == figures.UNKNOWN:
        shape = "what it continues was not recorded"
    about = [shape, turn.api]
    about.append(one_line(turn.model) if turn.model else "model ?")
    if turn.upstream:
        about.append(one_line(turn.upstream))
    if turn.status is not None and turn.status >= 400:
        about.append(f"status {turn.status}")
    if turn.aborted:
        about.append("aborted by the client")
    return word, about


def place(turn: Turn, divergence: Divergence) -> tuple[str, list[str]]:
    """Where a prompt parts (a pointer, with the kind of change), and details of it."""
    where = one_line(divergence.pointer) or "the request as a whole"
    if divergence.within == "parent":
        where += f" of turn {divergence.against}"
    detail = []
    if divergence.char_offset:
        detail.append(f"character {divergence.char_offset:,} of the text")
    if divergence.kind != "parameter":
        behind = figures.exact_tokens(divergence.token_offset, estimated=not turn.tokens.exact)
        total = figures.exact_tokens(turn.tokens.prompt, estimated=not turn.tokens.exact)
        detail.append(f"{behind} of {total} tokens stand before it")
    if divergence.certainty == "server":
        detail.append("only some servers see this difference")
    return where, detail


def remarks_on(finding: Finding) -> list[str]:
    """How grave a finding is, how often it comes, how sure it is, and whose doing."""
    remarks = [finding.severity, _RECURRENCE[finding.recurrence]]
    if finding.confidence != "high":
        remarks.append(f"{finding.confidence} confidence")
    if finding.deliberate:
        remarks.append("looks like a decision")
    if finding.by != "client":
        remarks.append(f"done by the {finding.by}" if finding.by != "time" else "done by time")
    return remarks


class _Rows:
    """Rows of a label and a value, with room between."""

    def __init__(self) -> None:
        self.table = Table.grid(padding=(0, 2, 0, 0), expand=False)
        self.table.add_column(style="bold", no_wrap=True)
        self.table.add_column(overflow="fold")

    def add(self, label: str, value: RenderableType) -> None:
        self.table.add_row(label, value)

    def gap(self) -> None:
        self.table.add_row("", "")


class _Lines(_Rows):
    """The same rows as plain text."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[tuple[str, str]] = []

    def add(self, label: str, value: RenderableType) -> None:
        self.lines.append((label, value.plain if isinstance(value, Text) else str(value)))


def _title(turn: Turn, session: Session | None) -> Text:
    word, about = headline(turn)
    title = Text(f"Turn {turn.index}", "bold")
    if session is not None:
        title.append(f" of {one_line(session.id)}", "default not bold")
    title.append(": ")
    if not turn.is_break and not is_miss(turn) and not turn.note:
        style = "green"
    else:
        style = "bold red" if turn.is_fault else "bold yellow"
    title.append(word, style)
    title.append("\n")
    title.append(" · ".join(about), "not bold dim")
    return title


def _add_divergence(rows: _Rows, turn: Turn, divergence: Divergence) -> None:
    rows.gap()
    where, detail = place(turn, divergence)
    shown = Text(one_line(divergence.pointer) or where, "cyan")
    shown.append(where[len(shown.plain) :], "default")
    shown.append(f": {KINDS[divergence.kind]}", "default")
    rows.add("Where", shown)
    if detail:
        rows.add("", Text(", ".join(detail), "dim"))
    before, after = windows(divergence)
    if before is None and after is None:
        return
    rows.add("  before", Text("(nothing)", "dim italic") if before is None else before)
    rows.add("  after", Text("(nothing)", "dim italic") if after is None else after)


def _add_price(rows: _Rows, turn: Turn, session: Session | None) -> None:
    rows.gap()
    estimated = not turn.tokens.exact
    if turn.is_break:
        value = Text(
            f"{figures.exact_tokens(turn.tokens.rebilled, estimated=estimated)} tokens",
            "bold red" if turn.is_fault else "bold",
        )
        lost = figures.exact_tokens(turn.tokens.lost, estimated=estimated)
        value.append(
            f" sent again, of {lost} that the cache held and that cannot be read any more", "default not bold"
        )
        rows.add("Re-billed", value)
    elif turn.tokens.rebilled:
        again = figures.exact_tokens(turn.tokens.rebilled, estimated=estimated)
        rows.add("At stake", Text(f"{again} tokens would be re-billed by a server that sees the difference"))
    money = _money(turn)
    if money:
        rows.add("Money", Text(money))
    if turn.timing.first_token_ms is not None:
        seconds = f"{figures.seconds(turn.timing.first_token_ms)} to the first token"
        usual = figures.usual_first_token_ms(session) if session is not None and turn.is_break else None
        if usual is not None:
            seconds += f"; {figures.seconds(usual)} is usual here on turns without a break"
        rows.add("Seconds", Text(seconds))


def _money(turn: Turn) -> str:
    cost = turn.cost
    parts = []
    if cost.actual is not None:
        parts.append(f"{figures.bill(cost)} for this request")
    if cost.avoidable is not None and cost.avoidable > 0:
        parts.append(f"{figures.money(cost.avoidable, cost)} of it avoidable")
    if cost.uncached is not None and parts:
        parts.append(f"{figures.money(cost.uncached, cost)} without any cache")
    return ", ".join(parts)


def _add_cache(rows: _Rows, turn: Turn) -> None:
    cache = turn.cache
    if cache is None:
        return
    text = Text(f"predicted {predicted(cache.read_low, cache.read_high)} tokens read")
    if cache.reported_read is None:
        text.append(f", reported {figures.UNKNOWN} ({VERDICTS['not-reported']})")
    else:
        text.append(f", reported {figures.exact_tokens(cache.reported_read)}: ")
        style = "green" if cache.verdict == "as-predicted" else "yellow"
        text.append(VERDICTS[cache.verdict], style)
    rows.add("Cache", text)
    known = "" if cache.verified else "; this rule is unverified"
    rows.add("", Text(f"rule {one_line(cache.model)}, chosen by {one_line(cache.decided_by)}{known}", "dim"))
    if turn.diagnosis is not None:
        rows.add("", _server_says(turn.diagnosis))


def _server_says(diagnosis: Diagnosis) -> Text:
    """The server's own diagnosis, and whether it says the same as the findings here."""
    missed = diagnosis.missed_tokens
    tokens = f", about {figures.exact_tokens(missed)} tokens" if missed is not None else ""
    verdict = {True: "; the findings here agree", False: "; the findings here differ", None: ""}
    said = f"{one_line(diagnosis.by)} says: {one_line(diagnosis.reason)}"
    return Text(f"{said}{tokens}{verdict[diagnosis.agrees]}")


def _add_finding(rows: _Rows, turn: Turn, finding: Finding, rule: FindingRule | None) -> None:
    rows.gap()
    heading = Text(f"{finding.code} {finding.name}", f"bold {SEVERITY_STYLE[finding.severity]}")
    if rule is not None:
        heading.append(f": {rule.title}", "default not bold")
    rows.add("Why" if finding.primary else "Also", heading)
    rows.add("", Text(", ".join(remarks_on(finding)), "dim"))
    if finding.message:
        rows.add("", Text(safe(finding.message)))
    if finding.evidence:
        rows.add("  evidence", Text(safe(finding.evidence)))
    if finding.source is not None:
        rows.add("  source", Text(f"{one_line(finding.source.filename)}:{finding.source.row}", "cyan"))
    if rule is None:
        return
    rows.add("  how", Text(flow(rule.why), "dim"))
    general, special = advice(rule, turn)
    rows.add("What to do" if finding.primary else "  to do", Text(general))
    if special is not None:
        rows.add("", Text(special))
