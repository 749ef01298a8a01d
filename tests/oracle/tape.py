"""Records what a real vLLM answers to `measure`, and what its cache publishes meanwhile.

    python -m tests.oracle.tape http://127.0.0.1:8000 fixtures/vllm/tape.json

Stands between `measure` and the server and writes down every answer with the
events behind it. The server must publish its events at a wildcard, have blocks
of 32 and 129 of them: see the README. Runs in PrefixGuard's own environment.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
import threading
import time
import urllib.error
import urllib.request
from base64 import b64encode
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import zmq

from prefixguard.engines import attach
from prefixguard.engines.replay import bench_for, measure
from tests.oracle.sessions import SESSIONS

_SALT = re.compile(rb',?"cache_salt":"([^"]*)"')
_ROOT = re.compile(rb'"root":"[^"]*"')
_METRICS = re.compile(
    r"^vllm:(cache_config_info|prefix_cache_\w+_total|prompt_tokens_total)\W.*$", re.MULTILINE
)


def key(method: str, path: str, body: bytes) -> str:
    """What a request is known by: everything but its salt."""
    return hashlib.sha256(b"\n".join([method.encode(), path.encode(), _SALT.sub(b"", body)])).hexdigest()[:16]


class Recorder(ThreadingHTTPServer):
    """Hands requests on, and keeps what came back."""

    def __init__(self, url: str) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.target = url.rstrip("/")
        self.tape: list[dict[str, Any]] = []
        source = json.load(urllib.request.urlopen(f"{self.target}/kv_event_sources"))["0"]
        self.events = zmq.Context.instance().socket(zmq.SUB)
        self.events.setsockopt(zmq.SUBSCRIBE, b"")
        self.events.connect(source["endpoint"].replace("*", "127.0.0.1"))
        time.sleep(0.5)


class Handler(BaseHTTPRequestHandler):
    server: Recorder

    def do_GET(self) -> None:
        self.hand_on("GET", b"")

    def do_POST(self) -> None:
        self.hand_on("POST", self.rfile.read(int(self.headers["content-length"])))

    def hand_on(self, method: str, body: bytes) -> None:
        request = urllib.request.Request(
            self.server.target + self.path, body or None, {"content-type": "application/json"}, method=method
        )
        try:
            with urllib.request.urlopen(request) as response:
                status, kind, answer = response.status, response.headers["content-type"], response.read()
        except urllib.error.HTTPError as error:
            status, kind, answer = error.code, error.headers["content-type"], error.read()
        if self.path == "/metrics":
            answer = "\n".join(m[0] for m in _METRICS.finditer(answer.decode())).encode() + b"\n"
        answer = _ROOT.sub(b'"root":""', answer)
        salt = _SALT.search(body)
        events = []
        if self.path.startswith("/v1/chat"):
            while self.server.events.poll(200):
                events.append(b64encode(self.server.events.recv_multipart()[2]).decode())
        self.server.tape.append(
            {
                "key": key(method, self.path, body), "path": self.path, "status": status, "type": kind,
                "body": answer.decode(), "salt": salt[1].decode() if salt else None, "events": events,
            }
        )  # fmt: skip
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: Any) -> None:
        pass


def main(url: str, place: Path) -> None:
    """Asks every session, and writes the tape."""
    found: dict[str, Any] = {}
    with Recorder(url) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        here = f"http://127.0.0.1:{server.server_address[1]}"
        engine = attach(here)
        for name, session in SESSIONS.items():
            # The emptied cache tells of it with the first prompt's events.
            urllib.request.urlopen(urllib.request.Request(f"{server.target}/reset_prefix_cache", b""))
            server.tape.clear()
            trial = measure(session, bench_for(attach(here)))
            print(name, len(trial.turns), trial.count("exact"), trial.accounted)
            found[name] = list(server.tape)
        server.shutdown()
    written = {"engine": engine.name, "date": time.strftime("%Y-%m-%d"), "sessions": found}
    place.write_text(json.dumps(written, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
