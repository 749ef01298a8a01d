"""What the pages are fed from: units, and the exchanges that come into them.

A unit is what is folded on its own: a recorded session, or a log. The same
exchanges, folded by `prefixguard report`, give the same figures.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from prefixguard.exchange import Exchange


@dataclass(frozen=True, slots=True)
class Unit:
    """What is known of a unit before anything of it is read.

    key: names it, for as long as the server runs. source: the log that it
    comes from; "" for the record. t: when its latest exchange
    began, in seconds since the epoch; 0.0 where a log counts from its own
    start. exchanges: how many there are.
    """

    key: str
    source: str = ""
    agent: str | None = None
    t: float = 0.0
    exchanges: int = 0
    recording: tuple[str, ...] = ("full",)


@dataclass(slots=True)
class News:
    """What happened since it was asked last.

    units: those that are new, or of which more is known. added: numbers of new
    exchanges by unit. afresh: units whose exchanges are not those that were
    read before. gone: units that are no more. left_out: how many older units
    are not looked at; None where that is as it was.
    """

    units: dict[str, Unit] = field(default_factory=dict)
    added: dict[str, list[int]] = field(default_factory=dict)
    afresh: set[str] = field(default_factory=set)
    gone: set[str] = field(default_factory=set)
    left_out: int | None = None

    def __bool__(self) -> bool:
        return bool(self.units or self.added or self.afresh or self.gone)


@dataclass(frozen=True, slots=True)
class Found:
    """A text that was looked for. index: the exchange's place in its unit. excerpt: what stands around it."""

    unit: str
    index: int
    excerpt: str


class Feed(Protocol):
    """Where units come from. Used from one thread, but for `search`."""

    remarks: tuple[str, ...]
    """What has to be said of what is watched: what another tool's file does not hold, say."""

    @property
    def name(self) -> str:
        """What is watched, for people."""
        ...

    def news(self) -> News:
        """What is new; everything, the first time. Raises PrefixGuardError when it cannot be known now."""
        ...

    def read(self, unit: str, numbers: Sequence[int] | None = None) -> Iterator[tuple[int, Exchange]]:
        """(number, exchange) of a unit, or those of it that are numbered, in order of time."""
        ...

    def search(self, text: str, most: int) -> list[Found]:
        """Where a text came into the prompts, at most so many places. May be called from any thread."""
        ...

    def close(self) -> None:
        """Lets go of what is open."""
        ...


class Feeds:
    """Several feeds as one."""

    def __init__(self, feeds: Sequence[Feed]) -> None:
        self._feeds = feeds
        self.remarks = tuple(remark for feed in feeds for remark in feed.remarks)
        self._owner: dict[str, Feed] = {}

    @property
    def name(self) -> str:
        return ", ".join(feed.name for feed in self._feeds)

    def news(self) -> News:
        news = News()
        for feed in self._feeds:
            one = feed.news()
            self._owner |= dict.fromkeys((*one.units, *one.added, *one.afresh), feed)
            news.units |= one.units
            news.added |= one.added
            news.afresh |= one.afresh
            news.gone |= one.gone
            if one.left_out is not None:
                news.left_out = one.left_out
        return news

    def read(self, unit: str, numbers: Sequence[int] | None = None) -> Iterator[tuple[int, Exchange]]:
        feed = self._owner.get(unit)
        return feed.read(unit, numbers) if feed is not None else iter(())

    def search(self, text: str, most: int) -> list[Found]:
        return [found for feed in self._feeds for found in feed.search(text, most)][:most]

    def close(self) -> None:
        for feed in self._feeds:
            feed.close()
