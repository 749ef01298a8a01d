"""Finding the parent of a request among 10,000 sessions, against looking at every one of them.

No client names its session here, and sessions share tools and system texts, so
that only their histories tell them apart. The scan judges the latest request of every
session and keeps the best; both must come to the same parent.
"""

from __future__ import annotations

import dataclasses
import random
import time
from collections.abc import Iterator

from bench.rows import Row
from bench.workload import AgentSession, Size
from prefixguard.exchange import Exchange
from prefixguard.lineage import Lineage, Match, Node, _order
from prefixguard.tokens.counter import Counter
from prefixguard.wire.decoder import Decoder

SESSIONS = 10_000
ASKED = 200
MOST = 1 / 100


class Words:
    """A tokenizer quick enough to build ten thousand sessions: four characters are a token."""

    name, exact = "characters", False

    def count(self, text: str) -> int:
        return len(text) // 4 + 1


def _session(number: int) -> Iterator[Exchange]:
    """Two requests: an opening, and the turn that continues it."""
    size = Size(head=6100, first=1200, turn=300, turns=2)
    return AgentSession(f"s{number}", number, size, keyed=False).exchanges(float(number))


def _node(index: int, exchange: Exchange, decoder: Decoder, counter: Counter) -> Node:
    reading = decoder.read(exchange)
    pool = "https://api.openai.com openai-chat"
    return Node(
        index,
        exchange.t,
        None,
        reading.prompt,
        reading.reply,
        scope=pool,
        pool=pool,
        counter=counter,
        keyed=False,
    )


def _scan(lineage: Lineage, tips: list[Node], fresh: Node) -> Match | None:
    best: Match | None = None
    for node in tips:
        match = lineage._judge(node, fresh)
        if match is not None and (best is None or _order(match) > _order(best)):
            best = match
    return best


def run() -> list[Row]:
    """The figures. Takes about a minute."""
    decoder, counter, lineage = Decoder({}), Counter(Words()), Lineage()
    tips: list[Node] = []
    later: list[Exchange] = []
    for number in range(SESSIONS):
        first, second = _session(number)
        node = _node(number, first, decoder, counter)
        node.session = f"s{number}"
        lineage.add(node)
        tips.append(node)
        if number % (SESSIONS // ASKED) == 0:
            later.append(second)
    fresh = [
        _node(SESSIONS + i, dataclasses.replace(e, t=1e6 + i), decoder, counter) for i, e in enumerate(later)
    ]
    random.Random(1).shuffle(fresh)
    start = time.process_time()
    found = [lineage.parent(node) for node in fresh]
    indexed = time.process_time() - start
    unknown = [_node(2 * SESSIONS + i, next(_session(SESSIONS + i)), decoder, counter) for i in range(ASKED)]
    start = time.process_time()
    for node in unknown:
        lineage.parent(node)
    alone = time.process_time() - start
    start = time.process_time()
    scanned = [_scan(lineage, tips, node) for node in fresh[: ASKED // 10]]
    scan = (time.process_time() - start) * 10
    wrong = sum(a is None or b is None or a.node is not b.node for a, b in zip(found, scanned, strict=False))
    ratio = indexed / scan
    return [
        Row("sessions", f"{SESSIONS:,}, of which {ASKED} go on"),
        Row("parents that differ from the scan's", str(wrong), "0", wrong == 0),
        Row(
            "CPU to find a parent",
            f"{indexed / ASKED * 1000:.2f} ms; by the scan {scan / ASKED * 1000:.0f} ms",
        ),
        Row("CPU to place a new session's first request", f"{alone / ASKED * 1000:.2f} ms"),
        Row("index / scan", f"1/{1 / ratio:.0f}", "<= 1/100", ratio <= MOST),
    ]
