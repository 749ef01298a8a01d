"""The files of a project: which there are, their facts, and which file an import means.

Second step of the linter. Facts are read on demand and cached by content, so
that a helper without a single prompt word is read only when a prompt uses it.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator
from os.path import commonpath
from pathlib import Path

from prefixguard.errors import InputError
from prefixguard.lint import facts
from prefixguard.lint.cache import FactCache
from prefixguard.lint.frontends import LANGUAGES, lower

SKIPPED_FOLDERS = frozenset(
    {
        "node_modules", ".git", ".hg", ".svn", ".venv", "venv", "__pycache__", ".mypy_cache", ".ruff_cache",
        ".tox",
        ".nox", ".pytest_cache", "dist", "build", "out", ".next", ".nuxt", ".turbo", "coverage",
        "site-packages",
        ".eggs", ".idea", ".vscode", "target", ".cache", ".yarn", ".pnpm-store", "bower_components",
    }
)  # fmt: skip

# A file can hold a sink only if it speaks of models: by one of these words, in lower case ...
_STRONG = (
    b"openai", b"anthropic", b"system_prompt", b"systemprompt", b"system_message", b"systemmessage",
    b"litellm",
    b"system_instruction", b"systeminstruction", b"system_content", b"custom_instructions", b"chat_history",
    b"chathistory", b"message_history", b"cache_control", b"cachecontrol", b"cachepoint", b"backstory",
    b"genai",
    b"langchain", b"langgraph", b"llama_index", b"pydantic_ai", b"crewai", b"smolagents", b"autogen",
    b"mistralai",
    b"groq", b"ollama", b"bedrock", b"@ai-sdk", b"@mastra", b"chat.completions", b"/v1/messages", b'"role":',
    b"'role':", b'role: "', b"role: '", b'role="', b"role='", b"generatetext", b"streamtext", b"preparestep",
    b"system.transform",
)  # fmt: skip
# ... or by one of each of these.
_LISTS = (b"messages", b"history", b"conversation", b"instructions", b"prompt", b"system")
_MODELS = (b"llm", b"chatmessage", b"assistant", b"max_tokens", b"context_window", b"agent", b"completion")


def _speaks_of_models(source: bytes, own: tuple[bytes, ...]) -> bool:
    low = source.lower()
    if any(word in low for word in _STRONG) or any(word in source for word in own):
        return True
    if not any(word in low for word in _MODELS) or not any(word in low for word in _LISTS):
        return False
    return b"messages" in low or b"agent(" in low or b"prompt" in low


def _is_built(source: bytes) -> bool:
    """Whether JavaScript was made by a bundler or a minifier: no prompt was ever written in it."""
    size = len(source)
    return size > _BUNDLE or (size > _SMALL and size > _DENSE * (source.count(b"\n") + 1))


_BUNDLE, _SMALL, _DENSE = 1_000_000, 20_000, 500
"""Bytes from which a file is a bundle; and from which lines that are this long on average mean a minifier."""


def discover(paths: Iterable[Path], exclude: Iterable[re.Pattern[str]] = ()) -> list[Path]:
    """All source files under the given files and folders, in order, each once.

    Raises InputError for a path that does not exist.
    """
    patterns = tuple(exclude)
    found: dict[Path, None] = {}
    for path in paths:
        if path.is_file():
            if not any(pattern.search(path.as_posix()) for pattern in patterns):
                found[path] = None
        elif path.is_dir():
            for file in _walk(path):
                if not any(pattern.search(file.as_posix()) for pattern in patterns):
                    found[file] = None
        else:
            raise InputError(f"{path}: no such file or folder; give a path that exists")
    return list(found)


def _walk(folder: Path) -> Iterator[Path]:
    for base, folders, names in os.walk(folder):
        folders[:] = sorted(
            name for name in folders if name not in SKIPPED_FOLDERS and not name.endswith(".egg-info")
        )
        for name in sorted(names):
            ending = os.path.splitext(name)[1]
            if ending in LANGUAGES and not name.endswith((".min.js", ".d.ts", ".bundle.js", ".pyi")):
                yield Path(base, name)


class SourceFile:
    """One file: its path, its text when read, and its facts when asked for."""

    __slots__ = (
        "_matters",
        "_module",
        "_source",
        "cache",
        "index",
        "language",
        "own",
        "path",
        "problem",
        "unreadable",
    )

    def __init__(self, index: int, path: Path, cache: FactCache | None, own: tuple[bytes, ...] = ()) -> None:
        self.index = index
        self.own = own
        self.path = path
        self.language = LANGUAGES.get(path.suffix, "python")
        self.cache = cache
        self._source: bytes | None = None
        self._module: facts.Module | None = None
        self.unreadable = ""
        self._matters: bool | None = None

    @property
    def source(self) -> bytes:
        """The bytes of the file; empty, with `unreadable` set, when it cannot be read."""
        if self._source is None:
            try:
                self._source = self.path.read_bytes()
            except OSError as error:
                self.unreadable = error.strerror or str(error)
                self._source = b""
        return self._source

    @property
    def family(self) -> str:
        """`python` or `typescript`: which knowledge applies."""
        return "python" if self.language in {"python", "notebook"} else "typescript"

    def may_matter(self) -> bool:
        """Whether the file can hold a sink at all, judged by words."""
        if self._matters is None:
            built = self.family == "typescript" and _is_built(self.source)
            self._matters = not built and _speaks_of_models(self.source, self.own)
        return self._matters

    @property
    def module(self) -> facts.Module:
        """The facts of the file."""
        if self._module is None:
            source = self.source
            cached = self.cache.get(source, self.language) if self.cache is not None else None
            if cached is None:
                cached = lower(source, self.language)
                if self.cache is not None:
                    self.cache.put(source, self.language, cached)
            self._module = cached
        return self._module

    def line(self, row: int) -> str:
        """One line of the file, from 1; "" beyond its end."""
        lines = self.source.split(b"\n", row)
        return lines[row - 1].decode("utf-8", "replace").rstrip("\r") if 0 < row <= len(lines) else ""


class Project:
    """All files that one run looks at, and the import graph between them."""

    def __init__(self, files: list[Path], cache: FactCache | None = None, own: Iterable[str] = ()) -> None:
        """own: words of the project's own sinks; a file that holds one of them is read."""
        words = tuple(word.encode() for word in own)
        self.files = [SourceFile(index, path, cache, words) for index, path in enumerate(files)]
        self.by_path = {os.path.abspath(file.path): file for file in self.files}
        self._absolute = {file.index: path for path, file in self.by_path.items()}
        self._by_stem: dict[str, list[SourceFile]] = {}
        for file in self.files:
            path = self._absolute[file.index]
            stem = os.path.splitext(os.path.basename(path))[0]
            if stem in {"__init__", "index"}:
                stem = os.path.basename(os.path.dirname(path))
            self._by_stem.setdefault(stem, []).append(file)
        self._packages: dict[str, SourceFile] | None = None
        self._resolved: dict[tuple[int, str, int], SourceFile | None] = {}

    def absolute(self, file: SourceFile) -> str:
        """The absolute path of a file of the project."""
        return self._absolute[file.index]

    def resolve(self, file: SourceFile, module: str, level: int = 0) -> SourceFile | None:
        """The file that an import in `file` means, or None for one outside the project."""
        key = (file.index, module, level)
        if key not in self._resolved:
            if file.family == "python":
                self._resolved[key] = self._python(file, module, level)
            else:
                self._resolved[key] = self._node(file, module)
        return self._resolved[key]

    def _python(self, file: SourceFile, module: str, level: int) -> SourceFile | None:
        parts = module.split(".") if module else []
        if level:
            base = self._absolute[file.index]
            for _ in range(level):
                base = os.path.dirname(base)
            return self._python_at(os.path.join(base, *parts))
        if not parts:
            return None
        tail = "/".join(parts)
        candidates = [
            candidate
            for candidate in self._by_stem.get(parts[-1], ())
            if candidate.family == "python" and self._ends(candidate, tail)
        ]
        return self._nearest(file, candidates) if candidates else None

    def _python_at(self, base: str) -> SourceFile | None:
        return self.by_path.get(base + ".py") or self.by_path.get(os.path.join(base, "__init__.py"))

    def _ends(self, candidate: SourceFile, tail: str) -> bool:
        path = os.path.splitext(self._absolute[candidate.index])[0].replace(os.sep, "/")
        for end in ("/__init__", "/index"):
            path = path.removesuffix(end)
        return path == tail or path.endswith("/" + tail)

    def _nearest(self, file: SourceFile, candidates: list[SourceFile]) -> SourceFile:
        own = self._absolute[file.index]
        return max(
            candidates,
            key=lambda c: (
                len(commonpath([own, self._absolute[c.index]])),
                -len(self._absolute[c.index]),
            ),
        )

    def _node(self, file: SourceFile, module: str) -> SourceFile | None:
        if module.startswith("."):
            base = os.path.normpath(os.path.join(os.path.dirname(self._absolute[file.index]), module))
            return self._node_at(base)
        package = self._workspace(module)
        if package is not None:
            return package
        if module.startswith(("node:", "@types/")) or "/" not in module:
            return None
        tail = module.split("/", 1)[1] if module.startswith(("@/", "~/", "src/", "#")) else module
        tail = re.sub(r"\.(m|c)?(js|ts|tsx|jsx)$", "", tail)
        stem = tail.rsplit("/", 1)[-1]
        candidates = [
            candidate
            for candidate in self._by_stem.get(stem, ())
            if candidate.family == "typescript" and self._ends(candidate, tail)
        ]
        return self._nearest(file, candidates) if candidates else None

    def _node_at(self, base: str) -> SourceFile | None:
        plain = re.sub(r"\.(m|c)?(js|jsx|ts|tsx)$", "", base)
        for stem in (base, plain):
            for ending in ("", ".ts", ".tsx", ".mts", ".cts", ".js", ".jsx", ".mjs", ".cjs"):
                found = self.by_path.get(stem + ending)
                if found is not None:
                    return found
            for ending in (".ts", ".tsx", ".js", ".mjs", ".jsx"):
                found = self.by_path.get(os.path.join(stem, "index" + ending))
                if found is not None:
                    return found
        return None

    def _workspace(self, module: str) -> SourceFile | None:
        """The entry file of a workspace package, by the name in its package.json."""
        if self._packages is None:
            self._packages = {}
            seen: set[str] = set()
            for path in self.by_path:
                folder = os.path.dirname(path)
                while folder not in seen and len(folder) > 1:
                    seen.add(folder)
                    manifest = os.path.join(folder, "package.json")
                    if os.path.isfile(manifest):
                        name = _package_name(manifest)
                        entry = self._node_at(os.path.join(folder, "src", "index")) or self._node_at(
                            os.path.join(folder, "index")
                        )
                        if name and entry is not None:
                            self._packages.setdefault(name, entry)
                    folder = os.path.dirname(folder)
        if module in self._packages:
            return self._packages[module]
        for name, entry in self._packages.items():
            if module.startswith(name + "/"):
                rest = re.sub(r"^(dist|lib|build)/", "", module[len(name) + 1 :])
                root = os.path.dirname(self._absolute[entry.index])
                found = self._node_at(os.path.join(root, re.sub(r"^src/", "", rest)))
                if found is not None:
                    return found
        return None


def _package_name(manifest: str) -> str:
    try:
        with open(manifest, encoding="utf-8") as stream:
            name = json.load(stream).get("name", "")
    except (OSError, ValueError, AttributeError):
        return ""
    return name if isinstance(name, str) else ""
