"""Plays the demo: starts a server and a proxy, lets the agent talk through them twice, analyses both."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import inspect
import tempfile
import threading
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prefixguard.analysis import Fold
from prefixguard.engines.binaries import packaged_model
from prefixguard.engines.demo import agent
from prefixguard.engines.local import LaunchedServer, launch
from prefixguard.errors import MissingExtraError, ServerError
from prefixguard.finding import SourceLine
from prefixguard.rulebook import Rulebook
from prefixguard.store import Store
from prefixguard.turn import Session

if TYPE_CHECKING:
    from openai import OpenAI

    from prefixguard.proxy.serve import Proxy

TEMPLATE = Path(__file__).parents[1] / "templates" / "chatml-tools.jinja"
_CONTEXT = 4096
_NEEDED = ("openai", "mitmproxy.master")
_RUNS = (("clock", agent.ClockAgent), ("mended", agent.MendedAgent))
_SECONDS_FOR_A_REPLY = 120.0


@dataclass(frozen=True, slots=True)
class Stage:
    """Where the demo is: `done` of `total` steps, and what is done now."""

    done: int
    total: int
    doing: str


@dataclass(frozen=True, slots=True)
class Demo:
    """What the demo found.

    clock, mended: the two runs, analysed. server, program: what served them.
    fault: the line of the agent's source that has the fault. store: where the
    record was kept, or None. seconds: how long it all took.
    """

    clock: Session
    mended: Session
    model: str
    server: str
    program: str
    skipped: tuple[str, ...]
    fault: SourceLine
    store: str | None
    seconds: float


def play(
    store: str | None = None,
    *,
    model: str | Path | None = None,
    binary: str | Path | None = None,
    on_stage: Callable[[Stage], None] = lambda _: None,
) -> Demo:
    """Plays both runs. store: where to record; None for a record that is thrown away.

    model: a GGUF file in the place of the packaged one. Raises
    MissingExtraError when something is not installed, ServerError when no
    server can be started.
    """
    began = time.monotonic()
    for module in _NEEDED:
        if importlib.util.find_spec(module.partition(".")[0]) is None:
            raise MissingExtraError("demo", "demo")
    chosen = Path(model) if model is not None else packaged_model()
    if chosen is None:
        raise MissingExtraError("demo", "demo")
    with tempfile.TemporaryDirectory(prefix="prefixguard-demo-") as folder:
        place = store or str(Path(folder) / "record.db")
        # A record that cannot be made is said before anything is waited for.
        Store.open(place).close()
        stages = _Stages(on_stage)
        stages.next("starting a model server on the CPU")
        # Both take a second or two to import: time in which the model is loaded.
        threading.Thread(target=_import_all, daemon=True).start()
        with launch(chosen, binary=binary, template=TEMPLATE, context=_CONTEXT) as server:
            names = [f"demo-{title}-{int(time.time())}" for title, _ in _RUNS]
            _run(_talk(server, Path(folder), place, names, stages))
            stages.next("analysing both runs")
            clock, mended = (_analysed(server, place, name) for name in names)
            return Demo(
                clock=clock,
                mended=mended,
                model=chosen.stem.partition(".")[0],
                server=server.engine.name,
                program=server.program,
                skipped=server.skipped,
                fault=_fault(),
                store=store,
                seconds=time.monotonic() - began,
            )


class _Stages:
    """Counts steps: the server, every question of both runs, the analysis."""

    def __init__(self, tell: Callable[[Stage], None]) -> None:
        self._tell = tell
        self._done = 0

    def next(self, doing: str) -> None:
        self._tell(Stage(self._done, 2 + len(_RUNS) * len(agent.QUESTIONS), doing))
        self._done += 1


def _import_all() -> None:
    for module in _NEEDED:
        with contextlib.suppress(ImportError):
            importlib.import_module(module)


def _run(main: Coroutine[Any, Any, None]) -> None:
    from prefixguard.proxy.loop import run

    run(main)


async def _talk(server: LaunchedServer, folder: Path, store: str, names: list[str], stages: _Stages) -> None:
    """Both conversations, one after the other, through one proxy."""
    from prefixguard.proxy.serve import Proxy
    from prefixguard.proxy.settings import Settings, start_recorder
    from prefixguard.proxy.upstreams import parse_target

    settings = Settings(folder=folder, store=store, port=0, upstream=parse_target(server.url))
    link = start_recorder(settings)
    proxy = Proxy(settings, link)
    try:
        await proxy.start()
        for name, (title, kind) in zip(names, _RUNS, strict=True):
            server.engine.clear()
            await _in_thread(partial(_converse, kind, title, name, proxy, stages))
    finally:
        await proxy.stop()
        link.close(stall_s=1.0, finish_s=1.0)
    lost = proxy.lost()
    if lost:
        raise ServerError(f"the demo lost some of its own recording: {dict(lost)}")


def _converse(kind: type[agent.Agent], title: str, name: str, proxy: Proxy, stages: _Stages) -> None:
    talker = kind(_client(proxy.url, name))
    for number, question in enumerate(agent.QUESTIONS, start=1):
        what = "the agent with a clock" if title == "clock" else "the agent mended"
        stages.next(f"{what}: question {number} of {len(agent.QUESTIONS)}")
        talker.ask(question)


def _client(url: str, session: str) -> OpenAI:
    from openai import OpenAI

    return OpenAI(
        base_url=f"{url}/v1",
        api_key="none-needed",
        timeout=_SECONDS_FOR_A_REPLY,
        default_headers={"x-prefixguard-session": session},
    )


async def _in_thread(work: Callable[[], None]) -> None:
    """Runs `work` in a thread that does not keep the process alive: Ctrl-C ends the demo at once."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()

    def settle(error: BaseException | None) -> None:
        if done.cancelled():
            return
        if error is None:
            done.set_result(None)
        else:
            done.set_exception(error)

    def body() -> None:
        problem: BaseException | None = None
        try:
            work()
        except Exception as error:  # noqa: BLE001  handed on to the one who waits
            problem = error
        if not loop.is_closed():
            loop.call_soon_threadsafe(settle, problem)

    threading.Thread(target=body, name="prefixguard-demo-agent", daemon=True).start()
    await done


def _analysed(server: LaunchedServer, store: str, name: str) -> Session:
    """One run, with the ids that the server evaluated; they are kept with the record."""
    fold = Fold(Rulebook())
    with Store.open(store, create=False) as record:
        for exchange in list(record.exchanges(name)):
            rendered = server.engine.render(exchange)
            if rendered is not None:
                record.save_rendered(exchange.extra["id"].decode().strip('"'), rendered)
            fold.step(replace(exchange, rendered=rendered))
    (session,) = fold.result().sessions
    return session


def _fault() -> SourceLine:
    """Where the agent reads the clock into its system prompt."""
    lines, first = inspect.getsourcelines(agent.ClockAgent)
    row = next(first + i for i, line in enumerate(lines) if "datetime.now" in line)
    return SourceLine(str(Path(agent.__file__)), row)
