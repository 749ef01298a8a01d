"""`python -m docs.site`: builds the site, or renews the generated pages of docs/."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from docs.site.assemble import ADDRESS
from docs.site.build import WITHOUT_GROUP, build, installed
from docs.site.contents import ROOT
from docs.site.generated import renew


@click.group(invoke_without_command=True)
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), default=ROOT / "build/site", help="The folder to fill."
)
@click.option("--address", default=ADDRESS, help="Where the site will stand.")
@click.pass_context
def main(context: click.Context, output: Path, address: str) -> None:
    """Builds the documentation's site; open its index.html in a browser."""
    if context.invoked_subcommand:
        return
    if not installed():
        raise click.ClickException(WITHOUT_GROUP)
    status = build(output, address=address.rstrip("/"))
    if not status:
        click.echo(f"{output}/index.html")
    sys.exit(status)


@main.command()
def pages() -> None:
    """Renews the pages of docs/ that are made: commands, caches, findings, the first page."""
    for path in renew():
        click.echo(f"wrote {path.relative_to(ROOT)}")


main(prog_name="python -m docs.site")
