"""The catalogue of findings: complete, well formed, and written for readers."""

from __future__ import annotations

import pytest

from prefixguard.rulebook import FindingRule, Rulebook

# code: name, seen by (Lint, Wire, a server's Measures), D = can be deliberate.
# Codes are stable once released, so the list stands here a second time.
CATALOGUE = {
    "PG101": ("clock-in-prefix", "LW"),
    "PG102": ("date-rollover", "LWD"),
    "PG103": ("relative-time", "LW"),
    "PG104": ("random-id", "LW"),
    "PG105": ("counter", "LW"),
    "PG106": ("environment-state", "LW"),
    "PG107": ("task-state", "LW"),
    "PG108": ("retrieved-context", "LW"),
    "PG109": ("per-user-before-shared", "LW"),
    "PG110": ("random-selection", "LW"),
    "PG111": ("instructions-edited", "WD"),
    "PG112": ("head-text-edited", "W"),
    "PG201": ("tools-reordered", "LW"),
    "PG202": ("key-order", "LW"),
    "PG203": ("arguments-reserialised", "LW"),
    "PG204": ("whitespace", "W"),
    "PG205": ("escapes", "W"),
    "PG206": ("ids-regenerated", "LW"),
    "PG207": ("url-resigned", "W"),
    "PG208": ("shape-only", "W"),
    "PG209": ("unordered-iteration", "L"),
    "PG210": ("messages-merged", "W"),
    "PG301": ("sliding-window", "LW"),
    "PG302": ("history-pruned", "LWD"),
    "PG303": ("compaction", "LWD"),
    "PG304": ("media-stripped", "LWD"),
    "PG305": ("media-reencoded", "LW"),
    "PG306": ("reasoning-dropped", "LW"),
    "PG307": ("reply-not-echoed", "LW"),
    "PG308": ("inserted-in-history", "LW"),
    "PG309": ("ephemeral-block", "LW"),
    "PG310": ("block-moved", "W"),
    "PG311": ("message-edited", "LW"),
    "PG312": ("system-in-history", "W"),
    "PG313": ("message-removed", "LW"),
    "PG401": ("tool-added", "LW"),
    "PG402": ("tool-removed", "LW"),
    "PG403": ("tool-edited", "LW"),
    "PG404": ("tools-per-turn", "LW"),
    "PG405": ("model-changed", "LWD"),
    "PG406": ("reasoning-setting-changed", "LWD"),
    "PG407": ("tool-choice-changed", "LW"),
    "PG408": ("response-format-changed", "LW"),
    "PG409": ("keyed-parameter-changed", "W"),
    "PG410": ("mode-switch", "WD"),
    "PG501": ("breakpoint-on-volatile", "LW"),
    "PG502": ("too-many-breakpoints", "LW"),
    "PG503": ("no-breakpoint", "LW"),
    "PG504": ("breakpoints-frozen", "LW"),
    "PG505": ("beyond-lookback", "WM"),
    "PG506": ("ttl-order", "LW"),
    "PG507": ("below-minimum", "W"),
    "PG508": ("cache-key", "LW"),
    "PG509": ("breakpoint-at-changing-tail", "W"),
    "PG510": ("volatile-first", "LW"),
    "PG511": ("side-request", "LWD"),
    "PG601": ("expired", "M"),
    "PG602": ("evicted", "M"),
    "PG603": ("host-changed", "WM"),
    "PG604": ("account-changed", "WM"),
    "PG605": ("cold-race", "WM"),
    "PG606": ("slot-collision", "M"),
    "PG607": ("ttl-downgraded", "M"),
    "PG701": ("template-not-append-only", "M"),
    "PG702": ("no-state-to-resume", "M"),
    "PG703": ("block-granularity", "M"),
    "PG704": ("retokenised-reply", "M"),
    "PG705": ("gateway-rewrites", "WM"),
    "PG706": ("reuse-disabled", "WM"),
    "PG801": ("usage-missing", "W"),
    "PG802": ("stream-without-usage", "LW"),
    "PG803": ("usage-inconsistent", "W"),
    "PG804": ("unexplained-miss", "M"),
}
SEEN_BY = {"L": "lint", "W": "wire", "M": "server"}
APIS = {
    "anthropic-messages",
    "openai-chat",
    "openai-responses",
    "completions",
    "llamacpp",
    "gemini",
    "bedrock-converse",
    "ollama-chat",
    "vllm",
    "llama.cpp",
    "sglang",
}
NO_FAULT_BY_ITSELF = {"PG208", "PG507", "PG703", "PG801"}


@pytest.fixture(scope="module")
def findings() -> dict[str, FindingRule]:
    return dict(Rulebook().findings)


def test_every_code_has_an_entry_and_no_other_code_does(findings: dict[str, FindingRule]) -> None:
    assert list(findings) == list(CATALOGUE)


@pytest.mark.parametrize("code", CATALOGUE)
def test_entry_says_what_the_catalogue_says(code: str, findings: dict[str, FindingRule]) -> None:
    name, flags = CATALOGUE[code]
    rule = findings[code]
    assert rule.name == name
    assert set(rule.seen_by) == {SEEN_BY[flag] for flag in flags if flag != "D"}
    assert rule.can_be_deliberate == ("D" in flags)
    assert set(rule.mend_for) <= APIS
    if code in NO_FAULT_BY_ITSELF:
        assert rule.severity == "info"


@pytest.mark.parametrize("code", CATALOGUE)
def test_texts_are_full_sentences(code: str, findings: dict[str, FindingRule]) -> None:
    rule = findings[code]
    assert 8 <= len(rule.title) <= 80
    assert not rule.title.endswith(".")
    for text in (rule.why, rule.mend, *rule.mend_for.values()):
        assert text.strip().endswith((".", "?")), text
    assert len(rule.why) > 80, "the mechanism needs more than a phrase"
    assert len(rule.mend) > 40, "a reader must know what to do"
