"""Scores `prefixguard lint` on real code: checkouts of public repositories, places that were read by hand.

usage: python bench/lint_real.py PLACES.jsonl CHECKOUTS [--judged FILE.json] [--list WHAT] [--only NAME]

PLACES names places (repository, commit, path, line, label). CHECKOUTS holds one
folder for each repository and commit, named `owner+name@commit` with the first
seven digits. Nothing of these repositories is part of this project. A break is
found when a finding, or a step of one of its ways, stands within two lines of
it. A finding at warning or above counts for precision: right when a labelled
break is found by it, or when it was judged right by reading (`--judged`, one
verdict and its reason per finding), wrong otherwise. Places that were read and
found fine are counted too, with what stands on them. `--list` prints what is
missed, what is not right, or both (`missed`, `warnings`, `all`).
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter, defaultdict
from pathlib import Path

import msgspec

from prefixguard.lint.run import Options, Report, lint
from prefixguard.lint.verdict import LintFinding

HURTS = {"every-turn", "per-process", "every-call", "every-run"}
SLACK = 2
type Spot = tuple[str, int]


class Place(msgspec.Struct, frozen=True):
    """A place in a repository, and what a reader said of it."""

    repo: str
    commit: str
    path: str
    line: int
    end_line: int
    label: str
    kind: str
    category: str = ""
    severity: str = ""
    flow: str = ""
    why: str = ""

    def near(self, spot: Spot) -> bool:
        """Whether a row of a file lies in it, or within two lines of it."""
        return spot[0] == self.path and self.line - SLACK <= spot[1] <= self.end_line + SLACK


class Score:
    """Counts over all checkouts."""

    def __init__(self) -> None:
        self.found: Counter[str] = Counter()
        self.total: Counter[str] = Counter()
        self.states: Counter[str] = Counter()
        self.rows = 0
        self.seconds = 0.0
        self.record: list[dict[str, object]] = []

    def place(self, place: Place, *, found: bool, current: bool) -> None:
        """Count one labelled break, under each heading that it belongs to."""
        hurts = place.severity in HURTS
        headings = ["all", place.category]
        headings += ["hurts"] if hurts else []
        headings += ["current"] if current else []
        headings += ["current hurts"] if hurts and current else []
        for heading in headings:
            self.total[heading] += 1
            self.found[heading] += found

    def show(self) -> None:
        """Print recall by heading, precision and speed."""
        for key, total in sorted(self.total.items()):
            print(f"recall {key:<20} {self.found[key]}/{total} = {self.found[key] / total:.2f}")
        right, open_ = self.states["right"], self.states["unknown"]
        judged = right + self.states["wrong"]
        share = right / max(1, judged)
        print(f"precision at warning and above: {right}/{judged} = {share:.2f}, {open_} unjudged")
        fine = self.states["fine"]
        print(
            f"places that are fine: {fine}, with a remark {self.states['remarked']}, "
            f"with a warning {self.states['warned']}"
        )
        speed = self.rows / max(self.seconds, 1e-9)
        print(f"{self.rows} lines in {self.seconds:.1f} s = {speed:.0f} lines/s")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("places", type=Path)
    parser.add_argument("checkouts", type=Path)
    parser.add_argument("--judged", type=Path)
    parser.add_argument("--list", default="", choices=("", "warnings", "missed", "all"))
    parser.add_argument("--only", default="", help="a part of a repository's name, or of name@commit")
    parser.add_argument("--current", action="store_true", help="leave out the commits before a mend")
    parser.add_argument("--json", type=Path, help="write each warning and its state there")
    parser.add_argument("--cache", type=Path)
    given = parser.parse_args()
    lines = [line for line in given.places.read_text().splitlines() if line.strip()]
    judged = json.loads(given.judged.read_text()) if given.judged else {}
    groups: dict[tuple[str, str], list[Place]] = defaultdict(list)
    for line in lines:
        raw = json.loads(line)
        place = msgspec.convert({"end_line": raw["line"], **raw}, Place)
        groups[(place.repo, place.commit)].append(place)
    score = Score()
    for (repo, commit), group in sorted(groups.items()):
        name = f"{repo}@{commit[:7]}"
        current = any(place.kind in {"current", "prototype-find"} for place in group)
        wanted = current or (not given.current and any(place.label == "break" for place in group))
        if given.only not in name or not wanted:
            continue
        folder = given.checkouts / name.replace("/", "+", 1)
        if not folder.is_dir():
            print(f"missing checkout: {folder}", file=sys.stderr)
            continue
        start = time.perf_counter()
        report = lint([folder], Options(cache=given.cache))
        score.seconds += time.perf_counter() - start
        score.rows += report.rows
        spots = [(finding, _spots(report, folder, finding)) for finding in report.findings]
        _recall(score, name, group, spots, current=current, told=given.list in {"missed", "all"})
        if current:
            _precision(score, repo, group, spots, judged, told=given.list in {"warnings", "all"})
    score.show()
    if given.json:
        given.json.write_text(json.dumps(score.record, indent=1))
    return 0


def _spots(report: Report, folder: Path, finding: LintFinding) -> list[Spot]:
    """Where a finding stands, then all steps of its ways."""
    files = report.project.files
    places = [(finding.file, finding.at[0])]
    places += [(step.file, step.at[0]) for way in (finding.trace, *finding.also) for step in way]
    return [(files[file].path.relative_to(folder).as_posix(), row) for file, row in places]


def _recall(
    score: Score,
    name: str,
    group: list[Place],
    spots: list[tuple[LintFinding, list[Spot]]],
    *,
    current: bool,
    told: bool,
) -> None:
    hits = breaks = 0
    for place in group:
        if place.label != "break":
            continue
        found = any(place.near(spot) for _, where in spots for spot in where)
        score.place(place, found=found, current=current)
        breaks += 1
        hits += found
        if told and not found:
            where = f"{place.path}:{place.line}-{place.end_line}"
            print(f"missed {name} {where} {place.category} {place.severity} {place.flow}: {place.why}")
    print(f"{name:<46} breaks {hits}/{breaks}", flush=True)


def _precision(
    score: Score,
    repo: str,
    group: list[Place],
    spots: list[tuple[LintFinding, list[Spot]]],
    judged: dict[str, dict[str, str]],
    *,
    told: bool,
) -> None:
    for place in group:
        if place.label == "ok":
            there = [finding.severity for finding, where in spots if place.near(where[0])]
            score.states["fine"] += 1
            score.states["remarked"] += bool(there)
            score.states["warned"] += any(severity != "info" for severity in there)
    for finding, where in spots:
        if finding.severity == "info":
            continue
        path, row = where[0]
        key = f"{repo}:{path}:{finding.code}:{row}"
        verdict = judged.get(key, {}).get("verdict", "unknown")
        if any(place.label == "break" and place.near(spot) for place in group for spot in where):
            verdict = "right"
        elif any(place.label == "ok" and (place.path, place.line) == where[0] for place in group):
            verdict = "wrong" if verdict == "unknown" else verdict
        score.states[verdict] += 1
        score.record.append({"key": key, "state": verdict, "message": finding.message})
        if told and verdict != "right":
            way = " > ".join(f"{p}:{r}" for p, r in where[1:][-3:])
            strength = f"{finding.severity}/{finding.confidence}/{finding.evidence}"
            print(f"{verdict} {key} {strength} {finding.message} | {way}")


if __name__ == "__main__":
    sys.exit(main())
