"""A pool of KV blocks in memory: what a recorded workload would read from it, and at what size.

Pure, like the core below it: a workload and a size in, counts out.
"""

from prefixguard.simulate.capacity import Capacity, Run, Setting, Simulator
from prefixguard.simulate.play import Outcome, Prefill, play
from prefixguard.simulate.pool import Lease, Pool
from prefixguard.simulate.sessions import Recorded, from_sessions
from prefixguard.simulate.workload import Keys, Piece, Request, Workload, at_once, from_hashes

__all__ = [
    "Capacity",
    "Keys",
    "Lease",
    "Outcome",
    "Piece",
    "Pool",
    "Prefill",
    "Recorded",
    "Request",
    "Run",
    "Setting",
    "Simulator",
    "Workload",
    "at_once",
    "from_hashes",
    "from_sessions",
    "play",
]
