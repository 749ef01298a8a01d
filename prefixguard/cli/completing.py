"""What a shell offers while a command line is typed: names that click cannot know.

Called between two key strokes, so nothing is imported here that takes long to
load. Words are completed as click's `shell_complete` wants them.
"""

from __future__ import annotations

from collections.abc import Iterable

import click
from click.shell_completion import CompletionItem

type Offers = list[CompletionItem[str]]

_FILES = "file"  # the shell completes paths by itself


def sources(context: click.Context, parameter: click.Parameter, incomplete: str) -> Offers:
    """Recorded sessions, the newest first, and files."""
    return [CompletionItem(incomplete, type=_FILES), *sessions(context, parameter, incomplete)]


def sessions(context: click.Context, parameter: click.Parameter, incomplete: str) -> Offers:
    """Recorded sessions, the newest first: of the record that the line has named so far."""
    from prefixguard.store.glance import session_ids

    known = session_ids(context.params.get("store") or context.params.get("target"))
    named = [("last", "the session that was active last"), *known] if known else []
    return _fitting(named, incomplete)


def codes(context: click.Context, parameter: click.Parameter, incomplete: str) -> Offers:
    """Codes of findings; in a list the last one is completed."""
    from prefixguard.rulebook import Rulebook

    before, comma, last = incomplete.rpartition(",")
    titles = [(code, rule.title) for code, rule in Rulebook().findings.items()]
    start = before + comma
    return [
        CompletionItem(start + str(item.value), help=item.help) for item in _fitting(titles, last.upper())
    ]


def cache_rules(context: click.Context, parameter: click.Parameter, incomplete: str) -> Offers:
    """Names of cache rules, for `--server`."""
    return _named_by_files("caches", incomplete)


def rules(context: click.Context, parameter: click.Parameter, incomplete: str) -> Offers:
    """What `prefixguard rules` takes: codes; or `caches`, `agents`, and then names of these."""
    said = context.params.get("what") or ()
    if "caches" in said:
        return cache_rules(context, parameter, incomplete)
    if "agents" in said:
        return _named_by_files("agents", incomplete)
    topics = [("caches", "how servers cache"), ("agents", "how agents are brought to the proxy")]
    return [*codes(context, parameter, incomplete), *_fitting(topics, incomplete)]


def record_formats(context: click.Context, parameter: click.Parameter, incomplete: str) -> Offers:
    """Formats of other tools' records, for `import --from`."""
    return _named_by_files("importers", incomplete)


def cards(context: click.Context, parameter: click.Parameter, incomplete: str) -> Offers:
    """Cards whose memory is known, for `--gpu`; however they are spelt."""
    from prefixguard.kv import GpuTable
    from prefixguard.rulebook import Rulebook

    names = [gpu.name for gpu in Rulebook().table("gpus", GpuTable).gpu]
    start = incomplete.casefold()
    return [CompletionItem(name) for name in names if name.casefold().startswith(start)]


def models(context: click.Context, parameter: click.Parameter, incomplete: str) -> Offers:
    """Names of models whose layers are known, and files."""
    return [CompletionItem(incomplete, type=_FILES), *_named_by_files("models", incomplete)]


def _named_by_files(folder: str, incomplete: str) -> Offers:
    """What the files of a folder of rules are named after."""
    from prefixguard.rulebook import rules_folder

    return _fitting(((path.stem, "") for path in sorted(rules_folder().glob(f"{folder}/*.toml"))), incomplete)


def _fitting(named: Iterable[tuple[str, str]], incomplete: str) -> Offers:
    return [CompletionItem(name, help=about or None) for name, about in named if name.startswith(incomplete)]
