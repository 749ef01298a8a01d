"""The demo: one small agent, with a clock in its prompt and without, on a real server of our own."""

from prefixguard.engines.demo.play import Demo, Stage, play
from prefixguard.engines.demo.sheet import sheet

__all__ = ["Demo", "Stage", "play", "sheet"]
