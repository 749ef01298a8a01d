"""`prefixguard doctor`: what of a running server's settings wastes its cache."""

from __future__ import annotations

import click

from prefixguard.reports.doctor import doctor_page, doctor_to_json
from prefixguard.reports.text import console


@click.command()
@click.option("--server", required=True, metavar="URL", help="A running llama.cpp, vLLM or SGLang server.")
@click.option("--key", envvar="PREFIXGUARD_SERVER_KEY", metavar="KEY", help="The server's API key.")
@click.option("--model", metavar="PATH|NAME", help="A model file or name: which layers the model has.")
@click.option("--probe", is_flag=True, help="Evaluate a few short prompts, which take a slot of llama.cpp.")
@click.option("--format", "format_", type=click.Choice(["text", "json"]), default="text")
def command(*, server: str, key: str | None, model: str | None, probe: bool, format_: str) -> None:
    """Ask a running server for its settings and figures, and say what wastes its cache.

    Each remark names the figure on which it rests. Without --probe nothing is
    evaluated and the cache stays as it is. Exit code 0 whatever is found.

    \b
    Examples:
      prefixguard doctor --server http://127.0.0.1:8080
      prefixguard doctor --server http://127.0.0.1:8000 --probe --format json
    """
    from prefixguard.engines.doctor import check_up

    checkup = check_up(server, key=key, model=model, probe=probe)
    if format_ == "json":
        click.echo(doctor_to_json(checkup), nl=False)
    else:
        console().print(doctor_page(checkup))
