"""`prefixguard rules`: the catalogue of findings, and the cache rules with their dates and sources."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Literal

import click

from prefixguard.caches.choose import cache_rules
from prefixguard.caches.rule import CacheRule
from prefixguard.cli import completing
from prefixguard.errors import InputError
from prefixguard.reports.json import encode
from prefixguard.reports.manual import caches_page, findings_page
from prefixguard.reports.rules import (
    cache_page,
    caches_table,
    catalogue,
    finding_page,
    rules_to_json,
)
from prefixguard.reports.text import console
from prefixguard.rulebook import FindingRule, Rulebook

type _Format = Literal["text", "json", "markdown"]


@click.command()
@click.argument(
    "what", nargs=-1, shell_complete=completing.rules, metavar="[CODE|NAME]... | caches [RULE]..."
)
@click.option(
    "--seen-by", type=click.Choice(["lint", "wire", "server"]), help="Only findings that this can see."
)
@click.option(
    "--format",
    "format_",
    type=click.Choice(["text", "json", "markdown"]),
    default="text",
    help="How to print it.",
)
def command(what: tuple[str, ...], seen_by: str | None, format_: _Format) -> None:
    """The catalogue of findings, the rules by which servers cache, and what is known of agents.

    \b
    Examples:
      prefixguard rules                   every finding, a line each
      prefixguard rules PG101             one in full: why it hurts, what to do
      prefixguard rules PG3               a family
      prefixguard rules caches            how each server caches, with date and source
      prefixguard rules caches anthropic  one cache rule in full
      prefixguard rules agents codex      how an agent is brought behind the proxy
    """
    rulebook = Rulebook()
    if what and what[0] == "caches":
        _print_caches(_chosen_caches(cache_rules(rulebook), what[1:]), bool(what[1:]), format_)
        return
    if what and what[0] == "agents":
        _print_agents(what[1:], format_)
        return
    chosen = _chosen_findings(list(rulebook.findings.values()), what)
    if seen_by is not None:
        chosen = [rule for rule in chosen if seen_by in rule.seen_by]
    if format_ == "json":
        click.echo(rules_to_json(chosen), nl=False)
        return
    if format_ == "markdown":
        click.echo(findings_page(chosen), nl=False)
        return
    paper = console()
    if what and all(_is_full_name(word) for word in what):
        for number, rule in enumerate(chosen):
            if number:
                paper.print()
            paper.print(finding_page(rule))
    else:
        paper.print(catalogue(chosen))


def _is_full_name(word: str) -> bool:
    """Whether a word names one finding (a whole code or a name), not a family of them."""
    return not word.upper().startswith("PG") or len(word) == len("PG101")


def _chosen_findings(rules: list[FindingRule], words: tuple[str, ...]) -> list[FindingRule]:
    """The findings that the words name by code, start of a code, or name; all when there are no words."""
    if not words:
        return rules
    chosen: dict[str, FindingRule] = {}
    for word in words:
        code, name = word.upper(), word.lower()
        found = [
            rule
            for rule in rules
            if rule.name == name or (code.startswith("PG") and rule.code.startswith(code))
        ]
        if not found:
            names = [rule.code for rule in rules] + [rule.name for rule in rules] + ["caches"]
            near = get_close_matches(word, names, 1) or get_close_matches(code, names, 1)
            hint = f"did you mean {near[0]}?" if near else "`prefixguard rules` lists all"
            raise InputError(f"rules: no finding is called {word!r}; {hint}")
        chosen.update((rule.code, rule) for rule in found)
    return [rule for rule in rules if rule.code in chosen]


def _chosen_caches(rules: tuple[CacheRule, ...], words: tuple[str, ...]) -> list[CacheRule]:
    chosen = [rule for rule in rules if not words or {rule.name, *rule.aliases} & set(words)]
    for word in words:
        if not any(word == rule.name or word in rule.aliases for rule in rules):
            names = ", ".join(rule.name for rule in rules)
            raise InputError(f"rules caches: no cache rule is called {word!r}; have {names}")
    return chosen


def _print_agents(words: tuple[str, ...], format_: _Format) -> None:
    from prefixguard.proxy.agents import read_agents
    from prefixguard.proxy.agents_page import agent_text, agents_page, agents_table

    agents = read_agents()
    named = {agent.name: agent for agent in agents}
    for word in words:
        if word not in named:
            raise InputError(f"rules agents: no agent is called {word!r}; have {', '.join(named)}")
    chosen = [named[word] for word in words] or list(agents)
    if format_ == "json":
        click.echo(encode(chosen, indent=2) + b"\n", nl=False)
    elif format_ == "markdown":
        click.echo(agents_page(chosen), nl=False)
    else:
        click.echo("\n\n".join(map(agent_text, chosen)) if words else agents_table(chosen))


def _print_caches(rules: list[CacheRule], full: bool, format_: _Format) -> None:
    if format_ == "markdown":
        click.echo(caches_page(rules), nl=False)
        return
    if format_ == "json":
        click.echo(rules_to_json(rules), nl=False)
        return
    paper = console()
    if not full:
        paper.print(caches_table(rules))
        return
    for number, rule in enumerate(rules):
        if number:
            paper.print()
        paper.print(cache_page(rule))
