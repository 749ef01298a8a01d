"""`prefixguard lint`: find cache-breaking code before it runs."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from prefixguard.cli import completing
from prefixguard.errors import InputError


def _codes(_ctx: click.Context, _param: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(code.strip().upper() for value in values for code in value.split(",") if code.strip())


@click.command()
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--output-format",
    type=click.Choice(("text", "json", "sarif", "github", "junit")),
    default="text",
    show_default=True,
    help="How findings are printed.",
)
@click.option(
    "--output-file",
    type=click.Path(path_type=Path),
    help="Write the findings there instead of printing them.",
)
@click.option(
    "--select",
    multiple=True,
    shell_complete=completing.codes,
    callback=_codes,
    help="Only these codes, or beginnings of codes: PG1,PG301.",
)
@click.option(
    "--ignore", multiple=True, shell_complete=completing.codes, callback=_codes, help="Not these codes."
)
@click.option(
    "--fail-on",
    type=click.Choice(("error", "warning", "info", "never")),
    help="Exit with 1 from this severity on. [default: error]",
)
@click.option("--baseline", type=click.Path(path_type=Path), help="Accept the findings that this file lists.")
@click.option(
    "--write-baseline",
    type=click.Path(path_type=Path),
    help="Write the present findings to this file as accepted.",
)
@click.option("--diff", metavar="REV", help="Only findings on lines that changed since this git revision.")
@click.option("--fix", is_flag=True, help="Make the mends that only fix an order (sort).")
@click.option(
    "--explain",
    metavar="CODE",
    shell_complete=completing.codes,
    help="Say what a code means, with examples, and stop.",
)
@click.option("--statistics", is_flag=True, help="Count findings by code instead of listing them.")
@click.option(
    "--session",
    type=click.Path(path_type=Path),
    help="An exchange log: link its breaks to the lines that made them.",
)
@click.option(
    "--server",
    metavar="NAME",
    shell_complete=completing.cache_rules,
    help="With --session: the cache rule to judge by, e.g. vllm.",
)
@click.option(
    "--config", type=click.Path(path_type=Path), help="The pyproject.toml to read. [default: the nearest one]"
)
@click.option("--no-cache", is_flag=True, help="Read every file anew.")
@click.option("--jobs", type=click.IntRange(0), default=0, help="Processes to use. [default: one per core]")
def command(
    paths: tuple[Path, ...],
    output_format: str,
    output_file: Path | None,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    fail_on: str | None,
    baseline: Path | None,
    write_baseline: Path | None,
    diff: str | None,
    fix: bool,
    explain: str | None,
    statistics: bool,
    session: Path | None,
    server: str | None,
    config: Path | None,
    no_cache: bool,
    jobs: int,
) -> None:
    """Find code that breaks the prefix which a model server has cached.

    Reads Python, TypeScript, JavaScript and notebooks. Exit code 0: nothing at
    or above --fail-on; 1: findings; 2: something could not be analysed.

    \b
    Examples:
      prefixguard lint src/
      prefixguard lint . --output-format sarif --output-file lint.sarif
      prefixguard lint . --diff origin/main
      prefixguard lint --explain PG101
    """
    from prefixguard.lint import baseline as baselines
    from prefixguard.lint import config as settings
    from prefixguard.lint.formats import printed
    from prefixguard.lint.formats.explain import explained
    from prefixguard.lint.formats.statistics import counted
    from prefixguard.lint.run import Options, lint
    from prefixguard.rulebook import Rulebook

    rulebook = Rulebook()
    if explain is not None:
        click.echo(explained(explain.strip().upper(), rulebook))
        return
    where = list(paths) or [Path()]
    chosen = settings.read(config or settings.find(where[0]))
    report = lint(
        where, Options(chosen, select, ignore, diff, None if no_cache else _cache(), jobs), rulebook
    )
    if session is not None:
        from prefixguard.lint.session import confirm

        breaks = confirm(report, session, where, rulebook, server)
        if not breaks:
            click.echo(
                f"{session}: no break under the cache rule in force; --server names another one", err=True
            )
    if fix:
        from prefixguard.lint.fixes import applied

        made, left = applied(report.project, report.findings)
        click.echo(f"Made {made} fix{'es' if made != 1 else ''}.", err=True)
        for path in left:
            click.echo(f"{path}: left as it was, because the fix would not parse", err=True)
        report = lint(where, Options(chosen, select, ignore, diff, None, jobs), rulebook)
    known = baseline or (Path(chosen.baseline) if chosen.baseline else None)
    if write_baseline is not None:
        baselines.write(write_baseline, report)
        click.echo(f"Wrote {len(report.findings)} findings to {write_baseline}.", err=True)
        return
    if known is not None:
        baselines.apply(known, report)
    text = counted(report, rulebook) if statistics else printed(output_format, report, rulebook)
    if output_file is not None:
        try:
            output_file.write_text(text + "\n", encoding="utf-8")
        except OSError as error:
            raise InputError(f"{output_file}: cannot be written: {error.strerror or error}") from error
    else:
        click.echo(text)
    if output_format != "text" or statistics:
        for problem in report.problems:
            click.echo(f"{problem.path}:{problem.row}:{problem.column}: {problem.message}", err=True)
        for remark in report.remarks:
            click.echo(
                f"{report.project.files[remark.file].path}:{remark.row}:{remark.column}: {remark.message}",
                err=True,
            )
    sys.exit(_exit_code(report, fail_on or chosen.fail_on))


def _exit_code(report: object, fail_on: str) -> int:
    from prefixguard.finding import SEVERITIES
    from prefixguard.lint.run import Report

    assert isinstance(report, Report)
    if report.problems:
        return 2
    worst = report.worst()
    if fail_on == "never" or worst is None:
        return 0
    return int(SEVERITIES.index(worst) >= SEVERITIES.index(fail_on))


def _cache() -> Path | None:
    """Where facts are kept between runs."""
    given = os.environ.get("PREFIXGUARD_CACHE")
    if given == "":
        return None
    from platformdirs import user_cache_path

    return Path(given) if given else user_cache_path("prefixguard") / "lint"
