"""Asks a recorded session again of a real server, and measures what it reads from its cache.

measure(exchanges, bench_for(attach(url))) -> trial.Trial
"""

from prefixguard.engines.replay.benches import Bench, bench_for
from prefixguard.engines.replay.playing import Progress, measure

__all__ = ["Bench", "Progress", "bench_for", "measure"]
