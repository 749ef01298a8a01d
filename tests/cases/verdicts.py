"""What a scenario says of a turn, in one call each: a named break, silence, a miss."""

from __future__ import annotations

from collections.abc import Iterable

from prefixguard.finding import Finding
from prefixguard.turn import Turn


def told(turn: Turn) -> str:
    """A turn in one line, for failure messages."""
    at = turn.divergence.pointer if turn.divergence else None
    found = [f"{f.code} {f.severity} {f.message}" for f in turn.findings]
    what = f"turn {turn.index}: {turn.shape} of {turn.parent}, break {turn.is_break}"
    return f"{what}, at {at}, {turn.tokens}, {found}"


def same_place(found: str, expected: str) -> bool:
    """Equal, or one lies inside the other."""
    a, b = found.strip("/").split("/"), expected.strip("/").split("/")
    n = min(len(a), len(b))
    return a[:n] == b[:n]


def primary(turn: Turn) -> Finding:
    """The finding that explains the divergence."""
    found = [f for f in turn.findings if f.primary]
    assert found, told(turn)
    return found[0]


def breaks(
    turn: Turn,
    code: str | Iterable[str],
    pointer: str | None = None,
    *,
    deliberate: bool | None = False,
    parent: int | None = None,
    kind: str | None = None,
) -> None:
    """The turn is a break of this name at this place."""
    codes = {code} if isinstance(code, str) else set(code)
    assert turn.is_break, told(turn)
    assert primary(turn).code in codes, told(turn)
    assert turn.shape in ("changed", "side"), told(turn)
    assert turn.divergence is not None, told(turn)
    assert turn.parent == (turn.index - 1 if parent is None else parent), told(turn)
    if deliberate is not None:
        assert primary(turn).deliberate is deliberate, told(turn)
        assert turn.is_fault is not deliberate, told(turn)
    assert turn.tokens.rebilled <= min(turn.tokens.lost, turn.tokens.prompt), told(turn)
    assert turn.tokens.rebilled or primary(turn).code == "PG303", told(turn)
    if pointer is not None:
        assert same_place(turn.divergence.pointer, pointer), told(turn)
        assert len(turn.divergence.pointer.split("/")) >= min(3, len(pointer.split("/"))), told(turn)
    if kind is not None:
        assert turn.divergence.kind == kind, told(turn)


def silent(turns: Iterable[Turn], but: Iterable[str] = ()) -> None:
    """No break, and nothing that a reader would have to look at. `but`: codes that may be said."""
    for turn in turns:
        assert not turn.is_break, told(turn)
        loud = [f for f in turn.findings if f.severity != "info" and f.code not in set(but)]
        assert not loud, told(turn)
        assert turn.tokens.rebilled == 0 or turn.shape == "changed", told(turn)


def says(turn: Turn, code: str) -> Finding:
    """The turn's finding of this code."""
    found = [f for f in turn.findings if f.code == code]
    assert found, told(turn)
    return found[0]


def does_not_say(turns: Iterable[Turn], *codes: str) -> None:
    for turn in turns:
        assert not [f for f in turn.findings if f.code in codes], told(turn)
