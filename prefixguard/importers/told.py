"""What an import has to say: how much it read, what it passed over, what the format did not keep.

Filled by the readers while they read, printed once at the end: a figure that
is missing here would be believed to be zero.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

PROBLEMS_KEPT = 20

LOSSES = {
    "prompt": "prompts (so only the usage figures are analysed, and no break can be seen)",
    "system": "the system text",
    "tools": "tool definitions",
    "breakpoints": "cache breakpoints",
    "parameters": "request parameters",
    "order": "the order of fields",
    "bytes": "the exact bytes",
    "headers": "request headers",
    "response": "responses",
    "usage": "usage figures",
    "timing": "times",
}
"""Parts of a request that a format may not keep, in words, the gravest first."""


class Told:
    """The account of one file. name: the file; title: its format."""

    def __init__(self, name: str, title: str = "") -> None:
        self.name = name
        self.title = title
        self.producer = ""
        self.requests = 0
        self.known = 0
        """Requests that the store had already."""
        self.aside: Counter[str] = Counter()
        """Entries that are no requests to a model, by what they are."""
        self.lost: Counter[str] = Counter()
        self.problems: list[str] = []
        self.troubled = 0
        """Entries that could not be read; `problems` names the first of them."""
        self.seen: set[str] = set()
        """Requests by the name that the format gives them, to know those that come twice."""

    def problem(self, where: str, what: object) -> None:
        """An entry could not be read. where: "line 3", "entry 7"."""
        self.troubled += 1
        if len(self.problems) < PROBLEMS_KEPT:
            text = " ".join(str(what).split())
            self.problems.append(f"{self.name}: {where}: {text[:300]}")

    def took(self, lost: Iterable[str] = ()) -> None:
        """A request was read; `lost` is what is missing of it."""
        self.requests += 1
        self.lost.update(lost)

    def lines(self) -> list[str]:
        """What to print: one line for the file, one for each entry that could not be read."""
        if self.problems and not self.requests and not self.aside:
            return self.trouble()
        by = f" by {self.producer}" if self.producer else ""
        parts = [f"{self.name}: {self.requests:,} {_plural('request', self.requests)} ({self.title}{by})"]
        if self.aside:
            told = ", ".join(f"{what} ({count:,})" for what, count in self.aside.most_common())
            parts.append(f"passed over: {told}")
        if lost := self.not_kept():
            parts.append(f"not in the file: {lost}")
        return ["; ".join(parts), *self.trouble()]

    def trouble(self) -> list[str]:
        """A line for each entry that could not be read, as far as they are kept."""
        found = [*self.problems]
        more = self.troubled - len(self.problems)
        if more > 0:
            found.append(f"{self.name}: {more:,} more entries could not be read")
        return found

    def not_kept(self) -> str:
        """What the format did not keep, in words; "" when nothing is known to be missing."""
        said = []
        for part, words in LOSSES.items():
            count = self.lost[part]
            if count:
                some = "" if count >= self.requests else f" of {count:,}"
                said.append(words + some)
        return ", ".join(said)


def told_together(accounts: Sequence[Told], most: int = 4) -> list[str]:
    """What to print of several files: a line each, or, where they are many, one for each format."""
    if len(accounts) <= most:
        return [line for told in accounts for line in told.lines()]
    found = []
    for title in dict.fromkeys(told.title for told in accounts):
        mine = [told for told in accounts if told.title == title]
        whole = Told(f"{len(mine):,} file{'s' * (len(mine) != 1)}", title)
        whole.producer = ", ".join(sorted({told.producer for told in mine if told.producer})[:3])
        for told in mine:
            whole.requests += told.requests
            whole.aside.update(told.aside)
            whole.lost.update(told.lost)
        if whole.requests or whole.aside:
            found += whole.lines()
        found += [line for told in mine for line in told.trouble()]
    return found


def _plural(word: str, count: int) -> str:
    return word if count == 1 else f"{word}s"
