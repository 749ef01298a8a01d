"""Scores `prefixguard lint` on real code: checkouts of public repositories against places that were read by hand.

usage: python bench/lint_real.py PLACES.jsonl CHECKOUTS [--judged FILE.json] [--list warnings|missed|all] [--only NAME]

PLACES names places (repository, commit, path, line, label). CHECKOUTS holds one
folder for each repository and commit, named `owner+name@commit` with the first
seven digits. Nothing of these repositories is part of this project. A break is
found when a finding, or a step of one of its ways, stands within two lines of it. A
finding at warning or above counts for precision: right when a labelled break is
found by it, or when it was judged right by reading (`--judged`, one verdict and
its reason per finding), wrong otherwise.
"""  # noqa: E501

from __future__ import annotations

import argparse
import json
import pathlib
import sys
import time
from collections import Counter, defaultdict

from prefixguard.lint.run import Options, Report, lint

HURTS = {"every-turn", "per-process", "every-call", "every-run"}


def near(row: int, place: dict[str, object], slack: int = 2) -> bool:
    return int(place["line"]) - slack <= row <= int(place["end_line"]) + slack  # type: ignore[call-overload]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("places", type=pathlib.Path)
    parser.add_argument("checkouts", type=pathlib.Path)
    parser.add_argument("--judged", type=pathlib.Path)
    parser.add_argument("--list", default="")
    parser.add_argument("--only", default="")
    parser.add_argument(
        "--current", action="store_true", help="leave out the commits before and after a mend"
    )
    parser.add_argument("--code", default="")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--cache", type=pathlib.Path)
    args = parser.parse_args()
    places = [json.loads(line) for line in args.places.read_text().splitlines() if line.strip()]
    judged = json.loads(args.judged.read_text()) if args.judged else {}
    groups: dict[tuple[str, str], list[dict[str, object]]] = defaultdict(list)
    for place in places:
        groups[(place["repo"], place["commit"])].append(place)
    found: Counter[str] = Counter()
    total: Counter[str] = Counter()
    right = wrong = unknown = 0
    rows = seconds = 0.0
    table: list[str] = []
    record: list[dict[str, object]] = []
    for (repo, commit), group in sorted(groups.items()):
        if args.only and args.only not in repo:
            continue
        folder = args.checkouts / f"{repo.replace('/', '+')}@{commit[:7]}"
        if not folder.is_dir():
            print(f"missing checkout: {folder}", file=sys.stderr)
            continue
        current = any(p["kind"] in {"current", "prototype-find"} for p in group)
        if args.current and not current:
            continue
        start = time.perf_counter()
        report = lint([folder], Options(cache=args.cache))
        seconds += time.perf_counter() - start
        rows += report.rows
        spots = _spots(report, folder)
        hit_here = miss_here = 0
        for place in group:
            if place["label"] != "break":
                continue
            hits = [
                f for f, where in spots for path, row in where if path == place["path"] and near(row, place)
            ]
            hurt = place["severity"] in HURTS
            total["all"] += 1
            total["hurts"] += hurt
            found["all"] += bool(hits)
            found["hurts"] += bool(hits) and hurt
            total[str(place["category"])] += 1
            found[str(place["category"])] += bool(hits)
            hit_here += bool(hits)
            miss_here += not hits
            if not hits and args.list in {"missed", "all"}:
                print(
                    f"missed {repo}@{commit[:7]} {place['path']}:{place['line']}-{place['end_line']} {place['category']} {place['severity']} {place['flow']}: {place['why']}"  # noqa: E501
                )
        ok_here = bad_here = open_here = 0
        if current:
            for finding, where in spots:
                if finding.severity == "info":
                    continue
                path, row = where[0]
                key = f"{repo}:{path}:{finding.code}:{row}"
                labelled = any(
                    p["label"] == "break" and p["path"] == pp and near(rr, p)
                    for p in group
                    for pp, rr in where
                )
                denied = any(
                    p["label"] == "ok" and p["path"] == path and abs(int(p["line"]) - row) <= 0 for p in group
                )  # type: ignore[call-overload]
                verdict = judged.get(key, {}).get("verdict")
                state = (
                    "right"
                    if labelled or verdict == "right"
                    else "wrong"
                    if denied or verdict == "wrong"
                    else "unknown"
                )
                ok_here += state == "right"
                bad_here += state == "wrong"
                open_here += state == "unknown"
                record.append({"key": key, "state": state, "message": finding.message})
                if (
                    args.list in {"warnings", "all"}
                    and (state != "right")
                    and (not args.code or finding.code == args.code)
                ):
                    print(
                        f"{state} {key} {finding.severity}/{finding.confidence}/{finding.evidence} {finding.message} | {' > '.join(f'{pp}:{rr}' for pp, rr in where[1:][-3:])}"  # noqa: E501
                    )
        right += ok_here
        wrong += bad_here
        unknown += open_here
        table.append(
            f"{repo + '@' + commit[:7]:<46} breaks {hit_here}/{hit_here + miss_here:<3} warnings right {ok_here} wrong {bad_here} unjudged {open_here}"  # noqa: E501
        )
    print("\n".join(table))
    for key in sorted(total):
        print(f"recall {key:<20} {found[key]}/{total[key]} = {found[key] / total[key]:.2f}")
    judged_count = right + wrong
    print(
        f"precision at warning and above: {right}/{judged_count} = {right / max(1, judged_count):.2f}, {unknown} unjudged"  # noqa: E501
    )
    print(f"{rows:.0f} lines in {seconds:.1f} s = {rows / max(seconds, 1e-9):.0f} lines/s")
    if args.json:
        args.json.write_text(json.dumps(record, indent=1))
    return 0


def _spots(report: Report, folder: pathlib.Path) -> list[tuple[object, list[tuple[str, int]]]]:
    files = report.project.files
    out = []
    for finding in report.findings:
        where = [(files[finding.file].path.relative_to(folder).as_posix(), finding.at[0])]
        where.extend(
            (files[step.file].path.relative_to(folder).as_posix(), step.at[0])
            for way in (finding.trace, *finding.also)
            for step in way
        )
        out.append((finding, where))
    return out


if __name__ == "__main__":
    sys.exit(main())
