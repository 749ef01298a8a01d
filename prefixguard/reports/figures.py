"""How figures are written for people, the same in every format.

Unknown is `?` and never 0; "does not apply" is `-`; an estimate carries `~`.
"""

from __future__ import annotations

from statistics import median

from prefixguard.turn import Cost, Session, Turn

UNKNOWN = "?"
NONE = "-"

_SIGNS = {"USD": "$", "EUR": "€", "GBP": "£"}


def tokens(count: int | None, *, estimated: bool = False) -> str:
    """A token count in at most five characters: 950, 9.5k, 95k, 1.2M."""
    if count is None:
        return UNKNOWN
    mark = "~" if estimated else ""
    if abs(count) < 1000:
        return f"{mark}{count}"
    for factor, unit in ((1e3, "k"), (1e6, "M"), (1e9, "G")):
        # 999,950 would round to 1000.0k: the next unit is the readable one.
        if abs(count) < factor * 999.5 or unit == "G":
            value = count / factor
            return f"{mark}{value:.1f}{unit}" if abs(value) < 99.95 else f"{mark}{value:.0f}{unit}"
    raise AssertionError


def exact_tokens(count: int | None, *, estimated: bool = False) -> str:
    """A token count in full, with separators: 12,345. Nothing is never an estimate."""
    return UNKNOWN if count is None else f"{'~' if estimated and count else ''}{count:,}"


def percent(share: float | None) -> str:
    """A share of one in per cent, never rounded up to 100 % nor down to 0 %."""
    if share is None:
        return UNKNOWN
    value = share * 100
    if 99 < value < 100:
        return f"{min(value, 99.9):.1f} %"
    if 0 < value < 1:
        return f"{max(value, 0.1):.1f} %"
    return f"{value:.0f} %"


def bill(cost: Cost) -> str:
    """What was paid: one amount, or the range that it lies in."""
    if cost.least is None or cost.most is None or money(cost.least, cost) == money(cost.most, cost):
        return money(cost.actual, cost)
    return f"{money(cost.least, cost)} to {money(cost.most, cost).removeprefix('~')}"


def money(amount: float | None, cost: Cost) -> str:
    """An amount in the currency of `cost`, marked when that cost is estimated."""
    if amount is None:
        return UNKNOWN
    size = abs(amount)
    digits = 2 if size >= 1 or size == 0 else 3 if size >= 0.1 else 4
    sign = _SIGNS.get(cost.currency)
    if 0 < size < 0.00005:
        number = "<0.0001"
        body = f"<{sign}0.0001" if sign else f"{number} {cost.currency}"
    else:
        number = f"{size:,.{digits}f}"
        body = f"{sign}{number}" if sign else f"{number} {cost.currency}"
    return f"{'~' if cost.estimated else ''}{'-' if amount < 0 else ''}{body}"


def seconds(milliseconds: float | None) -> str:
    """A duration in seconds, from milliseconds."""
    if milliseconds is None:
        return UNKNOWN
    value = milliseconds / 1000
    return f"{value:.2f} s" if value < 1 else f"{value:.1f} s" if value < 100 else f"{value:.0f} s"


def duration(value: float) -> str:
    """A span of time, from seconds: 45 s, 3 min 20 s, 2 h 5 min."""
    whole = max(0, round(value))
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"


def clock(value: float) -> str:
    """A moment within a session, from seconds since its start: 3:20, 1:02:05."""
    whole = max(0, int(value))
    hours, rest = divmod(whole, 3600)
    minutes, last = divmod(rest, 60)
    return f"{hours}:{minutes:02}:{last:02}" if hours else f"{minutes}:{last:02}"


def plural(count: int, one: str, many: str | None = None) -> str:
    """`1 turn`, `2 turns`."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def is_unseen(session: Session) -> bool:
    """Whether a record holds no prompt of a session, so that its breaks are unknown, not none."""
    return bool(session.turns) and all("prompt" in turn.unseen for turn in session.turns)


def shape(turn: Turn) -> str:
    """A turn's shape; `?` where its prompt was not seen and its figures are not those of an append."""
    guessed = "prompt" in turn.unseen and turn.parent is None and turn.cache is not None
    return UNKNOWN if guessed else turn.shape


def prompt_tokens(turn: Turn) -> tuple[int, bool]:
    """The size of a turn's prompt, and whether that is an estimate: the server's count where there is one."""
    if turn.usage is not None:
        return turn.usage.total, False
    return turn.tokens.prompt, not turn.tokens.exact


def cached_share(turn: Turn) -> float | None:
    """The share of the prompt that the server read from its cache; None where it did not say."""
    usage = turn.usage
    if usage is None or usage.read is None or usage.total == 0:
        return None
    return usage.read / usage.total


def rewrite_factor(session: Session) -> float | None:
    """How often the largest prompt was computed: tokens computed (uncached or written) over its size.

    1.0 says that every token was computed once. None where the server does not
    report cached tokens on every turn.
    """
    computed = largest = 0
    for turn in session.turns:
        if turn.usage is None:
            continue
        if turn.usage.read is None:
            return None
        computed += turn.usage.total - turn.usage.read
        largest = max(largest, turn.usage.total)
    return computed / largest if largest else None


def usual_first_token_ms(session: Session) -> float | None:
    """The median time to the first token over the session's continuing turns without a break."""
    times = [
        turn.timing.first_token_ms
        for turn in session.turns
        if turn.parent is not None and not turn.is_break and turn.timing.first_token_ms is not None
    ]
    return median(times) if times else None


def is_estimated(session: Session) -> bool:
    """Whether token counts of the session are estimates."""
    return any(not turn.tokens.exact for turn in session.turns)
