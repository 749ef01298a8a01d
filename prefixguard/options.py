"""What a user may say about an analysis."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import Any

from prefixguard.costs import ListPricer, Pricer, PriceTable
from prefixguard.rendering.template import ChatTemplate
from prefixguard.rulebook import Rulebook
from prefixguard.tokens.counter import Tokenizer


@dataclass(frozen=True, slots=True)
class Options:
    """The options of a fold.

    server: name of a cache rule, with options. template: the server's chat
    template. tokenizer: counts everything. deliberate: codes that were decided
    on. pricer: prices turns; without one, costs are unknown. local: the server
    is the user's own, so that tokens have no price. price_date: prices of this
    day instead of the request's.
    """

    server: str | None = None
    template: ChatTemplate | None = None
    tokenizer: Tokenizer | None = None
    deliberate: frozenset[str] = frozenset()
    pricer: Pricer | None = None
    local: bool = False
    price_date: datetime.date | None = None

    @classmethod
    def standard(cls, rulebook: Rulebook, *, server: str | None = None, **more: Any) -> Options:
        """The options that commands start from: list prices from the rulebook."""
        return cls(server=server, pricer=ListPricer(rulebook.tables("prices", PriceTable)), **more)
