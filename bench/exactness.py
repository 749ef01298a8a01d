"""How often the prediction of cached tokens is what a real server then says, on tiny models.

    python -m bench exactness
    python -m bench.exactness [--server URL [--model PATH]]    a Markdown table; docs/measure.md has one

Without --server llama.cpp servers are started here, one for each row. With it
the same sessions are asked of the server there, which may be a vLLM.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from bench.rows import Row
from prefixguard.engines import attach, launch
from prefixguard.engines.replay import bench_for, measure
from prefixguard.exchange import Exchange
from prefixguard.trial import Trial
from tests.real.conftest import TEMPLATES
from tests.real.recorded import recorded
from tests.real.tiny_model import write_tiny_llama
from tests.real.tiny_shapes import write_tiny_latent, write_tiny_windowed

SESSIONS: dict[str, list[Exchange]] = {
    "append-only": recorded(6),
    "clock in the system prompt": recorded(6, clock=True),
    "first question edited late": recorded(6, edited=4),
    "two sessions in turn": recorded(4, names=("a", "b")),
}


@dataclass(frozen=True)
class Case:
    """A model and the options of its server."""

    title: str
    write: Callable[[Path], Path]
    options: tuple[str, ...] = ()
    slots: int = 1


def _full(path: Path) -> Path:
    return write_tiny_llama(path, "{{ messages[0].content }}")


CASES = (
    Case("full attention", _full),
    Case("full attention, 4 slots", _full, slots=4),
    Case("latent attention", write_tiny_latent),
    Case("windows of 128, `--swa-full`", write_tiny_windowed, ("--swa-full",)),
    Case("windows of 128", write_tiny_windowed),
    Case("windows of 128, `-ub 64`", write_tiny_windowed, ("-ub", "64")),
)


def measured() -> Iterator[tuple[Case, str, Trial]]:
    """Every session on every case."""
    with tempfile.TemporaryDirectory() as folder:
        for number, case in enumerate(CASES):
            path = case.write(Path(folder) / f"{number}.gguf")
            with launch(
                path, template=TEMPLATES["tools"], threads=1, context=4096 * case.slots, slots=case.slots,
                options=("--metrics", *case.options),
            ) as server:  # fmt: skip
                bench = bench_for(server.engine, model=str(path), flags=case.options)
                for name, session in SESSIONS.items():
                    yield case, name, measure(session, bench)


def run() -> list[Row]:
    """For each case, the share of turns that came out as predicted."""
    rows: dict[str, list[Trial]] = {}
    for case, _, trial in measured():
        rows.setdefault(case.title, []).append(trial)
    return [_row(title, trials) for title, trials in rows.items()]


def _row(title: str, trials: list[Trial]) -> Row:
    of = sum(len(trial.turns) + len(trial.skipped) for trial in trials)
    exact = sum(trial.count("exact") for trial in trials)
    inside = sum(trial.count("inside") for trial in trials)
    # A windowed model's interval is the promise; everything else is a single number.
    windowed = any(trial.engine.windowed for trial in trials)
    good = exact + inside if windowed else exact
    words = f"{exact} of {of} exact" + (f", {inside} inside" if inside else "")
    return Row(title, words, "100 %", good == of)


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description="Predicted against measured cached tokens.")
    parser.add_argument("--server", metavar="URL")
    parser.add_argument("--model", metavar="PATH|NAME")
    asked = parser.parse_args()
    print("| server | session | turns | exact | inside | otherwise | explained by |")
    print("| --- | --- | --: | --: | --: | --: | --- |")
    if asked.server:
        bench = bench_for(attach(asked.server), model=asked.model)
        trials = ((bench.engine.name, name, measure(s, bench)) for name, s in SESSIONS.items())
    else:
        trials = ((case.title, name, trial) for case, name, trial in measured())
    for title, name, trial in trials:
        exact, inside = trial.count("exact"), trial.count("inside")
        codes = sorted({turn.explanation for turn in trial.turns if turn.explanation})
        print(
            f"| {title} | {name} | {len(trial.turns)} | {exact} | {inside} "
            f"| {len(trial.turns) - exact - inside + len(trial.skipped)} | {', '.join(codes)} |"
        )


if __name__ == "__main__":
    main()
