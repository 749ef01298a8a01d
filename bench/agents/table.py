"""From the runs of an agent to a row of the table "how stable are today's agents"."""

from __future__ import annotations

import datetime
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from bench.agents.clients import Client
from bench.agents.compare import compare, prompts_of
from bench.agents.lab import Outcome
from bench.agents.stability import Step, stability


class Break(msgspec.Struct, frozen=True):
    """A break that PrefixGuard reported. restart: at the first request of the second process."""

    codes: tuple[str, ...]
    pointer: str
    message: str
    tokens: int
    deliberate: bool
    restart: bool


class Passed(msgspec.Struct, frozen=True):
    """One mode of the proxy: whether it changed nothing, and what differed."""

    holds: bool
    differences: tuple[str, ...] = ()


class Row(msgspec.Struct, frozen=True):
    """One agent.

    requests: with a prompt, in two processes; helpers: those of them that are
    no part of the conversation. steps: pairs of requests in one process; pure:
    of these, those where the earlier stands whole in front of the later. parted: where
    the others part. restart: what the second process shares with the first.
    continues: whether it was asked to. misses: turns that read less than predicted, without a change.
    """

    name: str
    version: str
    apis: tuple[str, ...]
    continues: bool
    requests: int
    helpers: int
    steps: int
    pure: int
    parted: tuple[Step, ...]
    restart: Step | None
    breaks: tuple[Break, ...]
    misses: int
    modes: dict[str, Passed]
    keyed: str
    side: tuple[str, ...]
    judged: str = ""


class Table(msgspec.Struct, frozen=True):
    """What `python -m bench.agents` writes."""

    date: str
    prefixguard: str
    rows: tuple[Row, ...]


def row_of(client: Client, version: str, outcomes: Mapping[str, Outcome]) -> Row:
    """outcomes: by mode, all four. Raises CalledProcessError where the report cannot be made."""
    behind = outcomes["base-url"]
    prompts = prompts_of(behind)
    ended = behind.processes[0].ended
    seen = stability(prompts, ended)
    sessions = _analysis(behind.store)
    turns = [turn for session in sessions for turn in session["turns"]]
    later = (turn for turn in turns if turn["t"] > ended and turn["parent"] is not None)
    again = min(later, key=lambda turn: float(turn["t"]), default=None)
    pairs = (("base-url", "plain"), ("forward", "plain-forward"))
    passed = {mode: compare(outcomes[alone], outcomes[mode]) for mode, alone in pairs}
    side = {r.host for o in outcomes.values() for r in o.received if r.api is None and r.host}
    refused = {host for o in outcomes.values() for host in o.refused}
    return Row(
        name=client.name,
        version=version,
        apis=tuple(
            sorted({str(p.api) + (" (WebSocket)" if p.method == "WEBSOCKET" else "") for p in prompts})
        ),
        continues=bool(client.again) and client.continues,
        requests=seen.requests,
        helpers=seen.side,
        steps=len(seen.within),
        pure=sum(step.pure for step in seen.within),
        parted=tuple(step for step in seen.within if not step.pure),
        restart=seen.restart,
        breaks=tuple(_break(turn, turn is again) for turn in turns if turn["break"]),
        misses=sum(turn["cache"] is not None and turn["cache"]["verdict"] == "less" for turn in turns),
        modes={mode: Passed(found.holds, found.differences) for mode, found in passed.items()},
        keyed=", ".join(sorted({f"{s['key']['kind']} {s['key']['name']}".strip() for s in sessions})),
        # Package registries are asked by anything that runs on this machine.
        side=tuple(sorted(host for host in side | refused if not host.startswith("registry."))),
        judged=client.known,
    )


def _analysis(store: Path | None) -> list[Any]:
    words = [
        sys.executable,
        "-m",
        "prefixguard",
        "report",
        "--all",
        "--store",
        str(store),
        "--format",
        "json",
    ]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    sessions: list[Any] = json.loads(done.stdout)["sessions"]
    return sessions


def _break(turn: Any, restart: bool) -> Break:
    primary = [finding for finding in turn["findings"] if finding["primary"]] or turn["findings"][:1]
    return Break(
        tuple(finding["code"] for finding in primary),
        (turn["divergence"] or {}).get("pointer", ""),
        primary[0]["message"] if primary else "",
        turn["tokens"]["rebilled"],
        all(finding["deliberate"] for finding in primary),
        restart,
    )


def table_of(rows: Sequence[Row]) -> Table:
    """With today's date."""
    from prefixguard import __version__

    return Table(datetime.datetime.now(datetime.UTC).date().isoformat(), __version__, tuple(rows))


def markdown(table: Table) -> str:
    """The page docs/agents-stability.md."""
    return "\n".join((*_head(table), *map(_line, table.rows), "", *_details(table)))


def _head(table: Table) -> list[str]:
    return [
        "# How stable are today's agents",
        "",
        f"Written by `python -m bench.agents` on {table.date}. Each agent was installed from npm or PyPI and",
        "given the same small project and the same two tasks, the second one in a new process that continues",
        "the first where the agent can do that. A scripted model answered: three tool calls and a closing",
        "sentence for each task. Each ran four times: with a base URL and through an HTTPS proxy, alone and",
        "behind `prefixguard run`.",
        "",
        "- **pure**: of the steps from one request to the next in a process, those in which the earlier",
        "  request stands whole in front of the later one. Taken from the bytes that arrived, not from the",
        "  analysis.",
        "- **restart**: how much of the best earlier request the second process sends again at its start,",
        "  and where it parts. Whole means that the conversation goes on as if nothing had happened.",
        "- **breaks**: what PrefixGuard reported, inside the processes and at the restart.",
        "- **unchanged**: whether exit codes, prompts, headers and files are the same behind the proxy, in",
        "  both modes, and the record is what the server received and sent, byte for byte.",
        "",
        "| agent | version | API | requests | pure | restart | breaks | unchanged |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]


def _line(row: Row) -> str:
    helpers = f" ({row.helpers} of them helpers)" if row.helpers else ""
    inside = sum(not one.restart for one in row.breaks)
    later = len(row.breaks) - inside
    breaks = ", ".join(
        part
        for part in (f"{inside} inside" if inside else "", f"{later} at the restart" if later else "")
        if part
    )
    unchanged = ", ".join(f"{mode}: {'yes' if passed.holds else 'NO'}" for mode, passed in row.modes.items())
    cells = (
        row.name, row.version, ", ".join(row.apis), f"{row.requests}{helpers}", f"{row.pure} of {row.steps}",
        _restart(row), breaks or "none", unchanged,
    )  # fmt: skip
    return "| " + " | ".join(cells) + " |"


def _restart(row: Row) -> str:
    step = row.restart
    if step is None:
        return "not reached"
    what = "continues" if row.continues else "begins anew"
    if step.pure:
        return f"{what}, whole"
    return f"{what}, {100 * step.kept / max(1, step.of):.1f} %, then {step.place}"


def _details(table: Table) -> list[str]:
    lines = ["## What was found", ""]
    for row in table.rows:
        found = [f"  - {_told(one)}" for one in row.breaks]
        found += [f"  - parts at {s.place}: {s.kept:,} of {s.of:,} bytes kept" for s in row.parted]
        found += [f"  - {mode}: {note}" for mode, passed in row.modes.items() for note in passed.differences]
        if row.judged:
            found.append(f"  - Judged by hand: {row.judged}")
        if found:
            lines += [f"- **{row.name}**", *found]
    return [*lines, ""]


def _told(one: Break) -> str:
    when = "at the restart" if one.restart else "inside"
    intended = ", deliberate" if one.deliberate else ""
    return (
        f"{when}{intended}: {', '.join(one.codes)} at `{one.pointer}`, {one.tokens:,} tokens: {one.message}"
    )
