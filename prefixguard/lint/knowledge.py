"""Answers questions of the rules: is this a source, a sink, a prompt's name, a list of messages?

The linter's only door to knowledge. Users add their own sources and sinks in
`[tool.prefixguard.lint]`; they are merged here, so that the flow sees one table.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path

import msgspec

from prefixguard.errors import RuleError
from prefixguard.lint import tables
from prefixguard.rulebook import read_tables, rules_folder

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


@lru_cache(maxsize=65536)
def snake(name: str) -> str:
    """`camelCase` and `PascalCase` as `snake_case`; leading `#` and `$` dropped."""
    return _CAMEL.sub("_", name.lstrip("#$")).lower()


class Knowledge:
    """All sources and sinks of one language, ready to be asked."""

    def __init__(
        self,
        language: str,
        sources: Iterable[tables.SourceTable],
        sinks: Iterable[tables.SinkTable],
        project: Path | None = None,
    ) -> None:
        self.language = language
        own = [table for table in sources if table.language in {language, ""}]
        every = list(sources)
        self.values: dict[str, tables.Source] = {}
        self.method_values: dict[str, list[tuple[str, tables.Source]]] = {}
        for table in own:
            for source in table.values:
                for name in source.names:
                    if name.startswith("*."):
                        tail = name[2:]
                        self.method_values.setdefault(tail.rsplit(".", 1)[-1], []).append((tail, source))
                    else:
                        self.values[name] = source
        self.lookups = [
            (lookup, re.compile(lookup.methods), re.compile(lookup.receivers, re.IGNORECASE))
            for table in own
            for lookup in table.lookups
        ]
        self.states = [
            (
                state,
                re.compile(state.names),
                re.compile(state.owners) if state.owners else None,
                re.compile(state.attributes) if state.attributes else None,
            )
            for table in every
            for state in table.states
        ]
        self.day_methods = {name for table in own for name in table.coarsen.day_methods}
        self.day_attributes = {name for table in own for name in table.coarsen.day_attributes}
        self.format_methods = {name for table in own for name in table.coarsen.format_methods}
        self.fine_marks = tuple(name for table in own for name in table.coarsen.fine_marks)
        self.fixing = {name for table in own for name in table.order.fixing}
        self.fixing_methods = {name for table in own for name in table.order.fixing_methods}
        self.sort_keys = {name for table in own for name in table.order.sort_keys}
        self.stops = {name for table in own for name in table.values_end.stops if not name.endswith(".*")}
        self.stop_roots = tuple(
            name[:-1] for table in own for name in table.values_end.stops if name.endswith(".*")
        )
        self.stop_methods = {name for table in own for name in table.values_end.stop_methods}
        chosen = [table for table in sinks if table.language in {language, ""}]
        self.sdks = [sdk for table in chosen for sdk in table.sdks]
        self.paths = [(re.compile(path.pattern), path) for table in chosen for path in table.paths]
        self.names = [(re.compile(n.pattern), n) for table in chosen for n in table.names]
        self.functions = [(re.compile(n.pattern), n) for table in chosen for n in table.functions]
        self.lists = [re.compile(n.pattern) for table in chosen for n in table.lists]
        self.rewrites = [re.compile(n.pattern) for table in chosen for n in table.rewrites]
        self.summaries = [re.compile(n.pattern, re.IGNORECASE) for table in chosen for n in table.summaries]
        self.tool_lists = [re.compile(n.pattern) for table in chosen for n in table.tool_lists]
        self.calls: dict[str, list[tuple[str, tables.SinkCall, tables.Sdk]]] = {}
        for sdk in self.sdks:
            for call in sdk.calls:
                self.calls.setdefault(call.match.rsplit(".", 1)[-1], []).append((call.match, call, sdk))
        for candidates in self.calls.values():
            candidates.sort(key=lambda entry: -len(entry[0]))
        self.message_classes = {c.match: c for sdk in self.sdks for c in sdk.classes}
        self.hooks = {hook.key: hook for sdk in self.sdks for hook in sdk.hooks}
        self._named: dict[str, tables.Named | None] = {}
        self._listed: dict[str, bool] = {}
        self._gives_tools: dict[str, bool] = {}
        self._stated: dict[tuple[str, str], tables.State | None] = {}

    def prompt_name(self, name: str) -> tables.Named | None:
        """What a variable, attribute, key or keyword says by its name."""
        if name not in self._named:
            plain = snake(name)
            self._named[name] = next((n for pattern, n in self.names if pattern.match(plain)), None)
        return self._named[name]

    def prompt_function(self, name: str) -> tables.Named | None:
        """What a function says by its name."""
        key = name + "()"
        if key not in self._named:
            plain = snake(name)
            self._named[key] = next((n for pattern, n in self.functions if pattern.match(plain)), None)
        return self._named[key]

    def is_list_name(self, name: str) -> bool:
        """Whether a name says that it holds messages."""
        if name not in self._listed:
            plain = snake(name)
            self._listed[name] = any(pattern.match(plain) for pattern in self.lists)
        return self._listed[name]

    def is_rewrite_name(self, name: str) -> bool:
        """Whether a function's name says that it shortens or rewrites history."""
        plain = snake(name)
        return any(pattern.search(plain) for pattern in self.rewrites)

    def is_tool_list_name(self, name: str) -> bool:
        """Whether a function's name says that it gives all tools."""
        if name not in self._gives_tools:
            plain = snake(name)
            self._gives_tools[name] = any(pattern.search(plain) for pattern in self.tool_lists)
        return self._gives_tools[name]

    def is_summary_name(self, name: str) -> bool:
        """Whether a name or text speaks of a summary."""
        return any(pattern.search(name) for pattern in self.summaries)

    def state(self, name: str, owner: str = "") -> tables.State | None:
        """What a value is, judged by its name alone."""
        key = (name, owner)
        if key not in self._stated:
            plain, plain_owner = snake(name).lstrip("_"), snake(owner).lstrip("_")
            found = None
            for state, names, owners, attributes in self.states:
                if names.match(plain):
                    found = state
                    break
                if owners and attributes and owner and owners.match(plain_owner) and attributes.match(plain):
                    found = state
                    break
            self._stated[key] = found
        return self._stated[key]

    def source(self, dotted: str) -> tables.Source | None:
        """The source of a dotted name, matched whole."""
        return self.values.get(dotted)

    def source_method(self, dotted: str) -> tables.Source | None:
        """A source that is known by the end of a call on any object."""
        for tail, source in self.method_values.get(dotted.rsplit(".", 1)[-1], ()):
            if dotted == tail or dotted.endswith("." + tail):
                return source
        return None

    def lookup(self, receiver: str, method: str) -> tables.Lookup | None:
        """A call that looks something up, by the names of receiver and method."""
        for lookup, methods, receivers in self.lookups:
            if methods.match(method) and receivers.search(receiver):
                return lookup
        return None


class UserRules(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[tool.prefixguard.lint]`: sources and sinks of a project's own."""

    sources: tuple[tables.Source, ...] = ()
    sinks: tuple[tables.SinkCall, ...] = ()
    prompt_names: tuple[str, ...] = ()
    prompt_functions: tuple[str, ...] = ()


def load(folder: Path | None = None, user: UserRules | None = None) -> Mapping[str, Knowledge]:
    """The knowledge of both languages, `python` and `typescript`.

    Raises RuleError when a file or a user's own rule does not say what it must say.
    """
    import datetime

    root = folder or rules_folder()
    sources = [table for _, table in read_tables(root / "sources", tables.SourceTable)]
    sinks = [table for _, table in read_tables(root / "sinks", tables.SinkTable)]
    if user is not None:
        today = datetime.date(1970, 1, 1)
        for language in ("python", "typescript"):
            sources.append(  # noqa: PERF401
                tables.SourceTable(date=today, source="configuration", language=language, values=user.sources)
            )
        calls = tuple(msgspec.structs.replace(call, always=True) for call in user.sinks)
        names = tuple(
            tables.Named(pattern=_whole(p), position="system", confidence="high") for p in user.prompt_names
        )
        functions = tuple(
            tables.Named(pattern=_whole(p), position="system", confidence="high")
            for p in user.prompt_functions
        )
        sinks.append(
            tables.SinkTable(
                date=today,
                source="configuration",
                sdks=(tables.Sdk(name="configuration", imports=(), calls=calls),),
                names=names,
                functions=functions,
            )
        )
    try:
        return {language: Knowledge(language, sources, sinks) for language in ("python", "typescript")}
    except re.error as error:
        raise RuleError(f"rules: the pattern {error.pattern!r} is no regular expression: {error}") from error


def _whole(pattern: str) -> str:
    return f"^(?:{pattern})$"
