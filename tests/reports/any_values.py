"""Whatever an analysis might say, for property tests."""

from __future__ import annotations

from hypothesis import strategies as st

from prefixguard.exchange import Timing
from prefixguard.finding import Finding, SourceLine
from prefixguard.turn import (
    Analysis,
    CacheOutcome,
    CodeTotal,
    Cost,
    Divergence,
    Prices,
    Session,
    Tokens,
    Totals,
    Turn,
    Usage,
)

counts = st.integers(0, 2**53)
texts = st.text(st.characters(), max_size=12)  # halves of surrogate pairs, too
words = st.text("abc-", max_size=12)  # what this project itself says
money = st.none() | st.floats(-1e6, 1e6, allow_nan=False)
codes = st.from_regex(r"PG[0-9]{3}", fullmatch=True)
pointers = st.just("") | st.text(st.characters(), max_size=8).map(lambda text: "/" + text)
milliseconds = st.none() | st.floats(0, 1e9)

findings = st.builds(
    Finding,
    code=codes,
    name=words,
    message=texts,
    evidence=texts,
    pointer=pointers,
    severity=st.sampled_from(["info", "warning", "error"]),
    confidence=st.sampled_from(["high", "medium", "low"]),
    primary=st.booleans(),
    deliberate=st.booleans(),
    by=st.sampled_from(["client", "gateway", "server", "time"]),
    recurrence=st.sampled_from(["once", "event", "every-user-turn", "every-request"]),
    source=st.none() | st.builds(SourceLine, texts, st.integers(1, 10**6)),
)
divergences = st.builds(
    Divergence,
    against=counts,
    within=st.sampled_from(["turn", "parent"]),
    pointer=pointers,
    kind=st.sampled_from(["changed", "inserted", "removed", "moved", "reordered", "shape", "parameter"]),
    certainty=st.sampled_from(["certain", "server"]),
    char_offset=counts,
    token_offset=counts,
    before=texts,
    after=texts,
    before_at=counts,
    after_at=counts,
    group=texts,
)
costs = st.builds(Cost, words, money, money, money, money, st.booleans())
turns = st.builds(
    Turn,
    index=counts,
    t=st.floats(0, 1e10),
    status=st.none() | st.integers(100, 599),
    upstream=st.none() | texts,
    domain=texts,
    session=texts,
    thread=counts,
    parent=st.none() | counts,
    donor=st.none() | counts,
    shape=st.sampled_from(["first", "append", "retry", "rewind", "fork", "side", "changed"]),
    api=st.sampled_from(["openai-chat", "openai-responses", "anthropic-messages", "completions", "gemini"]),
    model=st.none() | texts,
    divergence=st.none() | divergences,
    findings=st.lists(findings, max_size=2).map(tuple),
    is_break=st.booleans(),
    tokens=st.builds(Tokens, counts, counts, counts, counts, texts, st.booleans()),
    usage=st.none()
    | st.builds(
        Usage,
        counts,
        st.none() | counts,
        st.dictionaries(st.sampled_from(["5m", "1h", "30m", "default"]), counts),
        st.none() | counts,
    ),
    cache=st.none()
    | st.builds(
        CacheOutcome,
        texts,
        texts,
        st.booleans(),
        counts,
        counts,
        st.none() | counts,
        st.sampled_from(["as-predicted", "less", "more", "not-reported"]),
    ),
    timing=st.builds(Timing, milliseconds, milliseconds),
    cost=costs,
    aborted=st.booleans(),
    note=texts,
)
totals = st.builds(
    Totals,
    counts,
    counts,
    counts,
    counts,
    st.none() | st.floats(0, 1),
    costs,
    st.dictionaries(codes, st.builds(CodeTotal, counts, counts, money), max_size=2),
)
sessions = st.builds(
    Session,
    texts,
    st.sampled_from(["header", "body", "content"]),
    texts,
    st.lists(turns, max_size=2).map(tuple),
    totals,
)
analyses = st.builds(
    Analysis,
    texts,
    st.none() | st.builds(Prices, words, words, words),
    st.lists(sessions, max_size=2).map(tuple),
)
