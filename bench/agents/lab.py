"""Installs an agent, and runs it: alone and behind the proxy, with a base URL and through HTTPS_PROXY.

The four runs of an agent begin alike: an empty home folder and a fresh project
at the same paths. What they leave (what the upstream received, the exit codes,
the files) is compared in `compare`.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, get_args

from bench.agents.clients import Client, Place
from bench.agents.upstream import Received, Upstream

type Mode = Literal["plain", "base-url", "plain-forward", "forward"]
MODES: tuple[Mode, ...] = get_args(Mode.__value__)
_PATIENCE = 240
_PROJECT = {
    "README.md": "# Greeting\n\nA small project that greets people by their name.\n",
    "app.py": 'def greet(name: str) -> str:\n    return f"Hello, {name}!"\n\n\nprint(greet("world"))\n',
    "notes.txt": "".join(f"note {n}\n" for n in range(40)),
}


@dataclass
class Process:
    """One process of an agent: its exit code (None: it had to be killed) and what it printed."""

    code: int | None
    out: str
    err: str
    seconds: float
    ended: float
    """When, in seconds since the epoch."""


@dataclass
class Outcome:
    """One run of an agent: its processes, what the upstream received, and where it was recorded."""

    mode: Mode
    processes: list[Process] = field(default_factory=list)
    received: list[Received] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    files: dict[str, bytes] = field(default_factory=dict)
    store: Path | None = None


class Lab:
    """A folder with installed agents, and one in which they run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()

    def programs(self, client: Client) -> Path:
        """The folder of an agent's programs, installed if need be. Raises CalledProcessError."""
        name = "-".join(p.split("[")[0].strip("@").replace("/", "-") for p in client.packages)
        place = self.folder / "installed" / name
        programs = place / ("node_modules/.bin" if client.kind == "npm" else "bin")
        if not (place / "complete").exists():
            place.mkdir(parents=True, exist_ok=True)
            for words in _installing(client, place):
                subprocess.run(words, cwd=place, check=True, stdout=sys.stderr)
            (place / "complete").touch()
        return programs

    def run(self, client: Client, mode: Mode, upstream: Upstream) -> Outcome:
        """Run an agent twice, the second time continuing where it can."""
        programs = self.programs(client)
        home, project = self.folder / "home", self.folder / "project"
        for folder in (home, project):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
        for name, text in _PROJECT.items():
            (project / name).write_text(text)
        _git(project, home)
        upstream.forget()
        forward = mode in ("forward", "plain-forward")
        port = _free_port()
        pointed = mode == "base-url" and client.takes == "file"
        base = None if forward else f"http://127.0.0.1:{port}" if pointed else upstream.url
        if mode == "base-url" and client.takes == "args":
            base = None
        place = Place(home, project, base)
        client.settings(place)
        script = self.folder / "agent.py"
        script.write_text(client.script)
        environ = self._environ(client, place, programs, upstream)
        outcome = Outcome(mode)
        if mode in ("base-url", "forward"):
            outcome.store = self.folder / "records" / f"{client.name}-{mode}.sqlite"
            outcome.store.parent.mkdir(exist_ok=True)
            for old in outcome.store.parent.glob(f"{outcome.store.name}*"):
                old.unlink()
        guard = self._guard(client, outcome, upstream, port)
        for arguments in (client.first, client.again or client.first):
            words = [w.replace("{script}", str(script)).replace("{home}", str(home)) for w in arguments]
            command = [*guard, str(programs / client.program), *words]
            outcome.processes.append(_process(command, environ, project, client.stdin))
        _end_strays(home)
        outcome.received = list(upstream.received)
        outcome.refused = sorted(set(upstream.refused))
        outcome.files = {
            str(f.relative_to(project)): f.read_bytes()
            for f in sorted(project.rglob("*"))
            if f.is_file() and ".git/" not in str(f)
        }
        return outcome

    def _environ(self, client: Client, place: Place, programs: Path, upstream: Upstream) -> dict[str, str]:
        """Of the agent: nothing of ours but the path. Whatever it wants elsewhere ends at the upstream."""
        way = upstream.url
        trusted = str(upstream.authority)
        node = str(Path(shutil.which("node") or "/usr/bin/node").parent)
        return {
            "PATH": f"{programs}:{node}:/usr/local/bin:/usr/bin:/bin",
            "HOME": str(place.home),
            "TERM": "dumb",
            "NO_COLOR": "1",
            "LANG": "C.UTF-8",
            "HTTPS_PROXY": way,
            "HTTP_PROXY": way,
            "https_proxy": way,
            "http_proxy": way,
            "NO_PROXY": "localhost,127.0.0.1",
            "no_proxy": "localhost,127.0.0.1",
            "SSL_CERT_FILE": trusted,
            "REQUESTS_CA_BUNDLE": trusted,
            "NODE_EXTRA_CA_CERTS": trusted,
            "CODEX_CA_CERTIFICATE": trusted,
            **client.env(place),
        }

    def _guard(self, client: Client, outcome: Outcome, upstream: Upstream, port: int) -> list[str]:
        if outcome.store is None:
            return []
        words = [
            sys.executable,
            "-m",
            "prefixguard",
            "run",
            "--store",
            str(outcome.store),
            "--mode",
            outcome.mode,
        ]
        if outcome.mode == "base-url" and client.takes != "env":
            words += ["--upstream", upstream.url]
        if outcome.mode == "base-url" and client.takes == "file":
            words += ["--listen", f"127.0.0.1:{port}"]
        return [*words, "--"]


def _installing(client: Client, place: Path) -> list[list[str]]:
    if client.kind == "npm":
        return [["npm", "install", "--no-audit", "--no-fund", "--prefix", str(place), *client.packages]]
    return [
        ["uv", "venv", "-q", "--python", client.python, str(place)],
        ["uv", "pip", "install", "-q", "--python", str(place / "bin" / "python"), *client.packages],
    ]


def version_of(client: Client, programs: Path) -> str:
    """The version that is installed."""
    if client.kind == "npm":
        import json

        package = programs.parent / client.packages[0] / "package.json"
        return str(json.loads(package.read_text())["version"])
    wanted = client.packages[0].split("[")[0].replace("-", "_")
    found = sorted((programs.parent / "lib").glob(f"python*/site-packages/{wanted}-*.dist-info"))
    return found[0].name.removesuffix(".dist-info").rpartition("-")[2] if found else "unknown"


def _git(project: Path, home: Path) -> None:
    environ = {"PATH": os.environ["PATH"], "HOME": str(home), "GIT_CONFIG_NOSYSTEM": "1"}
    environ |= {
        f"GIT_{who}_{what}": "bench@example.org"
        for who in ("AUTHOR", "COMMITTER")
        for what in ("NAME", "EMAIL")
    }
    environ |= {"GIT_AUTHOR_DATE": "2026-01-01T00:00:00Z", "GIT_COMMITTER_DATE": "2026-01-01T00:00:00Z"}
    for words in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-q", "-m", "Begin"]):
        subprocess.run(["git", *words], cwd=project, check=True, env=environ)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


def _end_strays(home: Path) -> None:
    """End what an agent left running in sessions of its own: only what has our home folder for its own."""
    mark = f"HOME={home}".encode()
    for entry in Path("/proc").glob("[0-9]*/environ"):
        try:
            if mark in entry.read_bytes().split(b"\0"):
                os.kill(int(entry.parent.name), signal.SIGKILL)
        except (OSError, ValueError):
            continue


def _process(command: Sequence[str], environ: Mapping[str, str], project: Path, stdin: str) -> Process:
    began = time.monotonic()
    process = subprocess.Popen(
        ["nice", *command], cwd=project, env=dict(environ), text=True, errors="replace",
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    code: int | None = None
    try:
        out, err = process.communicate(stdin, timeout=_PATIENCE)
        code = process.returncode
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        out, err = process.communicate()
    # What an agent leaves running (a server of its own, a shell) ends with it.
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    return Process(code, out, err, time.monotonic() - began, time.time())
