"""Whether the proxy changed anything: a run behind it against the same run without it.

Two runs of an agent are never equal to the byte: they mint ids and tell the
time. So they are compared with those taken out; and what the recorder kept is
compared byte for byte with what the upstream received.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from bench.agents.lab import Outcome
from bench.agents.upstream import Received

_MINTED = (
    (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "UUID"),
    (r"\b[a-z_]+_\d{13}_\d+\b|Process Group PGID: \d+", "ID"),
    (r"\b(ses|msg|prt|call|toolu|fc|fco|resp|chatcmpl|cch|session|sdk|wf|req)[_-][0-9A-Za-z]{10,}", "ID"),
    (r"127\.0\.0\.1:\d+", "HERE"),
    (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?", "TIME"),
    (r"\d\d?:\d\d:\d\d(\.\d+)?", "TIME"),
    (r"\b\d{10}(\d{3})?(\.\d+)?\b", "TIME"),
    (r"\b[0-9a-f]{16,}\b", "HEX"),
    (r"\b\d+(\.\d+)? ?(ms|s|seconds|milliseconds)\b", "LONG"),
    (r"\"(elapsed|duration|time|timeout|pid)[A-Za-z_]*\": ?[\d.]+", "LONG"),
    (r"Chunk ID: [0-9a-f]+|cch=[0-9a-f]+", "ID"),
)
_PASSING = frozenset(
    {"host", "content-length", "connection", "proxy-connection", "accept-encoding", "transfer-encoding"}
)


@dataclass(frozen=True)
class Comparison:
    """A run behind the proxy against one without.

    codes: the exit codes are the same. prompts: so are the prompts, with what
    was minted taken out; agents list sets in any order, so the order of words
    is left out, too. headers: and the names of their headers.
    files: and what the agent left in the project. intact: what was recorded is
    what the upstream received and sent, byte for byte.
    """

    codes: bool
    prompts: bool
    headers: bool
    files: bool
    intact: bool
    differences: tuple[str, ...]

    @property
    def holds(self) -> bool:
        return self.codes and self.prompts and self.files and self.intact and self.headers


def prompts_of(outcome: Outcome) -> list[Received]:
    """The requests that a model answers."""
    return [r for r in outcome.received if r.api is not None and r.method in ("POST", "WEBSOCKET")]


def compare(alone: Outcome, behind: Outcome) -> Comparison:
    """behind: with a store. Raises StoreError."""
    notes: list[str] = []
    ours, theirs = prompts_of(behind), prompts_of(alone)
    codes = [p.code for p in behind.processes] == [p.code for p in alone.processes]
    if not codes:
        notes.append(
            f"exit codes {[p.code for p in alone.processes]} became {[p.code for p in behind.processes]}"
        )
    one, two = Counter(map(_settled, theirs)), Counter(map(_settled, ours))
    if one != two:
        notes.append(f"{len(theirs)} prompts became {len(ours)}: {_first_difference(one - two, two - one)}")
    headers = [_names(r) for r in theirs] == [_names(r) for r in ours]
    if not headers and len(theirs) == len(ours):
        a, b = next((a, b) for a, b in zip(map(_names, theirs), map(_names, ours), strict=True) if a != b)
        notes.append(f"header names: {sorted(set(a) ^ set(b)) or 'their order'}")
    files = _calm(alone.files) == _calm(behind.files)
    if not files:
        notes.append("the project's files differ")
    intact = _recorded(behind) == Counter((r.digest, _digest(r.answer)) for r in ours)
    if not intact:
        notes.append("what was recorded is not what the upstream received and sent")
        told = (line for process in behind.processes for line in process.err.splitlines())
        notes += [line for line in told if line.startswith("prefixguard: ") and "recording" not in line]
    return Comparison(codes, one == two, headers, files, intact, tuple(notes))


def _settled(request: Received) -> str:
    """A prompt as text without what was minted."""
    text = json.dumps(request.prompt or request.body.decode("utf-8", "replace"), sort_keys=True)
    for pattern, word in _MINTED:
        text = re.sub(pattern, word, text)
    return " ".join(sorted(re.findall(r"\w+", text)))


def _first_difference(one: Counter[str], two: Counter[str]) -> str:
    if not one or not two:
        return "some are missing or new"
    a, b = next(iter(one)), next(iter(two))
    at = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    return f"...{a[max(0, at - 60) : at + 60]!r} against ...{b[max(0, at - 60) : at + 60]!r}"


def _names(request: Received) -> tuple[str, ...]:
    return tuple(name for name, _ in request.headers if name.lower() not in _PASSING)


def _calm(files: dict[str, bytes]) -> dict[str, bytes]:
    """Without logs and histories, which tell the time."""
    return {name: data for name, data in files.items() if not re.search(r"\.aider|__pycache__|\.log$", name)}


def _recorded(outcome: Outcome) -> Counter[tuple[str, str]]:
    from prefixguard.store import Store

    assert outcome.store is not None
    found: Counter[tuple[str, str]] = Counter()
    with Store.open(outcome.store) as store:
        for exchange in store.exchanges():
            capture = store.capture(json.loads(exchange.extra["id"]))
            answer = capture.response_body
            if capture.transport == "websocket":
                answer = answer.removesuffix(b"\n")
            found[_digest(capture.body), _digest(answer)] += 1
    return found


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def agree(comparisons: Sequence[Comparison]) -> bool:
    """Whether the proxy changed nothing in any mode."""
    return all(comparison.holds for comparison in comparisons)
