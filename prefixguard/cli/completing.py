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
    from prefixguard.rulebook import rules_folder

    return _fitting(((path.stem, "") for path in sorted(rules_folder().glob("caches/*.toml"))), incomplete)


def codes_and_caches(context: click.Context, parameter: click.Parameter, incomplete: str) -> Offers:
    """What `prefixguard rules` takes: codes, or `caches` and then names of cache rules."""
    if "caches" in (context.params.get("what") or ()):
        return cache_rules(context, parameter, incomplete)
    return [*codes(context, parameter, incomplete), *_fitting([("caches", "how servers cache")], incomplete)]


def models(context: click.Context, parameter: click.Parameter, incomplete: str) -> Offers:
    """Names of models whose layers are known, and files."""
    from prefixguard.rulebook import rules_folder

    names = ((path.stem, "") for path in sorted(rules_folder().glob("models/*.toml")))
    return [CompletionItem(incomplete, type=_FILES), *_fitting(names, incomplete)]


def _fitting(named: Iterable[tuple[str, str]], incomplete: str) -> Offers:
    return [CompletionItem(name, help=about or None) for name, about in named if name.startswith(incomplete)]
