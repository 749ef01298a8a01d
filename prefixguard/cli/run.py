"""`prefixguard run -- CMD`: an agent behind the proxy, its terminal untouched, and the report at the end."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
from typing import TYPE_CHECKING, Literal

import click

from prefixguard.errors import InputError
from prefixguard.proxy.agents import plan_run, read_agents
from prefixguard.proxy.live import Tally, ending
from prefixguard.proxy.options import host_and_port, named_targets, need_mitmproxy, proxy_folder
from prefixguard.proxy.settings import Settings, start_recorder
from prefixguard.proxy.upstreams import parse_target, read_upstreams

if TYPE_CHECKING:
    from collections.abc import Sequence

    from prefixguard.proxy.agents import Plan
    from prefixguard.proxy.link import Link

_FORWARDED = ("SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2")
_FROM_TERMINAL = ("SIGINT", "SIGQUIT")
_REPORTED_SESSIONS = 3


@click.command(
    name="run", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False}
)
@click.option("--upstream", metavar="URL", help="Send every request there (it may hold a path prefix).")
@click.option(
    "--mode",
    type=click.Choice(["base-url", "forward"]),
    help="How the agent is brought to the proxy; by default what fits the agent.",
)
@click.option(
    "--listen",
    metavar="HOST:PORT",
    help="Where the proxy listens, for an agent whose settings name the address; by default any free port.",
)
@click.option("--store", metavar="PATH|URL", help="Where to record (or PREFIXGUARD_STORE).")
@click.option("--to", multiple=True, metavar="NAME=URL", help="One more upstream, reached as /to/NAME/...")
@click.option(
    "--open-host", multiple=True, metavar="HOST", help="One more host whose traffic forward mode records."
)
@click.option("--no-report", is_flag=True, help="Print only the summary at the end.")
@click.argument("words", nargs=-1, type=click.UNPROCESSED, required=True, metavar="-- COMMAND [ARGUMENTS]...")
def command(
    *,
    upstream: str | None,
    mode: Literal["base-url", "forward"] | None,
    listen: str | None,
    store: str | None,
    to: tuple[str, ...],
    open_host: tuple[str, ...],
    no_report: bool,
    words: tuple[str, ...],
) -> None:
    """Run an agent behind the proxy and report on it at the end.

    The exit code is the agent's own.

    \b
    Examples:
      prefixguard run -- claude
      prefixguard run -- codex exec "add a test for the parser"
      prefixguard run --upstream http://127.0.0.1:8080 -- python agent.py
    """
    need_mitmproxy("run")
    if shutil.which(words[0]) is None:
        raise InputError(f"{words[0]}: no such command")
    target = parse_target(upstream) if upstream else None
    host, port = host_and_port(listen) if listen else ("127.0.0.1", 0)
    plan = plan_run(
        words,
        os.environ,
        agents=read_agents(),
        rules=read_upstreams(),
        upstream=target,
        mode=mode,
        pointed=bool(listen),
    )
    settings = Settings(
        folder=proxy_folder(),
        store=store,
        host=host,
        port=port,
        mode=plan.mode,
        upstream=target,
        names={**named_targets(to), **plan.names},
        hosts=open_host,
        agent=plan.agent.name if plan.agent else None,
    )
    tally = Tally()
    link = start_recorder(settings, tally.add)
    try:
        from prefixguard.proxy.loop import run

        code = run(_run(settings, plan, link, tally))
    finally:
        link.close(stall_s=1.0, finish_s=1.0)
    if not no_report and tally.turns:
        _report(tally, store)
    sys.exit(code)


async def _run(settings: Settings, plan: Plan, link: Link, tally: Tally) -> int:
    from prefixguard.proxy.authority import ensure_authority, write_bundle
    from prefixguard.proxy.serve import Proxy

    proxy = Proxy(settings, link)
    await proxy.start()
    certificate = ensure_authority(settings.folder / "authority")
    bundle = write_bundle(settings.folder / "authority", certificate, os.environ)
    words = plan.command(proxy.url)
    environ = {**os.environ, **plan.environ(proxy.url, bundle, certificate)}
    _say(f"recording {words[0]} through {proxy.url} ({plan.mode}) to {proxy.store_name}")
    code = 127
    try:
        code = await _agent(words, environ)
    finally:
        await proxy.stop(grace_s=1.0)
        for line in ending(tally, proxy.health()):
            _say(line)
    return code


async def _agent(words: Sequence[str], environ: dict[str, str]) -> int:
    """Run the agent on our own terminal; its exit code, 128 + n when signal n ended it."""
    loop = asyncio.get_running_loop()
    process: asyncio.subprocess.Process | None = None
    early: list[int] = []

    def forward(number: int) -> None:
        if process is None:
            early.append(number)
        elif process.returncode is None:
            process.send_signal(number)

    def from_terminal(number: int) -> None:
        # The terminal sends Ctrl-C to the agent itself; only a signal meant for us alone is handed on.
        if not _in_foreground():
            forward(number)

    for names, handler in ((_FORWARDED, forward), (_FROM_TERMINAL, from_terminal)):
        for name in names:
            if hasattr(signal, name):
                number = getattr(signal, name)
                loop.add_signal_handler(number, handler, number)
    try:
        process = await asyncio.create_subprocess_exec(*words, env=environ)
    except OSError as error:
        raise InputError(f"{words[0]}: cannot be run: {error.strerror or error}") from error
    for number in early:
        process.send_signal(number)
    code = await process.wait()
    return code if code >= 0 else 128 - code


def _in_foreground() -> bool:
    try:
        return os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()
    except (OSError, ValueError, AttributeError):
        return False


def _say(text: str) -> None:
    click.echo(f"prefixguard: {text}", err=True)


def _report(tally: Tally, store: str | None) -> None:
    from prefixguard.cli.sources import Reading, analysed
    from prefixguard.reports.text import console, render_report
    from prefixguard.rulebook import Rulebook

    most = sorted((name for name in tally.sessions if name), key=lambda name: -tally.sessions[name])
    if not most:
        return
    try:
        analysis = analysed(most[:_REPORTED_SESSIONS], Reading(store=store))
        console(sys.stderr).print(render_report(analysis, Rulebook().findings))
    except Exception as error:  # noqa: BLE001  the agent's exit code must come through
        _say(f"the report could not be made: {error}; try `prefixguard report`")
        return
    if len(most) > _REPORTED_SESSIONS:
        _say(f"{len(most) - _REPORTED_SESSIONS} more sessions were recorded: `prefixguard sessions`")
