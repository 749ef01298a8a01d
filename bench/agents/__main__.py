"""Real agents against a scripted upstream, without the proxy and behind it, in both of its modes.

`python -m bench.agents [NAME...]` installs them into a temporary folder, runs
them, compares and writes the table. It is no part of `python -m bench`.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import msgspec

from bench.agents.clients import CLIENTS
from bench.agents.lab import MODES, Lab, Outcome, version_of
from bench.agents.table import Row, Table, markdown, row_of, table_of
from bench.agents.upstream import Upstream


def main(words: list[str]) -> int:
    """The exit status: 1 where an agent could not be run, or the proxy changed something."""
    parser = argparse.ArgumentParser(prog="python -m bench.agents", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(c.name for c in CLIENTS))
    parser.add_argument("--folder", type=Path, help="where to install and run; by default a temporary one")
    parser.add_argument("--json", type=Path, help="the table as JSON; rows of other agents in it are kept")
    parser.add_argument("--markdown", type=Path, help="the table as a page")
    asked = parser.parse_args(words)
    unknown = set(asked.names) - {client.name for client in CLIENTS}
    if unknown:
        parser.error(f"no such agent: {', '.join(sorted(unknown))}")
    with tempfile.TemporaryDirectory() as temporary:
        rows, failed = _run(asked.names, Lab(asked.folder or Path(temporary)))
    table = table_of(_joined(rows, asked.json))
    if asked.json:
        asked.json.write_bytes(msgspec.json.format(msgspec.json.encode(table), indent=1) + b"\n")
    if asked.markdown:
        asked.markdown.write_text(markdown(table))
    if not asked.markdown:
        print(markdown(table))
    return int(failed or not all(passed.holds for row in rows for passed in row.modes.values()))


def _run(names: list[str], lab: Lab) -> tuple[list[Row], bool]:
    rows: list[Row] = []
    failed = False
    lab.folder.mkdir(parents=True, exist_ok=True)
    with Upstream(lab.folder / "certificates", lab.folder / "project") as upstream:
        for client in CLIENTS:
            if names and client.name not in names:
                continue
            try:
                programs = lab.programs(client)
                outcomes: dict[str, Outcome] = {mode: lab.run(client, mode, upstream) for mode in MODES}
                row = row_of(client, version_of(client, programs), outcomes)
            except (subprocess.CalledProcessError, OSError) as error:
                print(f"{client.name}: {error}", file=sys.stderr)
                failed = True
                continue
            rows.append(row)
            print(
                f"{client.name} {row.version}: {row.requests} requests, {len(row.breaks)} breaks",
                file=sys.stderr,
            )
    return rows, failed


def _joined(rows: list[Row], file: Path | None) -> list[Row]:
    """The new rows in the place of the old ones."""
    found = {row.name: row for row in rows}
    if file is not None and file.exists():
        old = msgspec.json.decode(file.read_bytes(), type=Table)
        found = {**{row.name: row for row in old.rows}, **found}
    order = [client.name for client in CLIENTS]
    return [found[name] for name in order if name in found]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
