"""Ten thousand requests of 50,000 tokens: what a team sends in a day, analysed as a log.

    python -m bench scale

200 sessions of 50 turns, made up while they are read, so that nothing but the
analysis holds memory. CPU is that of the analysis alone; memory is the whole
process at its largest, the texts that sessions are cut from included.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

from bench.rows import Row

SESSIONS = 200
TURNS = 50
AT_ONCE = 20
MOST_CPU = 60.0
MOST_MEMORY = 300.0


def measure(sessions: int = SESSIONS, at_once: int = AT_ONCE) -> dict[str, float]:
    """Analyses the log in this process; figures in seconds and MB."""
    from bench.workload import Size, library_text, many_sessions
    from prefixguard.analysis import Fold, Options
    from prefixguard.cli import settle_heap
    from prefixguard.rulebook import Rulebook

    settle_heap()  # as the command does
    library_text()
    held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    rulebook = Rulebook()
    fold = Fold(rulebook, Options.standard(rulebook))
    spent, sent = 0.0, 0
    slowest = 0.0
    for exchange in many_sessions(sessions, Size(turns=TURNS), at_once=at_once):
        sent += len(exchange.request)
        start = time.process_time()
        fold.step(exchange)
        took = time.process_time() - start
        spent += took
        slowest = max(slowest, took)
    start = time.process_time()
    result = fold.result()
    spent += time.process_time() - start
    turns = [turn for session in result.sessions for turn in session.turns]
    shapes = Counter(turn.shape for turn in turns)
    return {
        "requests": len(turns), "tokens": sum(t.tokens.prompt for t in turns), "bytes": sent, "cpu": spent,
        "slowest": slowest, "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, "held": held,
        "breaks": sum(t.is_break for t in turns), "appends": shapes["append"], "changed": shapes["changed"],
    }  # fmt: skip


def run() -> list[Row]:
    """The figures, taken in a process of its own. Takes about two minutes."""
    done = subprocess.run(
        [sys.executable, "-m", "bench.scale", "--here"], check=True, capture_output=True, text=True,
        cwd=Path(__file__).parent.parent, env=dict(os.environ),
    )  # fmt: skip
    found = json.loads(done.stdout)
    each = found["tokens"] / found["requests"]
    return [
        Row(
            "requests analysed",
            f"{found['requests']:,.0f} of {each:,.0f} tokens, {found['bytes'] / 1e9:.2f} GB",
        ),
        Row("breaks found", f"{found['breaks']:,.0f}, and {found['appends']:,.0f} appends"),
        Row("CPU", f"{found['cpu']:.1f} s", f"<= {MOST_CPU:.0f} s", found["cpu"] <= MOST_CPU),
        Row("CPU of the slowest request", f"{found['slowest'] * 1000:.0f} ms"),
        Row(
            "memory at most", f"{found['peak']:.0f} MB ({found['held']:.0f} MB before the first request)",
            f"<= {MOST_MEMORY:.0f} MB", found["peak"] <= MOST_MEMORY,
        ),
    ]  # fmt: skip


if __name__ == "__main__":
    if "--here" in sys.argv:
        print(json.dumps(measure(*(int(a) for a in sys.argv[1:] if a.isdecimal()))))
    else:
        from bench.rows import show

        show("scale", run())
