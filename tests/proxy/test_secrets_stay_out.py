"""No credential reaches a file, wherever in a request it stands."""

from __future__ import annotations

import httpx
import pytest

from .running import RunningProxy
from .upstream import Answer, Upstream

KEYS = {
    "authorization": "Bearer sk-proj-AAAA1111BBBB2222CCCC3333DDDD4444",
    "x-api-key": "sk-ant-api03-EEEE5555FFFF6666GGGG7777",
    "api-key": "0123456789abcdef0123456789abcdef",
    "x-goog-api-key": "AIzaSyHHHH8888IIII9999JJJJ0000KKKK1111L",
    "cookie": "session=LLLL2222MMMM3333",
    "x-custom-auth-token": "NNNN4444OOOO5555PPPP",
}
IN_QUERY = "QQQQ6666RRRR7777SSSS"
IN_ANSWER = "set-this=TTTT8888UUUU9999"


@pytest.mark.parametrize("status", [200, 401])
def test_keys_are_in_no_file(
    upstream: Upstream, proxy: RunningProxy, client: httpx.Client, status: int
) -> None:
    upstream.script = lambda _: Answer(
        status=status, headers=(("Content-Type", "application/json"), ("Set-Cookie", IN_ANSWER))
    )
    session = f"secrets-{status}"
    client.post(
        f"{proxy.url}/v1beta/models/g:generateContent?key={IN_QUERY}",
        json={"contents": []},
        headers={**KEYS, "x-session-id": session},
    )
    arrived = upstream.requests[-1]
    assert all(arrived.header(name) == value for name, value in KEYS.items())
    assert IN_QUERY in arrived.path
    (capture,) = proxy.captures(session, 1)
    assert capture.account is not None
    secrets = [*(value.split("=")[-1].split(" ")[-1] for value in KEYS.values()), IN_QUERY]
    files = [path for path in proxy.folder.rglob("*") if path.is_file()]
    assert proxy.store_path in files
    for path in files:
        content = path.read_bytes()
        for secret in (*secrets, IN_ANSWER.split("=")[1]):
            assert secret.encode() not in content, f"{secret} in {path}"
    # The store compresses: what it gives back must be searched, too.
    text = repr(capture)
    assert not [secret for secret in secrets if secret in text]
    assert not [event for event in proxy.events if any(secret in repr(event) for secret in secrets)]


def test_accounts_are_told_apart(upstream: Upstream, proxy: RunningProxy, client: httpx.Client) -> None:
    keys = ["sk-one-11111111", "sk-one-11111111", "sk-two-22222222"]
    for key in keys:
        client.post(
            f"{proxy.url}/v1/chat/completions",
            json={"model": "m"},
            headers={"authorization": f"Bearer {key}", "x-session-id": "accounts"},
        )
    client.post(f"{proxy.url}/v1/chat/completions", json={"model": "m"}, headers={"x-session-id": "accounts"})
    one, again, two, none = (capture.account for capture in proxy.captures("accounts", 4))
    assert one is not None
    assert one == again
    assert two not in (one, None)
    assert none is None
