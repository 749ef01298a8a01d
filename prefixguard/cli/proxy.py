"""`prefixguard proxy`: record an agent's requests and say what becomes of the cache, turn by turn."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from prefixguard.proxy.live import Printer, Tally, ending, wants_color
from prefixguard.proxy.options import host_and_port, named_targets, need_mitmproxy, proxy_folder
from prefixguard.proxy.settings import Settings, start_recorder
from prefixguard.proxy.upstreams import parse_target

if TYPE_CHECKING:
    from prefixguard.proxy.frames import Event
    from prefixguard.proxy.link import Link


@click.command(name="proxy")
@click.option(
    "--listen",
    default="127.0.0.1:8787",
    show_default=True,
    help="Address to listen on; port 0 for any free one.",
)
@click.option("--upstream", metavar="URL", help="Send every request there (it may hold a path prefix).")
@click.option(
    "--mode",
    type=click.Choice(["base-url", "forward"]),
    default="base-url",
    show_default=True,
    help="base-url: clients call us in place of the API. forward: clients use us as HTTPS proxy.",
)
@click.option("--store", metavar="PATH|URL", help="Where to record (or PREFIXGUARD_STORE).")
@click.option("--to", multiple=True, metavar="NAME=URL", help="One more upstream, reached as /to/NAME/...")
@click.option(
    "--open-host", multiple=True, metavar="HOST", help="One more host whose traffic forward mode records."
)
@click.option(
    "--allow-host", multiple=True, metavar="NAME", help="One more name under which clients may call us."
)
@click.option(
    "--upstream-ca",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="PEM file of the roots to check upstreams by, in place of the system's.",
)
@click.option(
    "--format", "form", type=click.Choice(["text", "json"]), default="text", help="json: one event a line."
)
@click.option("-q", "--quiet", is_flag=True, help="Print no line per turn.")
def command(
    listen: str,
    upstream: str | None,
    mode: str,
    store: str | None,
    to: tuple[str, ...],
    open_host: tuple[str, ...],
    allow_host: tuple[str, ...],
    upstream_ca: Path | None,
    form: str,
    quiet: bool,
) -> None:
    """Record an agent's requests: point its base URL here.

    \b
    Examples:
      prefixguard proxy
      prefixguard proxy --upstream http://127.0.0.1:8080
      prefixguard proxy --mode forward
    """
    host, port = host_and_port(listen)
    target = parse_target(upstream) if upstream else None
    names = named_targets(to)
    need_mitmproxy("proxy")
    settings = Settings(
        folder=proxy_folder(),
        store=store,
        host=host,
        port=port,
        mode="forward" if mode == "forward" else "base-url",
        upstream=target,
        names=names,
        hosts=open_host,
        host_names=allow_host,
        upstream_ca=upstream_ca,
    )
    printer = Printer(sys.stdout, color=wants_color(sys.stdout), json=form == "json")
    tally = Tally()

    def on_event(event: Event) -> None:
        tally.add(event)
        if not quiet:
            printer(event)

    link = start_recorder(settings, on_event)
    try:
        from prefixguard.proxy.loop import run

        run(_serve(settings, link, printer, tally, json=form == "json"))
    finally:
        link.close(stall_s=1.0, finish_s=1.0)


async def _serve(settings: Settings, link: Link, printer: Printer, tally: Tally, *, json: bool) -> None:
    from prefixguard.proxy.serve import Proxy

    proxy = Proxy(settings, link)
    loop = asyncio.get_running_loop()
    stopping = asyncio.Event()
    signals = 0

    def stop() -> None:
        nonlocal signals
        signals += 1
        if signals > 2:
            os._exit(130)
        stopping.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop)
    await proxy.start()
    variables = _variables(proxy.url, settings)
    if json:
        opening = {"type": "listening", "url": proxy.url, "store": proxy.store_name, "pid": os.getpid()}
        printer.line(msgspec.json.encode({**opening, "environment": variables}).decode())
    else:
        for line in _opening(proxy.url, proxy.store_name, variables):
            printer.line(line)
    await stopping.wait()
    await proxy.stop(
        on_wait=lambda n: (
            printer.line(f"waiting for {n} running request{'s' * (n != 1)}") if not json else None
        )
    )
    health = proxy.health()
    stopped = msgspec.json.encode({"type": "stopped", **health}).decode()
    printer.close([stopped] if json else ending(tally, health))


def _variables(url: str, settings: Settings) -> dict[str, str]:
    from prefixguard.proxy.authority import ensure_authority, write_bundle
    from prefixguard.proxy.environment import base_url_variables, forward_variables
    from prefixguard.proxy.upstreams import read_upstreams

    if settings.mode == "base-url":
        return base_url_variables(read_upstreams(), url)
    folder = settings.folder / "authority"
    certificate = ensure_authority(folder)
    bundle = write_bundle(folder, certificate, settings.environ)
    return forward_variables(url, bundle, certificate, settings.environ)


def _opening(url: str, store: str, variables: dict[str, str]) -> list[str]:
    exports = [f"  export {name}={value}" for name, value in variables.items()]
    return [
        f"listening on {url}",
        f"recording to {store}",
        "point your agent here:",
        *exports,
        "stop with Ctrl-C",
        "",
    ]
