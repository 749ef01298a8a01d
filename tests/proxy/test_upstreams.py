"""Where a request goes: pure functions over the table of upstreams."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prefixguard.errors import InputError, RuleError
from prefixguard.proxy.upstreams import Router, parse_target, read_upstreams

RULES = read_upstreams()
ROUTER = Router(RULES, names={"local": parse_target("http://127.0.0.1:8080/v1")})


@pytest.mark.parametrize(
    ("path", "headers", "origin", "sent"),
    [
        ("/v1/messages?beta=true", {}, "https://api.anthropic.com", "/v1/messages?beta=true"),
        ("/v1/chat/completions", {}, "https://api.openai.com", "/v1/chat/completions"),
        ("/v1/responses", {}, "https://api.openai.com", "/v1/responses"),
        ("/v1/models", {"anthropic-version": "2023-06-01"}, "https://api.anthropic.com", "/v1/models"),
        (
            "/v1beta/models/gemini-2.5-pro:generateContent",
            {},
            "https://generativelanguage.googleapis.com",
            "/v1beta/models/gemini-2.5-pro:generateContent",
        ),
        ("/openai/v1/responses", {}, "https://api.openai.com", "/v1/responses"),
        ("/anthropic/v1/messages", {}, "https://api.anthropic.com", "/v1/messages"),
        ("/to/groq/openai/v1/chat/completions", {}, "https://api.groq.com", "/openai/v1/chat/completions"),
        ("/to/local/chat/completions", {}, "http://127.0.0.1:8080", "/v1/chat/completions"),
        ("/to/local/v1/chat/completions", {}, "http://127.0.0.1:8080", "/v1/chat/completions"),
        ("/local/v1/x?q=/v1/", {}, "http://127.0.0.1:8080", "/v1/x?q=/v1/"),
    ],
)
def test_route(path: str, headers: dict[str, str], origin: str, sent: str) -> None:
    route = ROUTER.route(path, headers)
    assert route is not None
    assert (route.target.origin, route.path) == (origin, sent)


@pytest.mark.parametrize(
    "path", ["/", "/foo", "/to/evil.example/v1/messages", "/to/", "/to//v1", "//evil.example/", "/v2/x"]
)
def test_no_route_to_names_that_nobody_configured(path: str) -> None:
    assert ROUTER.route(path, {}) is None


@given(st.text(alphabet="/tov1anthropiclocal.:@?#%\\", max_size=40))
def test_never_leaves_the_configured_origins(path: str) -> None:
    origins = {target.origin for target in ROUTER.names.values()}
    route = ROUTER.route("/" + path, {})
    assert route is None or (route.target.origin in origins and route.path.startswith("/"))


@given(st.text(alphabet="/av1?x", max_size=20))
def test_fixed_upstream_takes_every_path(path: str) -> None:
    router = Router(RULES, fixed=parse_target("http://h:1"))
    route = router.route("/" + path, {})
    assert route is not None
    assert route.path == "/" + path


@pytest.mark.parametrize(
    ("url", "path", "sent"),
    [
        ("http://h/v1", "/v1/chat/completions", "/v1/chat/completions"),
        ("http://h/v1/", "/chat/completions", "/v1/chat/completions"),
        ("http://h/api/v1", "/v1/messages", "/api/v1/messages"),
        ("http://h/api", "/v1/messages", "/api/v1/messages"),
        ("http://h", "/", "/"),
        ("http://h/v1", "/v10/x", "/v1/v10/x"),
    ],
)
def test_prefix_is_said_once(url: str, path: str, sent: str) -> None:
    assert parse_target(url).path(path) == sent


@pytest.mark.parametrize(
    "url",
    [
        "",
        "localhost:8080",
        "ftp://h",
        "http://",
        "http://u:p@h",
        "http://h:x",
        "http://h?a=b",
        "http://h:99999",
    ],
)
def test_bad_urls_are_input_errors(url: str) -> None:
    with pytest.raises(InputError):
        parse_target(url)


@pytest.mark.parametrize(
    ("method", "path", "verdict"),
    [
        ("POST", "/v1/chat/completions", "record"),
        ("POST", "/v1/messages?beta=true", "record"),
        ("POST", "/v1/messages/count_tokens", "skip"),
        ("POST", "/v1/responses/compact", "record"),
        ("POST", "/v1beta/models/g:streamGenerateContent?alt=sse", "record"),
        ("POST", "/model/anthropic.claude/converse-stream", "record"),
        ("POST", "/openai/deployments/gpt/chat/completions", "record"),
        ("POST", "/api/chat", "record"),
        ("POST", "/completion", "record"),
        ("POST", "/v1/embeddings", "skip"),
        ("POST", "/tokenize", "skip"),
        ("GET", "/v1/chat/completions", "skip"),
        ("POST", "/v1/brand-new", "unknown"),
    ],
)
def test_what_is_recorded(method: str, path: str, verdict: str) -> None:
    assert ROUTER.verdict(method, path) == verdict


@pytest.mark.parametrize(
    ("host", "opens"),
    [
        ("api.openai.com", True),
        ("API.OpenAI.com.", True),
        ("us-east1-aiplatform.googleapis.com", True),
        ("bedrock-runtime.eu-west-1.amazonaws.com", True),
        ("github.com", False),
        ("api.openai.com.evil.example", False),
        ("evilapi.openai.com", False),
    ],
)
def test_hosts_that_forward_mode_opens(host: str, opens: bool) -> None:
    import re

    assert ROUTER.opens(host) == opens
    name = host.lower().rstrip(".")
    assert any(re.search(pattern, f"{name}:443") for pattern in ROUTER.host_patterns) == opens


def test_bad_table_names_the_file(tmp_path: Path) -> None:
    (tmp_path / "upstreams.toml").write_text(
        'date = 2026-11-30\nsource = "s"\n[record]\npaths = ["("]\nwebsocket_paths = []\nskip = []\n'
        '[[upstream]]\nname = "a"\nsource = "s"\n'
    )
    with pytest.raises(RuleError, match=r"upstreams\.toml"):
        read_upstreams(tmp_path)
