"""Launches a vLLM server on this machine for a measurement, from whatever `vllm` is on PATH."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from prefixguard.engines.client import JsonClient
from prefixguard.engines.launched import Launched, free_port
from prefixguard.engines.process import ServerProcess, wait_until
from prefixguard.engines.vllm import Vllm
from prefixguard.errors import ServerError


class LaunchedVllm(Launched[Vllm]):
    """A vLLM server of our own, with its workers."""


def launch_vllm(
    model: str | Path,
    *,
    program: str | Path | None = None,
    template: str | Path | None = None,
    options: Sequence[str] = (),
    patience: float = 1200.0,
) -> LaunchedVllm:
    """Starts `vllm serve MODEL` on a free loopback port and waits until it answers.

    It reports cached tokens in its usage. template: a chat template file.
    options: further options of `vllm serve`. patience: seconds to wait; most of
    them pass while its processes import and load, one after the other. Raises
    ServerError when there is no vLLM, or it does not start.
    """
    found = shutil.which(str(program or "vllm"))
    if found is None:
        raise ServerError(
            f"{program or 'vllm'} is no program here: install vLLM, or start it and use --server"
        )
    if template is not None and not Path(template).is_file():
        raise ServerError(f"the chat template file {template} does not exist")
    port = free_port()
    command = [
        found, "serve", str(model), "--host", "127.0.0.1", "--port", str(port),
        "--enable-prompt-tokens-details", *(["--chat-template", str(template)] if template else []), *options,
    ]  # fmt: skip
    process = ServerProcess(command, {**os.environ, "VLLM_NO_USAGE_STATS": "1"})
    client = JsonClient(f"http://127.0.0.1:{port}", timeout=5.0)
    try:
        wait_until(partial(_answers, client), process, patience)
        return LaunchedVllm(Vllm(client.url), process)
    except BaseException:
        process.close()
        raise


def _answers(client: JsonClient) -> bool:
    try:
        client.text("/health")
    except ServerError:
        return False
    return True
