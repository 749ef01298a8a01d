"""`prefixguard ui`: the report's pages, live, in a browser on this machine."""

from __future__ import annotations

import importlib.util
import os
import secrets
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from prefixguard.cli import completing
from prefixguard.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    from prefixguard.ui.feed import Feed


@click.command()
@click.argument("names", nargs=-1, shell_complete=completing.sources, metavar="[SESSION|LOG]...")
@click.option(
    "--listen",
    default="127.0.0.1:8788",
    show_default=True,
    help="Address to listen on; port 0 for any free one.",
)
@click.option(
    "--open/--no-open",
    "open_",
    default=None,
    help="Open a browser; by default on a terminal of a desktop.",
)
@click.option(
    "-n",
    "--limit",
    type=click.IntRange(min=1),
    default=200,
    show_default=True,
    help="How many sessions of the record, the newest; others appear when they go on.",
)
@click.option("--all", "everything", is_flag=True, help="All of them.")
@click.option("--store", metavar="PATH|URL", help="The record to watch (or PREFIXGUARD_STORE).")
@click.option(
    "--server",
    metavar="NAME",
    shell_complete=completing.cache_rules,
    help="The cache rule to judge by, e.g. anthropic or vllm:block=16.",
)
@click.option(
    "--chat-template",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The server's Jinja chat template.",
)
@click.option("--tokenizer", metavar="FILE", help="A tokenizer.json that counts everything.")
@click.option(
    "--allow-host", multiple=True, metavar="NAME", help="One more name under which browsers may call us."
)
def command(
    *,
    names: tuple[str, ...],
    listen: str,
    open_: bool | None,
    limit: int,
    everything: bool,
    store: str | None,
    server: str | None,
    chat_template: Path | None,
    tokenizer: str | None,
    allow_host: tuple[str, ...],
) -> None:
    """Watch recorded sessions, and those being recorded, in a browser.

    Without names, the sessions of the record. Nothing leaves this machine, and
    nothing can be changed from the pages.

    \b
    Examples:
      prefixguard ui
      prefixguard ui last
      prefixguard ui before.jsonl after.jsonl --no-open
      prefixguard ui --listen 127.0.0.1:0 --store record.sqlite
    """
    from prefixguard.proxy.options import host_and_port

    host, port = host_and_port(listen)
    for module in ("starlette", "uvicorn"):
        if importlib.util.find_spec(module) is None:
            raise MissingExtraError("ui", "ui")

    from prefixguard import __version__
    from prefixguard.analysis import Fold
    from prefixguard.cli.sources import chat_template_of, standing_options
    from prefixguard.reports.html import overview
    from prefixguard.rulebook import Rulebook
    from prefixguard.ui.app import make_app
    from prefixguard.ui.desk import Desk
    from prefixguard.ui.guard import Gate
    from prefixguard.ui.serve import Server, bind, serve
    from prefixguard.ui.stream import Hub

    rulebook = Rulebook()
    options = standing_options(rulebook, server)
    if chat_template is not None or tokenizer is not None:
        from prefixguard.tokens.counter import FileTokenizer

        options = replace(
            options,
            template=chat_template_of(chat_template),
            tokenizer=FileTokenizer(tokenizer) if tokenizer else None,
        )
    Fold(rulebook, options)  # a wrong option is said here, and not on a page
    listener = bind(host, port)
    port = listener.getsockname()[1]
    hub, key, ticket = Hub(), secrets.token_urlsafe(18), secrets.token_urlsafe(18)
    feed = _feed(names, store, None if everything else limit)
    desk = Desk(feed, lambda: Fold(rulebook, options), rulebook.findings, hub)
    prices = options.pricer.prices if options.pricer else None
    opens = _on_a_desktop() if open_ is None else open_
    gate = Gate.of(key, host, allow_host, ticket if opens else "")
    app = make_app(desk, hub, gate, overview([], rulebook.findings, prices, __version__))
    called = "127.0.0.1" if host in ("0.0.0.0", "::", "") else host  # noqa: S104
    address = f"http://{f'[{called}]' if ':' in called else called}:{port}"

    def say() -> None:
        for remark in feed.remarks:
            click.echo(remark, err=True)
        click.echo(f"watching {feed.name}\nopen {address}/#key={key}\nstop with Ctrl-C")
        if not _is_local(host):
            click.echo(
                f"warning: {host} can be reached from other machines, and what passes is not encrypted",
                err=True,
            )
        if opens:
            click.launch(f"{address}/#ticket={ticket}")

    serve(Server(app, hub, say), listener)


def _feed(names: tuple[str, ...], store: str | None, newest: int | None) -> Feed:
    """What to watch: the logs among the names, and the sessions of the record; all of them without names."""
    from prefixguard.ui.feed import Feeds
    from prefixguard.ui.logs import LogFeed
    from prefixguard.ui.watch import RecordFeed

    logs = [name for name in names if name == "-" or Path(name).exists()]
    sessions = [name for name in names if name not in logs]
    feeds: list[Feed] = [LogFeed(name) for name in dict.fromkeys(logs)]
    if sessions or not logs:
        missing = next((name for name in sessions if Path(name).suffix or "/" in name), None)
        if missing is not None:
            raise InputError(f"{missing}: no such file")
        feeds.append(RecordFeed(store, sessions, None if sessions else newest))
    return feeds[0] if len(feeds) == 1 else Feeds(feeds)


def _is_local(host: str) -> bool:
    from prefixguard.proxy.hosts import is_loopback

    return is_loopback(host)


def _on_a_desktop() -> bool:
    """Whether somebody sits here who would see a browser."""
    if not sys.stdout.isatty() or os.environ.get("SSH_CONNECTION"):
        return False
    return sys.platform in ("darwin", "win32") or bool(
        os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    )
