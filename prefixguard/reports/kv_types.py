"""Formats of keys and values against 16 bits: `prefixguard-measure-kv/1`, tables for readers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from statistics import median
from typing import Any

import msgspec
from rich import box
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from prefixguard.kv.drift import Comparison, Drift, FormatTrial, Kept

FORMATS = ("text", "json", "markdown")
_COLUMNS = (
    "K", "V", "MiB", "of f16", "as computed", "parts at token", "KL mean", "median", "p99", "same first",
)  # fmt: skip
_KEYS_AND_VALUES = ("format", "on keys", "on values", "keys / values", "positions where keys drift further")
_ABOVE_ROUNDING = 2.0
"""How many times what rounding alone does a mean must be, to say anything of a format."""

# -- for programs ------------------------------------------------------------------------------


def formats_to_json(trial: FormatTrial) -> bytes:
    """`prefixguard-measure-kv/1`. Divergences are in nats; unknown is null, and so is never parting."""
    fields = {
        "schema": "prefixguard-measure-kv/1",
        "engine": {"name": trial.engine, "program": trial.program, "model": trial.model},
        "context": trial.context,
        "prompts": [
            {"prompt_tokens": tokens, "reply_tokens": reply}
            for tokens, reply in zip(trial.tokens, trial.replies, strict=True)
        ],
        "positions": sum(trial.replies),
        "tokens_named": trial.named,
        "reference": _memory(trial.reference),
        "rounding": None if trial.rounding is None else _divergence(trial.rounding),
        "formats": [_row(kept) for kept in trial.tried],
        "keys_against_values": [
            {
                "format": found.format,
                "keys_mean": found.keys.mean,
                "values_mean": found.values.mean,
                "positions_keys_worse": found.worse_keys,
                "positions": found.positions,
            }
            for found in trial.comparisons()
        ],
        "notes": list(trial.notes),
    }
    return msgspec.json.format(msgspec.json.encode(fields), indent=2) + b"\n"


def _memory(kept: Kept) -> dict[str, Any]:
    return {
        "key": kept.key,
        "value": kept.value,
        "logged_key_mib": kept.key_mib,
        "logged_value_mib": kept.value_mib,
        "computed_bytes": kept.computed,
        "as_computed": kept.as_computed,
    }


def _row(kept: Kept) -> dict[str, Any]:
    if kept.drift is None:
        return {**_memory(kept), "problem": kept.problem}
    return {
        **_memory(kept),
        "problem": None,
        "first_different_token": list(kept.parted),
        **_divergence(kept.drift),
    }


def _divergence(found: Drift) -> dict[str, Any]:
    return {
        "kl": {
            "mean": _finite(found.mean),
            "median": _finite(found.median),
            "p99": _finite(found.p99),
            "largest": _finite(found.largest),
        },
        "same_first": found.same_first,
        "covered": found.covered,
    }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


# -- for readers -------------------------------------------------------------------------------


def formats_page(trial: FormatTrial) -> RenderableType:
    """What was asked, each format, keys against values."""
    return Group(*_parts(trial))


def _parts(trial: FormatTrial) -> Iterator[RenderableType]:
    yield Text.assemble((trial.engine, "bold"), f" ({trial.program}), {trial.model}, -c {trial.context}")
    yield Text(_asked(trial), "dim")
    yield Text()
    yield _table(_COLUMNS, _rows(trial))
    for kept in trial.tried:
        if kept.problem:
            yield Text(f"K {kept.key}, V {kept.value} was not measured: {kept.problem}", "yellow")
    compared = trial.comparisons()
    if compared:
        yield _table(_KEYS_AND_VALUES, [_compared(found) for found in compared])
        for sentence in _verdict(compared, trial.rounding):
            yield Text(sentence, "bold")
    yield Padding(Text(_covered(trial), "dim"), (1, 0, 0, 0))
    for note in trial.notes:
        yield Text(f"Note: {note}", "yellow")


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 2, 0, 0))
    for number, name in enumerate(columns):
        table.add_column(name, justify="left" if number < 1 or name == "V" else "right")
    for row in rows:
        table.add_row(*row)
    return table


def formats_to_markdown(trial: FormatTrial) -> str:
    """The same as Markdown."""
    lines = [f"{trial.engine} ({trial.program}), {trial.model}, `-c {trial.context}`. {_asked(trial)}", ""]
    lines += _markdown_table(_COLUMNS, _rows(trial))
    lines += [
        f"\nK {kept.key}, V {kept.value} was not measured: {kept.problem}"
        for kept in trial.tried
        if kept.problem
    ]
    compared = trial.comparisons()
    if compared:
        lines += ["", *_markdown_table(_KEYS_AND_VALUES, [_compared(found) for found in compared]), ""]
        lines += list(_verdict(compared, trial.rounding))
    lines += ["", _covered(trial), *(f"Note: {note}" for note in trial.notes)]
    return "\n".join(lines) + "\n"


def _markdown_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    marks = ["---" if number < 1 or name == "V" else "--:" for number, name in enumerate(columns)]
    return [f"| {' | '.join(row)} |" for row in (columns, marks, *rows)]


# -- what both say -----------------------------------------------------------------------------


def _asked(trial: FormatTrial) -> str:
    prompts, low, high = len(trial.tokens), min(trial.tokens), max(trial.tokens)
    return (
        f"{prompts} prompt{'s' * (prompts != 1)} of {low:,} to {high:,} tokens, {sum(trial.replies):,} "
        f"positions of the 16-bit replies; {trial.named:,} tokens named at each"
    )


def _covered(trial: FormatTrial) -> str:
    shares = [kept.drift.covered for kept in trial.tried if kept.drift is not None]
    if not shares:
        return ""
    return (
        "KL in nats against f16, over the same text. The tokens compared one by one hold at least "
        f"{min(shares):.2%} of the probability on average; the rest counts as one token."
    )


def _rows(trial: FormatTrial) -> list[list[str]]:
    """The reference, what rounding alone does to it, and every format that ran."""
    rows = [[*_sizes(trial.reference, trial), "-", "-", "-", "-", "-"]]
    if trial.rounding is not None:
        sizes = _sizes(trial.reference, trial)
        rows.append([sizes[0], f"{sizes[1]}, other kernel", *sizes[2:], "-", *_figures(trial.rounding)])
    return rows + [
        [*_sizes(kept, trial), _parted(kept.parted), *_figures(kept.drift)]
        for kept in trial.tried
        if kept.drift
    ]


def _figures(found: Drift) -> list[str]:
    return [_nats(found.mean), _nats(found.median), _nats(found.p99), f"{found.same_first:.1%}"]


def _sizes(kept: Kept, trial: FormatTrial) -> list[str]:
    whole, size = trial.reference.mib, kept.mib
    as_computed = {True: "yes", False: f"no: {(kept.computed or 0) / (1 << 20):,.2f}", None: "-"}
    return [
        kept.key, kept.value, f"{size:,.2f}" if size is not None else "-",
        f"{size / whole:.1%}" if size is not None and whole else "-", as_computed[kept.as_computed],
    ]  # fmt: skip


def _parted(places: Sequence[int | None]) -> str:
    """The median place, and how many replies part at all."""
    known = [place for place in places if place is not None]
    return f"{median(known):g} ({len(known)} of {len(places)})" if known else f"never (0 of {len(places)})"


def _nats(value: float) -> str:
    return f"{value:.2g}" if value and value < 0.01 else f"{value:.3f}"


def _compared(found: Comparison) -> list[str]:
    return [
        found.format, _nats(found.keys.mean), _nats(found.values.mean), _ratio(found),
        f"{found.worse_keys} of {found.positions}",
    ]  # fmt: skip


def _ratio(found: Comparison) -> str:
    return f"{found.keys.mean / found.values.mean:.1f}" if found.values.mean else "-"


def _verdict(compared: Sequence[Comparison], rounding: Drift | None) -> Iterator[str]:
    """Which of both stands less: said only where rounding alone or chance do not account for it."""
    floor = _ABOVE_ROUNDING * rounding.mean if rounding is not None else 0.0
    worse: dict[str, list[str]] = {"keys": [], "values": [], "": [], "rounding": []}
    for found in compared:
        keys, values = found.keys.mean, found.values.mean
        if max(keys, values) < floor:
            side = "rounding"
        elif not _uneven(found.worse_keys, found.positions) or (keys > values) != (
            found.worse_keys > found.positions / 2
        ):
            side = ""
        else:
            side = "keys" if keys > values else "values"
        worse[side].append(found.format)
    if worse["keys"]:
        yield f"Keys stand less than values in {', '.join(worse['keys'])}."
    if worse["values"]:
        yield f"Values stand less than keys in {', '.join(worse['values'])}."
    if worse[""]:
        yield f"No clear difference between keys and values in {', '.join(worse[''])}."
    if worse["rounding"]:
        yield f"Not told apart from rounding: {', '.join(worse['rounding'])}."


def _uneven(worse: int, of: int) -> bool:
    """A sign test: only chance would be this uneven once in 100 times."""
    return abs(worse - of / 2) > 2.576 * math.sqrt(of) / 2
