"""Launches a llama.cpp server on this machine for a measurement, and ends it for certain."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from prefixguard.engines.binaries import Candidate, candidates
from prefixguard.engines.client import JsonClient
from prefixguard.engines.launched import Launched, free_port
from prefixguard.engines.llamacpp import LlamaCpp
from prefixguard.engines.process import ServerProcess, wait_until
from prefixguard.errors import ServerError

_NONE_FOUND = "no llama.cpp server is installed: install prefixguard[demo], or put `llama-server` on PATH"
_ATTEMPTS_AT_A_PORT = 3
_MOST_THREADS = 8
"""More do not make a small model faster, and wait for each other."""


class LaunchedServer(Launched[LlamaCpp]):
    """A llama.cpp server of our own.

    program: which program serves. skipped: what was tried first and why it did not run.
    """

    def __init__(
        self, engine: LlamaCpp, process: ServerProcess, program: str, skipped: tuple[str, ...]
    ) -> None:
        super().__init__(engine, process)
        self.program = program
        self.skipped = skipped


def launch(
    model: str | Path,
    *,
    binary: str | Path | Candidate | None = None,
    template: str | Path | None = None,
    context: int = 4096,
    slots: int = 1,
    threads: int | None = None,
    options: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
    patience: float = 120.0,
) -> LaunchedServer:
    """Starts a server on a free loopback port and waits until it has loaded `model`.

    The host cache is off and, unless asked for otherwise, there is one slot, so
    that a miss is the prompt's doing. template: a chat template file in the
    place of the model's own. threads: for prefill and for generation; default:
    the processors of this process, eight at most. options: further options of
    llama-server. patience: seconds to wait for the model. Raises ServerError when no program here can do it.
    """
    for path, what in ((model, "model"), (template, "chat template")):
        if path is not None and not Path(path).is_file():
            raise ServerError(f"the {what} file {path} does not exist")
    count = threads or min(_processors(), _MOST_THREADS)
    flags = [
        "-m",
        str(model),
        "-c",
        str(context),
        "-np",
        str(slots),
        "-t",
        str(count),
        "--cache-ram",
        "0",
        "--jinja",
    ]
    if template is not None:
        flags += ["--chat-template-file", str(template)]
    skipped: list[str] = []
    for candidate in candidates(binary):
        try:
            process, engine = _start(candidate, [*flags, *options], environment or {}, patience)
        except ServerError as error:
            skipped.append(f"{candidate.name}: {error}")
            continue
        return LaunchedServer(engine, process, candidate.name, tuple(skipped))
    raise ServerError(
        f"no llama.cpp server could be started: {'; '.join(skipped)}" if skipped else _NONE_FOUND
    )


def _start(
    candidate: Candidate, flags: Sequence[str], environment: Mapping[str, str], patience: float
) -> tuple[ServerProcess, LlamaCpp]:
    # A user's own settings for other servers must not change a measurement.
    clean = {name: value for name, value in os.environ.items() if not name.startswith("LLAMA_ARG_")}
    # Builds with OpenMP spin while they wait: on a busy machine that costs twenty times the work.
    clean.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    for attempt in range(1, _ATTEMPTS_AT_A_PORT + 1):
        port = free_port()
        command = [*candidate.command, "--host", "127.0.0.1", "--port", str(port), *flags]
        process = ServerProcess(command, {**clean, **candidate.environment, **environment})
        client = JsonClient(f"http://127.0.0.1:{port}", timeout=2.0)
        try:
            wait_until(partial(_healthy, client), process, patience)
            return process, LlamaCpp(client.url)
        except BaseException as error:
            process.close()
            lost_the_port = isinstance(error, ServerError) and "bind" in str(error)
            if not lost_the_port or attempt == _ATTEMPTS_AT_A_PORT:
                raise
    raise AssertionError("unreachable")


def _processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _healthy(client: JsonClient) -> bool:
    try:
        answer = client.get("/health")
    except ServerError:
        return False
    return isinstance(answer, dict) and answer.get("status") == "ok"
