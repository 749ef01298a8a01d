"""A line plot of shares over sizes as SVG, with nothing from outside: it can be mailed or put in a page."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

_WIDTH, _HEIGHT = 760, 400
_LEFT, _RIGHT, _TOP, _BOTTOM = 60, 190, 40, 50
_COLOURS = ("#2563ae", "#c2410c", "#15803d", "#7c3aed", "#b45309", "#0e7490", "#be185d", "#4b5563")


@dataclass(frozen=True, slots=True)
class Line:
    """points: (size, share between 0 and 1), in the order of sizes."""

    name: str
    points: tuple[tuple[float, float], ...]
    dashed: bool = False


def plot_svg(lines: Sequence[Line], *, title: str, x_label: str, memory: bool = False) -> str:
    """The plot. memory: sizes are bytes. Sizes over a factor of ten are spread by their logarithms."""
    sizes = sorted({size for line in lines for size, _ in line.points})
    low, high = (sizes[0], sizes[-1]) if sizes else (1.0, 1.0)
    by_log = low > 0 and high / low > 10

    def across(size: float) -> float:
        if high == low:
            share = 0.5
        elif by_log:
            share = math.log(size / low) / math.log(high / low)
        else:
            share = (size - low) / (high - low)
        return _LEFT + share * (_WIDTH - _LEFT - _RIGHT)

    def down(share: float) -> float:
        return _HEIGHT - _BOTTOM - share * (_HEIGHT - _TOP - _BOTTOM)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" '
        f'font-family="system-ui,sans-serif" font-size="12" fill="#1c2430"><title>{escape(title)}</title>',
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#fff"/>',
        f'<text x="{_LEFT}" y="22" font-size="14" font-weight="600">{escape(title)}</text>',
    ]
    for percent in range(0, 101, 20):
        y = down(percent / 100)
        parts.append(f'<path d="M{_LEFT} {y:.1f}H{_WIDTH - _RIGHT}" stroke="#e2e6ec"/>')
        parts.append(f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{percent} %</text>')
    for size in _spread([(across(size), size) for size in sizes]):
        parts.append(f'<path d="M{across(size):.1f} {down(0):.1f}v5" stroke="#5b6675"/>')
        at = f'x="{across(size):.1f}" y="{down(0) + 19:.1f}"'
        parts.append(f'<text {at} text-anchor="middle">{_words(size, memory)}</text>')
    middle = (_LEFT + _WIDTH - _RIGHT) / 2
    parts.append(f'<text x="{middle}" y="{_HEIGHT - 10}" text-anchor="middle">{escape(x_label)}</text>')
    names = list(dict.fromkeys(line.name.removesuffix("mended").strip() for line in lines))
    for i, line in enumerate(lines):
        colour = _COLOURS[names.index(line.name.removesuffix("mended").strip()) % len(_COLOURS)]
        dash = ' stroke-dasharray="6 4"' if line.dashed else ""
        places = " ".join(f"{across(x):.1f},{down(y):.1f}" for x, y in line.points)
        parts.append(f'<polyline points="{places}" fill="none" stroke="{colour}" stroke-width="2"{dash}/>')
        parts += [
            f'<circle cx="{across(x):.1f}" cy="{down(y):.1f}" r="3" fill="{colour}"/>' for x, y in line.points
        ]
        y = _TOP + 14 + 18 * i
        parts.append(
            f'<path d="M{_WIDTH - _RIGHT + 15} {y - 4}h24" stroke="{colour}" stroke-width="2"{dash}/>'
            f'<text x="{_WIDTH - _RIGHT + 46}" y="{y}">{escape(line.name)}</text>'
        )
    return "".join(parts) + "</svg>"


def _spread(places: Sequence[tuple[float, float]], gap: float = 60) -> list[float]:
    """Those sizes whose labels do not touch the one before."""
    found: list[float] = []
    last = -gap
    for place, size in places:
        if place - last >= gap:
            found.append(size)
            last = place
    return found


def _words(size: float, memory: bool) -> str:
    units = ((1 << 30, "GiB"), (1 << 20, "MiB")) if memory else ((1e9, "G"), (1e6, "M"), (1e3, "k"))
    for unit, name in units:
        if size >= unit:
            return f"{size / unit:.3g} {name}" if memory else f"{size / unit:.3g}{name}"
    return f"{size:.0f}"
