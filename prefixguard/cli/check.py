"""`prefixguard check`: the gate. Recorded requests in; 0 when the policy holds, 1 when it is broken."""

from __future__ import annotations

import os
import sys
from collections import Counter
from pathlib import Path

import click

from prefixguard import configuration
from prefixguard.baseline import read_baseline, write_baseline
from prefixguard.cli import completing
from prefixguard.cli.sources import Reading, reading_options
from prefixguard.configuration import CheckSettings
from prefixguard.errors import InputError
from prefixguard.gate import Input, Known, Policy, Verdict, judge, to_known
from prefixguard.importers.sources import line_numbers, logs_in
from prefixguard.reports import figures
from prefixguard.reports.verdict import FORMATS, Rows, written
from prefixguard.rulebook import Rulebook
from prefixguard.store import LAST

_JOB_SUMMARY = "GITHUB_STEP_SUMMARY"
"""Where GitHub says which file holds the summary of a build job."""


def _codes(_ctx: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    return checked_codes(f"--{parameter.name}", [code for value in values for code in value.split(",")])


def checked_codes(origin: str, values: list[str]) -> tuple[str, ...]:
    """Codes or their beginnings; "ALL" is every code. Raises InputError for one that names nothing."""
    codes = [code.strip().upper() for code in values if code.strip()]
    known = Rulebook().findings
    for code in codes:
        if code != "ALL" and not any(name.startswith(code) for name in known):
            raise InputError(f"{origin}: {code!r} is no code, nor the start of one; see `prefixguard rules`")
    return tuple("PG" if code == "ALL" else code for code in codes)


@click.command()
@click.argument("names", nargs=-1, shell_complete=completing.sources, metavar="[LOG|SESSION|DIR]...")
@click.option(
    "--max-breaks",
    type=click.IntRange(0),
    metavar="N",
    help="Breaks that pass; those by decision never count. [default: 0]",
)
@click.option(
    "--max-rebilled-tokens", type=click.IntRange(0), metavar="N", help="Tokens that may be sent again."
)
@click.option(
    "--min-hit-rate",
    type=click.FloatRange(0, 1),
    metavar="0..1",
    help="The least share of prompt tokens read from the cache.",
)
@click.option(
    "--max-avoidable-usd", type=click.FloatRange(0), metavar="USD", help="Money that may be avoidable."
)
@click.option(
    "--select",
    multiple=True,
    shell_complete=completing.codes,
    callback=_codes,
    metavar="CODES",
    help="Only these codes, or their beginnings.",
)
@click.option(
    "--ignore",
    multiple=True,
    shell_complete=completing.codes,
    callback=_codes,
    metavar="CODES",
    help="Not these codes.",
)
@click.option(
    "--baseline", type=click.Path(dir_okay=False, path_type=Path), help="Accept the faults that this lists."
)
@click.option(
    "--write-baseline",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the present faults to this file as accepted, and end with 0.",
)
@click.option("--output-format", type=click.Choice(FORMATS), default="text", show_default=True)
@click.option(
    "-o", "--output-file", type=click.Path(dir_okay=False, path_type=Path), help="Write to a file instead."
)
@reading_options()
def command(
    *,
    names: tuple[str, ...],
    max_breaks: int | None,
    max_rebilled_tokens: int | None,
    min_hit_rate: float | None,
    max_avoidable_usd: float | None,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    baseline: Path | None,
    write_baseline: Path | None,
    output_format: str,
    output_file: Path | None,
    reading: Reading,
) -> None:
    """Hold recorded requests to a policy; by default: no break that nobody decided on.

    Takes exchange logs, folders of logs and recorded sessions; without any, the
    last session. Exit code 0: the policy holds; 1: it is broken; 2: an input
    could not be read. Limits also come from [tool.prefixguard.check].

    \b
    Examples:
      prefixguard check recordings/
      prefixguard check session.jsonl --min-hit-rate 0.8 --max-avoidable-usd 0.05
      prefixguard check recordings/ --output-format github
      prefixguard check recordings/ --write-baseline prefixguard-baseline.json
      prefixguard check recordings/ --baseline prefixguard-baseline.json
    """
    rulebook = Rulebook()
    settings = configuration.read(reading.config or configuration.find(Path.cwd()))
    given = Policy(0, max_rebilled_tokens, min_hit_rate, max_avoidable_usd, select, ignore)
    policy = _policy(given, max_breaks, settings.check)
    inputs, rows = _inputs(names, reading, rulebook)
    _must_be_seen(inputs, policy)
    known = _known(baseline, settings.check, write_baseline)
    verdict = judge(inputs, policy, known)
    if write_baseline is not None:
        _keep(write_baseline, verdict)
        return
    _print(verdict, rulebook, rows, output_format, output_file)
    if not verdict.holds:
        sys.exit(1)


def _policy(given: Policy, max_breaks: int | None, settings: CheckSettings) -> Policy:
    """The options of the command line, then the configuration, then the defaults."""

    def first[T](option: T | None, configured: T | None) -> T | None:
        return option if option is not None else configured

    where = "[tool.prefixguard.check]"
    breaks = first(max_breaks, settings.max_breaks)
    rate = first(given.min_hit_rate, settings.min_hit_rate)
    if rate is not None and not 0 <= rate <= 1:
        raise InputError(f"{where}: min-hit-rate is a share between 0 and 1, not {rate}")
    return Policy(
        0 if breaks is None else breaks,
        first(given.max_rebilled_tokens, settings.max_rebilled_tokens),
        rate,
        first(given.max_avoidable_usd, settings.max_avoidable_usd),
        given.select or checked_codes(f"{where}: select", list(settings.select)),
        given.ignore or checked_codes(f"{where}: ignore", list(settings.ignore)),
    )


def _inputs(names: tuple[str, ...], reading: Reading, rulebook: Rulebook) -> tuple[list[Input], Rows]:
    """Each log by itself: what stands in two files are two runs, alike as they may be."""
    inputs: list[Input] = []
    rows: dict[str, list[int]] = {}
    options = reading.options(rulebook)
    found = [
        one
        for name in names or (LAST,)
        for one in ([str(log) for log in logs_in(Path(name))] if Path(name).is_dir() else [name])
    ]
    reading.one_log(found)
    for one in found:
        inputs.append(Input(one, reading.analysis(one, rulebook, options)))
        if Path(one).is_file():
            rows[one] = line_numbers(Path(one))
    return inputs, rows


def _must_be_seen(inputs: list[Input], policy: Policy) -> None:
    """A policy about breaks cannot hold, nor fail, where no prompt was seen. Raises InputError."""
    for one in inputs:
        sessions = one.analysis.sessions
        if policy.min_hit_rate is None and sessions and all(figures.is_unseen(each) for each in sessions):
            raise InputError(
                f"{one.name}: the record holds figures, no prompts, so that nobody can say whether a prefix "
                "broke; hold it to a hit rate, with --min-hit-rate"
            )


def _known(baseline: Path | None, settings: CheckSettings, write_to: Path | None) -> Counter[Known] | None:
    if write_to is not None:
        return None  # a new baseline holds what the old one held, if it is still there
    if baseline is not None:
        return read_baseline(baseline)
    return read_baseline(Path(settings.baseline)) if settings.baseline else None


def _keep(path: Path, verdict: Verdict) -> None:
    known = to_known(verdict.faults)
    write_baseline(path, known)
    click.echo(f"{path}: {len(verdict.faults):,} accepted, {len(known):,} different", err=True)


def _print(
    verdict: Verdict, rulebook: Rulebook, rows: Rows, output_format: str, output_file: Path | None
) -> None:
    if output_format == "text" and output_file is None:
        from prefixguard.reports.verdict.text import show

        show(verdict, rulebook.findings)
    else:
        content = written(output_format, verdict, rulebook.findings, rows)
        if output_file is None:
            click.echo(content, nl=False)
        else:
            _write(output_file, content)
    job_summary = os.environ.get(_JOB_SUMMARY)
    if output_format == "github" and job_summary:
        _write(Path(job_summary), written("markdown", verdict, rulebook.findings, rows), mode="ab")


def _write(path: Path, content: bytes, *, mode: str = "wb") -> None:
    try:
        with path.open(mode) as stream:
            stream.write(content)
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror or error}") from error
