"""No credential survives masking; what is not one does."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prefixguard.secrets import MASK, mask_headers, mask_path, mask_values, packaged_secrets

SECRET = "s3cr3t-Value-0123456789"


@pytest.mark.parametrize(
    "name",
    [
        "Authorization",
        "X-Api-Key",
        "api-key",
        "x-goog-api-key",
        "Proxy-Authorization",
        "Cookie",
        "Set-Cookie",
        "X-Amz-Security-Token",
        "cf-aig-authorization",
        "Helicone-Auth",
        "x-portkey-api-key",
        "x-litellm-api-key",
        "x-auth-token",
        "x-csrf-token",
        "x-my-service-secret",
        "Ocp-Apim-Subscription-Key",
        "token",
        "x-amz-signature",
    ],
)
def test_a_header_that_holds_a_secret_is_masked(name: str) -> None:
    masked = mask_headers({name: SECRET})
    assert masked == {name.lower(): MASK}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("x-ratelimit-remaining-tokens", "39000"),
        ("anthropic-ratelimit-input-tokens-limit", "40000"),
        ("anthropic-beta", "token-efficient-tools-2025-02-19"),
        ("x-session-id", "ses_4f2a"),
        ("x-codex-turn-metadata", '{"session_id":"019a-22"}'),
        ("user-agent", "OpenAI/Python 3.57.0"),
        ("referer", "https://example.org/a?b=c"),
        ("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
        ("author", "me"),
    ],
)
def test_a_header_that_holds_none_is_left_alone(name: str, value: str) -> None:
    assert mask_headers({name: value}) == {name: value}


def test_an_authorization_keeps_its_scheme_only() -> None:
    assert mask_headers({"Authorization": f"Bearer {SECRET}"}) == {"authorization": "Bearer ***"}
    assert mask_headers({"Authorization": f"{SECRET} two"}) == {"authorization": "***"}


KEYS = {
    "anthropic-key": "sk-ant-api03-" + "aB3_" * 10,
    "openai-key": "sk-proj-" + "Zz9-" * 10,
    "google-key": "AIza" + "Sy0_" * 8 + "abc",
    "google-oauth-token": "ya29." + "a0Af" * 8,
    "aws-access-key-id": "AKIAIOSFODNN7EXAMPLE",
    "github-token": "ghp_" + "a1B2" * 9,
    "gitlab-token": "glpat-" + "a1B2" * 5,
    "slack-token": "xoxb-123456789012-abcdef",
    "stripe-key": "sk_live_" + "a1B2" * 6,
    "hugging-face-token": "hf_" + "a1B2" * 9,
    "groq-key": "gsk_" + "a1B2" * 12,
    "xai-key": "xai-" + "a1B2" * 12,
    "npm-token": "npm_" + "a1B2" * 9,
    "pypi-token": "pypi-" + "a1B2" * 12,
    "json-web-token": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl",
    "private-key": "-----BEGIN RSA PRIVATE KEY-----\\nMIIEow\\nIBAAK\\n-----END RSA PRIVATE KEY-----",
    "url-password": "admin:hunter2",
    "bearer-token": "abcdefghijklmnopqrstuvwxyz",
}


@pytest.mark.parametrize("kind", [value.name for value in packaged_secrets().values])
def test_every_kind_of_value_is_found_anywhere(kind: str) -> None:
    secret = KEYS[kind]
    around = {"url-password": ("https://", "@host/"), "bearer-token": ("Bearer ", "")}.get(
        kind, ("see ", ", please")
    )
    text = around[0] + secret + around[1]
    found = []
    masked = mask_values(text, lambda name, match: found.append((name, match)) or "<gone>")
    assert (kind, secret) in found
    assert masked == f"{around[0]}<gone>{around[1]}"
    assert secret not in mask_headers({"x-note": text})["x-note"]
    assert secret not in mask_path("/v1/x?note=" + text)


def test_ordinary_text_is_no_secret() -> None:
    text = "the task-manager asks sk-learn for risk-averse-portfolio-optimisation-results; see http://a.b/c."
    assert mask_values(text) == text


@pytest.mark.parametrize(
    "path",
    [
        f"/v1beta/models/gemini:streamGenerateContent?alt=sse&key={SECRET}",
        f"/x?key={SECRET}",
        f"/x?a=1;access_token={SECRET}&b=2",
        f"/x?X-Amz-Signature={SECRET}",
        f"/x?api-key={SECRET}#frag",
        f"/x?%6bey={SECRET}",
        f"https://me:{SECRET}@host/v1",
        f"https://{SECRET}@host/v1?x=1",
        f"/x?subscription-key={SECRET}",
        f"/x?sig={SECRET}",
    ],
)
def test_a_path_gives_no_key_away(path: str) -> None:
    masked = mask_path(path)
    assert SECRET not in masked
    assert MASK in masked


@pytest.mark.parametrize(
    "path",
    [
        "/v1/messages?beta=true",
        "/v1/models/gemini-2.5-pro:generateContent?alt=sse",
        "/x?keyboard=qwerty&monkey=1",
        "/x?key=",
        "/x?max_tokens=4",
        "/openai/deployments/gpt/chat/completions?api-version=2026-01-01",
        "/mail/user@example.org",
        "/x?page#key=anchor",
    ],
)
def test_an_ordinary_path_is_left_alone(path: str) -> None:
    assert mask_path(path) == path


@given(st.dictionaries(st.text(min_size=1), st.text()))
def test_masking_headers_twice_changes_nothing(headers: dict[str, str]) -> None:
    once = mask_headers(headers)
    assert mask_headers(once) == once


@given(st.text())
def test_masking_a_path_twice_changes_nothing(path: str) -> None:
    once = mask_path(path)
    assert mask_path(once) == once


def test_only_so_many_header_names_are_remembered() -> None:
    for i in range(5000):
        mask_headers({f"x-made-up-{i}": "1"})
    assert len(packaged_secrets().judged) <= 4096
