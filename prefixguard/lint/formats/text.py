"""Text: the finding, the line with a caret, the way to the sink, what is lost and what to do."""

from __future__ import annotations

from prefixguard.lint.formats import rule as rules
from prefixguard.lint.run import Report, place
from prefixguard.lint.trade import trade
from prefixguard.lint.verdict import LintFinding
from prefixguard.rulebook import Rulebook

_SHOWN_STEPS = 6


def printed(report: Report, rulebook: Rulebook) -> str:
    """All findings, remarks and problems, and a last line that counts them."""
    out: list[str] = []
    for finding in report.findings:
        out.extend(_finding(report, finding, rulebook))
        out.append("")
    for link in report.links:
        where = f"{link.filename}:{link.row}" if link.filename is not None else "no line"
        sure = f" (confidence {link.confidence})" if link.confidence else ""
        codes = ", ".join(link.codes) or "break"
        out.append(f"{link.turn}: {codes}, {link.tokens} tokens again: {where}{sure}: {link.why}")
    if report.links:
        out.append("")
    for remark in report.remarks:
        out.append(f"{report.project.files[remark.file].path}:{remark.row}:{remark.column}: {remark.message}")  # noqa: PERF401
    for problem in report.problems:
        out.append(f"{problem.path}:{problem.row}:{problem.column}: {problem.message}")  # noqa: PERF401
    if (report.remarks or report.problems) and out[-1]:
        out.append("")
    out.append(_summary(report))
    return "\n".join(out)


def _finding(report: Report, finding: LintFinding, rulebook: Rulebook) -> list[str]:
    file = report.project.files[finding.file]
    at = place(file, finding.at)
    name = rules.name(rulebook, finding.code)
    out = [f"{file.path}:{at[0]}:{at[1]}: {finding.severity} {finding.code} ({name}) {finding.message}"]
    line = file.line(at[0])
    indent = len(line) - len(line.lstrip())
    shown = line.strip()
    if shown:
        start = max(0, at[1] - 1 - indent)
        end = at[3] - 1 - indent if at[2] == at[0] else len(shown)
        if len(shown) > 120:
            cut = max(0, start - 30)
            shown, start, end = shown[cut : cut + 120], start - cut, end - cut
        end = min(len(shown), max(end, start + 1))
        gutter = len(str(at[0]))
        out.append(f"{at[0]:>{gutter}} | {shown}")
        out.append(f"{'':>{gutter}} | {' ' * start}{'^' * max(1, end - start)}")
    steps = _way(report, finding)
    if steps:
        out.append("  way:  " + "\n        ".join(steps))
    files = report.project.files
    out.extend(
        f"  also: {files[way[-1].file].path}:{way[-1].at[0]} {way[-1].note}" for way in finding.also[:2]
    )
    out.append(
        f"  lost: {finding.lost}"
        + (f" (confidence {finding.confidence})" if finding.confidence != "high" else "")
    )
    confirmed = finding.extra.get("confirmed_by")
    if confirmed:
        breaks = f"{len(confirmed)} recorded break{'s' if len(confirmed) != 1 else ''}"
        out.append(f"  seen: confirmed by {breaks} ({confirmed[0]})")
    both = trade(rulebook, finding.code, finding.api) if finding.position == "history" else None
    if both is not None:
        out.append(f"  cost: {both.text}")
    mend = rules.mend(rulebook, finding)
    if mend:
        out.append(f"  mend: {mend}")
    return out


def _way(report: Report, finding: LintFinding) -> list[str]:
    files = report.project.files
    rows: dict[tuple[int, int], str] = {}
    for step in finding.trace:
        rows[(step.file, step.at[0])] = step.note
    steps = [
        (f"line {row}" if file == finding.file else f"{files[file].path}:{row}") + f" {note}"
        for (file, row), note in rows.items()
    ]
    if len(steps) > _SHOWN_STEPS:
        steps = [*steps[: _SHOWN_STEPS - 2], f"... {len(steps) - _SHOWN_STEPS + 1} more ...", steps[-1]]
    return steps


def _summary(report: Report) -> str:
    counts = {
        name: sum(1 for f in report.findings if f.severity == name) for name in ("error", "warning", "info")
    }
    said = ", ".join(
        f"{n} {name}{'s' if n != 1 and name != 'info' else ''}" for name, n in counts.items() if n
    )
    tail = f" in {report.seen} file{'s' if report.seen != 1 else ''}"
    if report.suppressed:
        tail += f"; {len(report.suppressed)} suppressed"
    if report.known_before:
        tail += f"; {report.known_before} in the baseline"
    return (f"Found {said}" if said else "Found nothing that breaks a prompt's prefix") + tail + "."
