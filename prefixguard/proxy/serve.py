"""Puts the proxy together and runs it: mitmproxy's core, our addons, the link to the recorder.

The caller gives settings and a link to the recorder; `cli/proxy.py` and `cli/run.py` are
the two callers.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from prefixguard import __version__
from prefixguard.errors import InputError
from prefixguard.proxy.addons import SteadyAddons
from prefixguard.proxy.authority import ensure_authority, roots
from prefixguard.proxy.frames import Refused
from prefixguard.proxy.link import Link
from prefixguard.proxy.memory import keep_freed_memory
from prefixguard.proxy.metrics import Metrics
from prefixguard.proxy.mitm import Core, DisableH2C, Master, NextLayer, Options, Proxyserver, TlsConfig
from prefixguard.proxy.routing import Routing
from prefixguard.proxy.settings import Settings
from prefixguard.proxy.tap import Tap
from prefixguard.proxy.upstreams import Router, read_upstreams

# A model may think for long before its first byte; a client that gives up closes the connection itself.
_IDLE_SECONDS = 24 * 3600
_READY_SECONDS = 20.0


class _Started:
    """mitmproxy addon: says when the servers are up."""

    def __init__(self) -> None:
        self.event = asyncio.Event()

    def running(self) -> None:
        self.event.set()


class _Listener(logging.Handler):
    """mitmproxy's own warnings and errors: counted and kept as one line, never printed over an agent."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.count = 0
        self.last = ""

    def emit(self, record: logging.LogRecord) -> None:
        self.count += 1
        self.last = record.getMessage().partition("\n")[0]


class Proxy:
    """One running proxy. mitmproxy keeps globals, so there is one at a time in a process."""

    def __init__(self, settings: Settings, link: Link) -> None:
        self.settings = settings
        self.link = link
        self.metrics = Metrics()
        link.listen(self.metrics.add)
        self.router = Router(
            read_upstreams(), fixed=settings.upstream, names=settings.names, hosts=settings.hosts
        )
        self.routing = Routing(
            self.router,
            self.health,
            metrics=lambda: self.metrics.page(self.lost()),
            forward=settings.mode == "forward",
            listen_host=settings.host,
            names=settings.host_names,
            environ=settings.environ,
        )
        self.tap = Tap(self.link.offer, settings.agent)
        self.since = time.time()
        self.store_name = settings.store or ""
        self._log = _Listener()
        self._master: Master | None = None
        self._server: Proxyserver | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def address(self) -> str:
        """host:port to call us at."""
        host = self.settings.host
        if host in ("0.0.0.0", "", "::"):  # noqa: S104
            host = "127.0.0.1"
        return f"[{host}]:{self.routing.port}" if ":" in host else f"{host}:{self.routing.port}"

    @property
    def url(self) -> str:
        """The base URL, without a path."""
        return f"http://{self.address}"

    async def start(self) -> None:
        """Listen, once the store is open. Raises InputError when the address or the store cannot be used."""
        certificate = self.settings.upstream_ca or roots(self.settings.environ)
        folder = self.settings.folder / "authority"
        ensure_authority(folder)
        await self._listen(folder, certificate)
        answer = await asyncio.to_thread(self.link.wait_ready, _READY_SECONDS)
        if isinstance(answer, Refused):
            raise InputError(answer.message)
        if answer is not None:
            self.store_name = answer.store
            self.tap.salt = answer.salt or self.tap.salt

    async def _listen(self, folder: Path, certificate: Path) -> None:
        _quiet(self._log)
        keep_freed_memory()
        started = _Started()
        chosen = Options(
            mode=["regular"],
            listen_host=self.settings.host,
            listen_port=self.settings.port,
            confdir=str(folder),
            ssl_verify_upstream_trusted_ca=str(certificate),
            tcp_timeout=_IDLE_SECONDS,
        )
        self._master = master = Master(chosen)
        master.addons = SteadyAddons(master)
        self._server = server = Proxyserver()  # type: ignore[no-untyped-call]
        master.addons.add(
            Core(),
            DisableH2C(),
            server,
            NextLayer(),
            TlsConfig(),
            self.routing,
            self.tap,
            started,
        )
        if self.settings.mode == "forward":
            # Everything else passes through as a tunnel that we do not look into.
            chosen.update(allow_hosts=list(self.router.host_patterns))  # type: ignore[no-untyped-call]
        self._task = asyncio.create_task(master.run())
        waiting = asyncio.create_task(started.event.wait())
        await asyncio.wait((self._task, waiting), return_when=asyncio.FIRST_COMPLETED)
        if self._task.done():
            waiting.cancel()
            await self._task
        addresses = server.listen_addrs()
        if not addresses:
            reason = next((s.last_exception for s in server.servers if s.last_exception), None)
            master.shutdown()  # type: ignore[no-untyped-call]
            await self._task
            raise InputError(f"cannot listen on {self.settings.host}:{self.settings.port}: {_reason(reason)}")
        self.routing.port = addresses[0][1]

    async def stop(self, grace_s: float = 5.0, on_wait: Callable[[int], None] = lambda _: None) -> None:
        """End it: no new connections, `grace_s` seconds for running requests, then record all and close.

        on_wait: told how many requests are waited for.
        """
        master, server = self._master, self._server
        if master is not None and server is not None and self._task is not None:
            await server.servers.update([])
            if self.tap.open and grace_s:
                on_wait(len(self.tap.open))
                until = time.monotonic() + grace_s
                while self.tap.open and time.monotonic() < until:  # noqa: ASYNC110  once, at the end
                    await asyncio.sleep(0.02)
            self.tap.flush()
            master.shutdown()  # type: ignore[no-untyped-call]
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        await asyncio.to_thread(self.link.close)
        logging.getLogger("mitmproxy").removeHandler(self._log)

    def lost(self) -> Counter[str]:
        """Exchanges that were not recorded, by reason."""
        return Counter(self.tap.lost) + Counter(self.link.state().lost)

    def health(self) -> dict[str, object]:
        """The values of the health page."""
        link = self.link.state()
        return {
            "version": __version__,
            "mode": self.settings.mode,
            "seconds": round(time.time() - self.since, 1),
            "exchanges": self.tap.ended,
            "recorded": link.stored,
            "queued": link.queued,
            "queued_bytes": link.queued_bytes,
            "running": len(self.tap.open),
            "lost": dict(self.lost()),
            "unknown_api": self.routing.counts["unknown_api"],
            "side_traffic": self.routing.counts["side_traffic"],
            "refused": self.routing.counts["refused"],
            "sent_again": self.tap.sent_again,
            "recorder": {
                "alive": link.alive,
                "pid": link.pid,
                "restarts": link.restarts,
                "last_words": link.last_words,
            },
            "warnings": self._log.count,
            "last_warning": self._log.last,
        }


def _quiet(handler: logging.Handler) -> None:
    logger = logging.getLogger("mitmproxy")
    logger.setLevel(logging.WARNING)
    logger.propagate = False
    logger.addHandler(handler)


def _reason(error: BaseException | None) -> str:
    if isinstance(error, OSError) and error.errno is not None:
        return f"{os.strerror(error.errno).lower()}; choose another with --listen"
    return str(error) if error else "unknown reason"
