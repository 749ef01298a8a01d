"""The wheel as a user gets it: built, installed into an empty environment, and used there.

Needs `uv`, and the packages of this environment, which are linked in: nothing
is downloaded, so that the test tells what the wheel holds and not what an index
has today.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
REQUEST = {
    "model": "gpt-5.2",
    "messages": [
        {"role": "system", "content": "It is 10:00. " + "Be brief. " * 600},
        {"role": "user", "content": "Hello"},
    ],
}


def run(*command: str | Path, cwd: Path | None = None) -> str:
    words = [str(part) for part in command]
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=cwd)
    assert done.returncode == 0, f"{command}: {done.stdout}\n{done.stderr}"
    return str(done.stdout)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built by the build backend itself in this environment."""
    pytest.importorskip("hatchling")
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, ROOT)
    (found,) = folder.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel, and with nothing else but links to the packages that it depends on."""
    # `uv run` says where it is; a version manager may put a shim that leads nowhere on PATH.
    uv = os.environ.get("UV") or shutil.which("uv")
    if uv is None:
        pytest.skip("uv is not installed")
    place = tmp_path_factory.mktemp("environment") / "env"
    run(uv, "venv", "--offline", "--no-project", "--quiet", "--python", sys.executable, place)
    python = place / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    run(uv, "pip", "install", "--offline", "--quiet", "--no-deps", "--python", python, wheel)
    site = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_paths()['purelib'])").strip())
    (site / "dependencies.pth").write_text(str(_dependencies(tmp_path_factory.mktemp("packages"))) + "\n")
    return python


def _dependencies(folder: Path) -> Path:
    """Links to the installed distributions that the base package needs, and to what those need."""
    source = Path(sysconfig.get_paths()["purelib"])
    wanted, seen = ["prefixguard"], set()
    while wanted:
        name = wanted.pop()
        if name in seen:
            continue
        seen.add(name)
        try:
            distribution = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            continue  # for another platform or another Python
        wanted += [_name(needed) for needed in distribution.requires or () if "extra ==" not in needed]
        if name != "prefixguard":
            for top in {Path(str(file)).parts[0] for file in distribution.files or ()} - {".."}:
                if (source / top).exists() and not (folder / top).exists():
                    (folder / top).symlink_to(source / top)
    return folder


def _name(requirement: str) -> str:
    end = next((i for i, sign in enumerate(requirement) if sign not in "-_." and not sign.isalnum()), None)
    return requirement[:end]


def test_wheel_holds_the_rules_and_no_tests(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert "prefixguard/rules/findings/PG101.toml" in names
    assert {n.removeprefix("prefixguard/") for n in names if n.startswith("prefixguard/rules/")} == {
        str(path.relative_to(ROOT)) for path in (ROOT / "rules").rglob("*") if path.is_file()
    }
    tops = {name.split("/")[0] for name in names}
    assert tops == {"prefixguard", f"prefixguard-{wheel.name.split('-')[1]}.dist-info"}


def test_wheel_reads_its_own_rules(python: Path, tmp_path: Path) -> None:
    where = run(
        python, "-c", "from prefixguard.rulebook import rules_folder; print(rules_folder())", cwd=tmp_path
    )
    assert "site-packages" in where
    assert "PG101" in run(python.with_name("prefixguard"), "rules", cwd=tmp_path)


def test_wheel_analyses_a_log(python: Path, tmp_path: Path) -> None:
    log = tmp_path / "requests.jsonl"
    lines = []
    for n in range(3):
        body = json.loads(json.dumps(REQUEST).replace("10:00", f"10:0{n}"))
        more = [{"role": "assistant", "content": "An answer of words."}, {"role": "user", "content": "More"}]
        body["messages"] += more * n
        lines.append(json.dumps({"t": 10.0 * n, "path": "/v1/chat/completions", "request": body}))
    log.write_text("\n".join(lines))
    found = json.loads(run(python, "-m", "prefixguard", "analyze", log, "--format", "json", cwd=tmp_path))
    turns = [turn for session in found["sessions"] for turn in session["turns"]]
    assert [turn["break"] for turn in turns] == [False, True, True]
    assert turns[1]["findings"][0]["code"] == "PG101"
    assert "PG101" in run(python, "-m", "prefixguard", "analyze", log, cwd=tmp_path)
    page = run(python, "-m", "prefixguard", "report", log, "--format", "html", cwd=tmp_path)
    assert "function start(root, source" in page


def test_wheel_says_in_one_line_what_is_missing(python: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [str(python), "-m", "prefixguard", "proxy"], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert done.returncode == 2
    assert len(done.stderr.strip().splitlines()) == 1
    assert "prefixguard[proxy]" in done.stderr
