"""Imports go downwards only, the core asks nothing of the world, and the command line starts light."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent / "prefixguard"

# From the ground up. What stands on one floor does not know of its neighbours.
CORE: tuple[tuple[str, ...], ...] = (
    ("errors", "finding", "prompt", "exchange", "surrogates", "working_set"),
    ("rulebook", "callsite", "turn"),
    ("sessions", "secrets", "rendering", "wire"),
    ("tokens", "costs"),
    ("caches", "divergence", "lineage", "recurrence", "options", "totals"),
    ("timeline", "shape", "step"),
    ("causes", "measure"),
    ("meter", "verdict", "series"),
    ("describe", "partial"),
    ("analysis",),
)
ABOVE: tuple[tuple[str, ...], ...] = (
    ("blame", "gate", "gateway", "configuration", "kv"),
    ("baseline", "simulate", "modelfiles", "trial", "checkup"),
    ("store", "reports", "importers", "exporters", "proxy", "engines", "lint", "testing", "ui"),
    ("cli",),
)
FLOORS = CORE + ABOVE
# The wings stand side by side; which of them may go through another's door is said here.
DOORS: dict[str, set[str]] = {
    "reports": {"store"},
    "importers": {"store", "proxy"},
    "proxy": {"store", "engines"},
    "engines": {"store", "proxy", "reports"},
    "lint": {"importers", "reports"},
    "testing": {"importers", "reports"},
    "ui": {"importers", "reports", "store"},
}
HEIGHT = {unit: floor for floor, units in enumerate(FLOORS) for unit in units}

WORLD = {
    "asyncio", "http", "httpx", "logging", "mitmproxy", "openai", "anthropic", "random", "requests", "rich",
    "click", "signal", "socket", "sqlalchemy", "sqlite3", "subprocess", "tempfile", "threading", "time",
    "urllib.request", "uvloop",
}  # fmt: skip
# tiktoken reads its vocabulary from a folder named by the environment, and nowhere else.
MAY_TOUCH_THE_WORLD = {"tokens/encodings.py": {"tempfile", "threading"}}


def unit_of(module: str) -> str:
    """`prefixguard.wire.usage` belongs to `wire`."""
    return module.split(".")[1] if "." in module else ""


def modules() -> list[Path]:
    return sorted(
        path for path in ROOT.rglob("*.py") if path != ROOT / "__init__.py" and path != ROOT / "__main__.py"
    )


def imported(path: Path) -> Iterator[tuple[int, str]]:
    """(line, module) of every import, those inside functions included, those for type checkers left out."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    hidden = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if id(node) in hidden:
            continue
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path}:{node.lineno}: imports are absolute here"
            module = node.module or ""
            if module == "prefixguard":
                yield from (
                    (node.lineno, f"prefixguard.{a.name}") for a in node.names if not a.name.startswith("__")
                )
            else:
                yield node.lineno, module


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_go_downwards(path: Path) -> None:
    unit = path.relative_to(ROOT).parts[0].removesuffix(".py")
    assert unit in HEIGHT, f"{unit} stands on no floor yet: give it one in {Path(__file__).name}"
    for line, module in imported(path):
        if not module.startswith("prefixguard."):
            continue
        other = unit_of(module)
        if other == unit or other in DOORS.get(unit, ()):
            continue
        assert other in HEIGHT, f"{path}:{line}: {module}"
        assert HEIGHT[other] < HEIGHT[unit], f"{path}:{line}: {unit} imports {module}, which stands no lower"


@pytest.mark.parametrize("unit", [unit for floor in CORE for unit in floor])
def test_core_is_pure(unit: str) -> None:
    """Values in, values out: no network, no clock, no chance, no threads, no printing."""
    for path in modules():
        place = path.relative_to(ROOT)
        if place.parts[0].removesuffix(".py") != unit:
            continue
        for line, module in imported(path):
            names = {module, module.split(".")[0]} & WORLD
            assert names <= MAY_TOUCH_THE_WORLD.get(str(place), set()), f"{path}:{line}: {module}"


def loaded(statement: str) -> set[str]:
    """The modules that a fresh interpreter has loaded after a statement."""
    program = f"import sys\n{statement}\nprint('\\n'.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    return set(done.stdout.split())


HEAVY = {
    "mitmproxy", "sqlalchemy", "tree_sitter", "genai_prices", "tiktoken", "tokenizers", "jinja2", "openai",
    "anthropic", "rapidfuzz", "bpe_openai", "xllamacpp", "asyncio", "prefixguard.analysis",
    "prefixguard.rulebook",
}  # fmt: skip


def test_command_line_starts_light() -> None:
    """`prefixguard --help` needs click and nothing else."""
    program = (
        "from click.testing import CliRunner\n"
        "import prefixguard.cli as cli\n"
        "assert CliRunner().invoke(cli.root, ['--help']).exit_code == 0"
    )
    assert not HEAVY & (loaded(program) - loaded("from click.testing import CliRunner"))


def test_analysis_loads_no_edge() -> None:
    found = loaded("import prefixguard.analysis")
    edges = {f"prefixguard.{unit}" for floor in ABOVE for unit in floor}
    assert not edges & found
    assert (
        not {"mitmproxy", "sqlalchemy", "tree_sitter", "tiktoken", "jinja2", "bpe_openai", "genai_prices"}
        & found
    )
