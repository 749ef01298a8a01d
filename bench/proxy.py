"""The recording proxy against mitmproxy with an empty addon, in the same embedding.

    python -m bench proxy

Two proxies, one upstream and one load generator, each a process of its own.
The two are driven in turns, in short bursts, so that both see the same noise
of the machine. Other work on the machine only ever adds, so each launch gives
the lower quartile of its bursts; two launches of one program differ by 10 %
for as long as they run, so the figures are medians over several launches. CPU
is that of the proxy process, all threads; the recorder process, which works
beside it, is told apart.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bench.rows import Row, show

_TICK = os.sysconf("SC_CLK_TCK")
_CHUNKS = 20
MOST = 1.10
MOST_ADDED_MS = 5.0
_EMPTY = "--serve-empty"
_UPSTREAM = "--serve-upstream"


# -- the processes under test -----------------------------------------------------------------


async def _upstream(port: int) -> None:
    """Answers every request with a small JSON body, or with a stream when the path says so."""
    answer = json.dumps(
        {
            "id": "x",
            "object": "chat.completion",
            "model": "bench",
            "choices": [{"index": 0, "message": {"role": "assistant", "content": "done"}}],
            "usage": {"prompt_tokens": 500, "completion_tokens": 1},
        }
    ).encode()
    whole = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s" % (
        len(answer),
        answer,
    )
    event = b'data: {"choices":[{"index":0,"delta":{"content":"word "}}]}\n\n'
    chunk = b"%x\r\n%s\r\n" % (len(event), event)
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    held: list[asyncio.Event] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                request = await reader.readuntil(b"\r\n\r\n")
                lengths = [
                    line for line in request.lower().split(b"\r\n") if line.startswith(b"content-length")
                ]
                await reader.readexactly(int(lengths[0].split(b":")[1]) if lengths else 0)
                if b"x-bench: hold" in request:
                    writer.write(head + chunk)
                    release = asyncio.Event()
                    held.append(release)
                    await release.wait()
                    writer.write(b"0\r\n\r\n")
                elif b"x-bench: release" in request:
                    for release in held:
                        release.set()
                    held.clear()
                    writer.write(whole)
                elif b"x-bench: stream" in request:
                    writer.write(head)
                    for _ in range(_CHUNKS):
                        writer.write(chunk)
                        await writer.drain()
                    writer.write(b"0\r\n\r\n")
                else:
                    writer.write(whole)
                await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", port, backlog=1024)
    await server.serve_forever()


async def _empty_proxy(port: int, upstream: str, folder: str) -> None:
    """mitmproxy as `prefixguard.proxy.serve` embeds it, with an addon that only lets responses stream."""
    from mitmproxy import http, options
    from mitmproxy.addons import core, disable_h2c, next_layer, proxyserver, tlsconfig
    from mitmproxy.master import Master

    class Empty:
        def responseheaders(self, flow: http.HTTPFlow) -> None:
            assert flow.response is not None
            flow.response.stream = True

    master = Master(
        options.Options(
            mode=[f"reverse:{upstream}"], listen_host="127.0.0.1", listen_port=port, confdir=folder
        )
    )
    master.addons.add(
        core.Core(),
        disable_h2c.DisableH2C(),
        proxyserver.Proxyserver(),
        next_layer.NextLayer(),
        tlsconfig.TlsConfig(),
        Empty(),
    )
    await master.run()


# -- driving them -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Side:
    """One of the two proxies."""

    name: str
    port: int
    pid: int

    def cpu(self) -> float:
        """CPU seconds of the process so far."""
        return cpu_seconds(self.pid)

    def rss(self) -> float:
        """Resident memory in MiB."""
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) / 1024
        raise ValueError("no VmRSS")


def cpu_seconds(pid: int) -> float:
    """User and system time of a process, all threads, at the kernel's full resolution."""
    total = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):
            total += int((task / "schedstat").read_text().split()[0])
    return total / 1e9


def _body(size: int) -> bytes:
    frame = json.dumps({"model": "bench", "messages": [{"role": "user", "content": ""}]})
    text = "The quick brown fox jumps over the lazy dog. " * (size // 45 + 1)
    return json.dumps(
        {"model": "bench", "messages": [{"role": "user", "content": text[: size - len(frame)]}]}
    ).encode()


def _request(port: int, body: bytes, kind: str = "whole", *, session: str = "bench") -> bytes:
    head = (
        f"POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nx-bench: {kind}\r\n"
        f"authorization: Bearer sk-bench-0123456789\r\ncontent-type: application/json\r\n"
        f"user-agent: bench\r\naccept: */*\r\nx-session-id: {session}\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


async def _whole(reader: asyncio.StreamReader) -> None:
    head = await reader.readuntil(b"\r\n\r\n")
    length = next(
        int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length")
    )
    await reader.readexactly(length)


async def _burst(side: Side, body: bytes, count: int, width: int) -> float:
    """CPU seconds of the proxy per request, over `width` kept connections."""

    async def client(n: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", side.port)
        request = _request(side.port, body, session=f"bench-{n}")
        for _ in range(count // width):
            writer.write(request)
            await _whole(reader)
        writer.close()

    before = side.cpu()
    await asyncio.gather(*(client(n) for n in range(width)))
    # What the request leaves to be done afterwards belongs to it.
    await asyncio.sleep(0.15)
    return (side.cpu() - before) / (count // width * width)


async def _first_chunk(side: Side, body: bytes) -> float:
    """Milliseconds from a request on a fresh connection to the first byte of the stream's body."""
    reader, writer = await asyncio.open_connection("127.0.0.1", side.port)
    start = time.perf_counter()
    writer.write(_request(side.port, body, "stream"))
    await reader.readuntil(b"\r\n\r\n")
    await reader.readuntil(b"data:")
    elapsed = (time.perf_counter() - start) * 1000
    await reader.readuntil(b"\r\n0\r\n\r\n")
    writer.close()
    return elapsed


async def _memory(side: Side, body: bytes, streams: int) -> float:
    """MiB that `streams` open streams add to the process."""
    before = side.rss()
    writers = []
    for _ in range(streams):
        reader, writer = await asyncio.open_connection("127.0.0.1", side.port)
        writer.write(_request(side.port, body, "hold"))
        await reader.readuntil(b"data:")
        writers.append((reader, writer))
    during = side.rss()
    reader, writer = await asyncio.open_connection("127.0.0.1", side.port)
    writer.write(_request(side.port, body, "release"))
    await _whole(reader)
    writer.close()
    for reader, writer in writers:
        await reader.readuntil(b"\r\n0\r\n\r\n")
        writer.close()
    return during - before


@dataclass(frozen=True)
class _Sample:
    """One launch of both proxies: a value for each, in the figure's unit."""

    empty: float
    recording: float


type _Samples = dict[tuple[str, str, str], list[_Sample]]
"""By name, unit and target of the figure."""

_BURSTS = (
    ("CPU, 2 KB bodies, 1 connection", 2_000, 100, 1),
    ("CPU, 2 KB bodies, 16 connections", 2_000, 160, 16),
    ("CPU, 500 KB bodies, 1 connection", 500_000, 20, 1),
)


async def _measure(empty: Side, recording: Side, recorder_pid: int, rounds: int, into: _Samples) -> None:
    sides = (empty, recording)

    def add(name: str, unit: str, target: str, values: dict[str, list[float]]) -> None:
        quartiles = {side: sorted(found)[len(found) // 4] for side, found in values.items()}
        into.setdefault((name, unit, target), []).append(_Sample(quartiles["empty"], quartiles["recording"]))

    for name, size, count, width in _BURSTS:
        body = _body(size)
        for side in sides:
            await _burst(side, body, count, width)
        beside = cpu_seconds(recorder_pid)
        spent: dict[str, list[float]] = {side.name: [] for side in sides}
        for i in range(rounds):
            for side in sides if i % 2 == 0 else sides[::-1]:
                spent[side.name].append(await _burst(side, body, count, width) * 1e6)
        add(name, "us per request", f"<= x{MOST:.2f}", spent)
        beside = (cpu_seconds(recorder_pid) - beside) / (rounds * count) * 1e6
        add(
            f"  its recorder process, {size // 1000} KB, {width} at once",
            "us per request",
            "",
            {"empty": [0.0], "recording": [beside]},
        )
    body = _body(2_000)
    waits: dict[str, list[float]] = {side.name: [] for side in sides}
    for i in range(rounds * 6):
        for side in sides if i % 2 == 0 else sides[::-1]:
            waits[side.name].append(await _first_chunk(side, body))
    add("first chunk of a stream, new connection", "ms", f"<= +{MOST_ADDED_MS:.0f} ms", waits)
    held = {side.name: [await _memory(side, body, 100)] for side in sides}
    add("memory of 100 open streams", "MiB", "", held)


def _rows(samples: _Samples) -> list[Row]:
    rows = []
    for (name, unit, target), found in samples.items():
        empty = statistics.median(sample.empty for sample in found)
        recording = statistics.median(sample.recording for sample in found)
        if not target:
            both = f"{empty:.1f} -> {recording:.1f}" if empty else f"{recording:.0f}"
            rows.append(Row(name, f"{both} {unit}"))
        elif unit == "ms":
            value = f"{empty:.1f} -> {recording:.1f} {unit} ({recording - empty:+.1f})"
            rows.append(Row(name, value, target, recording - empty <= MOST_ADDED_MS))
        else:
            ratio = statistics.median(sample.recording / sample.empty for sample in found)
            value = f"{empty:.0f} -> {recording:.0f} {unit}, x{ratio:.2f}"
            rows.append(Row(name, value, target, ratio <= MOST))
    return rows


# -- putting it together ----------------------------------------------------------------------


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _wait_for(port: int) -> None:
    until = time.monotonic() + 60
    while time.monotonic() < until:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.05)
    raise TimeoutError(f"nothing listens on port {port}")


@contextlib.contextmanager
def _process(*arguments: str, env: dict[str, str] | None = None) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, env=env)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


def run(launches: int = 5, rounds: int = 8) -> list[Row]:
    """The figures; takes about half a minute per launch of the two proxies."""
    samples: _Samples = {}
    for _ in range(launches):
        _launch(rounds, samples)
    return _rows(samples)


def _launch(rounds: int, samples: _Samples) -> None:
    here = [sys.executable, "-m", "bench.proxy"]
    ports = {name: _free_port() for name in ("upstream", "empty", "recording")}
    url = f"http://127.0.0.1:{ports['upstream']}"
    program = [sys.executable, "-c", "from prefixguard.cli import main; main()"]
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        options = ["--listen", f"127.0.0.1:{ports['recording']}", "--upstream", url]
        store = ["--store", f"{folder}/record.sqlite"]
        env = {**os.environ, "XDG_DATA_HOME": folder}
        stack.enter_context(_process(*here, _UPSTREAM, str(ports["upstream"])))
        empty = stack.enter_context(_process(*here, _EMPTY, str(ports["empty"]), url, folder))
        recording = stack.enter_context(_process(*program, "proxy", *options, *store, env=env))
        for port in ports.values():
            _wait_for(port)
        sides = (
            Side("empty", ports["empty"], empty.pid),
            Side("recording", ports["recording"], recording.pid),
        )
        asyncio.run(_measure(*sides, _recorder_pid(ports["recording"]), rounds, samples))


def _recorder_pid(port: int) -> int:
    import urllib.request

    with urllib.request.urlopen(f"http://127.0.0.1:{port}/prefixguard/health") as answer:
        pid: int = json.load(answer)["recorder"]["pid"]
        return pid


if __name__ == "__main__":
    if sys.argv[1:2] == [_UPSTREAM]:
        asyncio.run(_upstream(int(sys.argv[2])))
    elif sys.argv[1:2] == [_EMPTY]:
        from prefixguard.proxy.loop import run as run_loop

        run_loop(_empty_proxy(int(sys.argv[2]), sys.argv[3], sys.argv[4]))
    else:
        show("proxy", run())
