"""The texts of prompts that a report carries: each once, long ones in pieces, all within bounds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from prefixguard.reports.html.segments import PromptView
from prefixguard.reports.html.turn import LaidOut

MOST_OF_ONE = 100_000
MOST_OF_ALL = 24_000_000
_TAIL = 20_000
_AROUND = 8_000
_EXCERPT = 400
_PART = 400_000

type Pieces = list[tuple[int, str]]


@dataclass(slots=True)
class _Wanted:
    """A text of the session at hand. at: where turns part in it. broke: it is part of a break."""

    text: str
    at: set[int] = field(default_factory=set)
    broke: bool = False


class Texts:
    """Collects the texts of one session after the other, within one budget for the report.

    cut: how many texts are not there in full.
    """

    def __init__(self, most: int = MOST_OF_ALL) -> None:
        self.cut = 0
        self._left = most
        self._wanted: dict[str, _Wanted] = {}

    def begin(self) -> None:
        """Starts another session."""
        self._wanted = {}

    def see(self, view: PromptView, broke: bool, prompts: LaidOut, index: int) -> None:
        """Takes the texts of a turn's prompt; of those known already only where the turn parts."""
        laid = prompts.laid_out(index)
        if laid is None:
            return
        segments = laid[0].prompt.segments
        for i, entry in enumerate(view.segments):
            if entry.ref not in self._wanted:
                self._wanted[entry.ref] = _Wanted(segments[i].text)
        if view.parted is not None:
            wanted = self._wanted[view.segments[view.parted[0]].ref]
            wanted.at.add(view.parted[1])
            wanted.broke = wanted.broke or broke

    def parts(self) -> Iterator[dict[str, Pieces]]:
        """The session's texts in parts of about 400,000 characters: identity -> (start, piece) in order."""
        part: dict[str, Pieces] = {}
        size = 0
        for ref, wanted in sorted(self._wanted.items(), key=lambda item: not item[1].broke):
            pieces = self._pieces(wanted)
            part[ref] = pieces
            size += sum(len(text) for _, text in pieces)
            if size > _PART:
                yield part
                part, size = {}, 0
        if part:
            yield part

    def _pieces(self, wanted: _Wanted) -> Pieces:
        text = wanted.text
        if len(text) <= min(MOST_OF_ONE, self._left):
            self._left -= len(text)
            return [(0, text)]
        self.cut += 1
        if self._left < MOST_OF_ONE:
            return [(0, text[:_EXCERPT])]
        around = [(max(0, at - _AROUND), at + _AROUND) for at in sorted(wanted.at)[:4]]
        head = MOST_OF_ONE - _TAIL - 2 * _AROUND * len(around)
        spans = sorted([(0, head), *around, (len(text) - _TAIL, len(text))])
        merged: list[list[int]] = []
        for start, end in spans:
            if merged and start <= merged[-1][1]:
                merged[-1][1] = max(merged[-1][1], end)
            else:
                merged.append([start, end])
        pieces = [(start, text[start:end]) for start, end in merged]
        self._left -= sum(len(piece) for _, piece in pieces)
        return pieces
