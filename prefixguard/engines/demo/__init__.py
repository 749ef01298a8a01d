"""The demo: one small agent, with a clock in its prompt and without, on a real server of our own."""

from prefixguard.engines.demo.runs import Demo, Stage, play
from prefixguard.engines.demo.side_by_side import sheet

__all__ = ["Demo", "Stage", "play", "sheet"]
