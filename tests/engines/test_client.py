"""What a server answers, or one line on why it does not."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from prefixguard.engines import attach
from prefixguard.engines.client import JsonClient
from prefixguard.errors import ServerError

ANSWERS = {
    "/json": (200, '{"a": [1]}'),
    "/html": (200, "<html>hello</html>"),
    "/told": (401, '{"error": {"code": 401, "message": "Invalid\\nAPI Key"}}'),
    "/plain": (503, "loading   the model\n" + "x" * 500),
    "/silent": (500, ""),
    "/props": (200, '{"some": "server"}'),
}


class Handler(BaseHTTPRequestHandler):
    """Answers from the table; says back the authorization that it was given."""

    def do_GET(self) -> None:
        status, body = ANSWERS.get(self.path, (200, f'"{self.headers.get("Authorization")}"'))
        self.send_response(status)
        self.end_headers()
        self.wfile.write(body.encode())

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_it_speaks_json(url: str) -> None:
    client = JsonClient(url)
    assert client.get("/json") == {"a": [1]}
    assert client.post("/echo", {"text": "漢 😀"}) == {"text": "漢 😀"}
    assert client.post("/echo", b'{"as": "it is"}') == {"as": "it is"}


def test_a_key_goes_along(url: str) -> None:
    assert JsonClient(url, key="k").get("/who") == "Bearer k"
    assert JsonClient(url).get("/who") == "None"


def test_a_proxy_of_the_environment_is_not_asked_for_this_machine(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    assert JsonClient(url).get("/json") == {"a": [1]}


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("/html", "/html gave no JSON: is it a model server?"),
        ("/told", "/told answered 401: Invalid API Key"),
        ("/plain", "/plain answered 503: loading the model xxx"),
        ("/silent", "/silent answered 500: Internal Server Error"),
    ],
)
def test_everything_else_is_one_line(url: str, path: str, why: str) -> None:
    with pytest.raises(ServerError) as error:
        JsonClient(url).get(path)
    assert str(error.value).startswith(url + why)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 300


@pytest.mark.parametrize("given", ["{url}", "{url}/", "{url}/v1", "{url}/v1/"])
def test_the_base_url_of_an_sdk_will_do(url: str, given: str) -> None:
    assert JsonClient(given.format(url=url)).url == url


def test_another_kind_of_server_is_not_taken_for_an_engine(url: str) -> None:
    with pytest.raises(ServerError, match=r"is no llama\.cpp server"):
        attach(url)


class Patient(BaseHTTPRequestHandler):
    """A stream that says nothing for a while, as servers do while they evaluate a long prompt."""

    pause = 0.15

    def do_POST(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        for piece in (b":\n\n", b"data: {}\n\n"):
            self.wfile.write(piece)
            self.wfile.flush()
            time.sleep(self.pause)

    def log_message(self, *_: object) -> None:
        pass


def test_signs_of_life_are_no_first_token() -> None:
    with HTTPServer(("127.0.0.1", 0), Patient) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        answer = JsonClient(f"http://127.0.0.1:{server.server_address[1]}").timed("/", b"{}")
        server.shutdown()
        thread.join()
    assert answer.body == b":\n\ndata: {}\n\n"
    assert Patient.pause * 900 < answer.first_ms <= answer.total_ms
    assert answer.total_ms > Patient.pause * 1900
