"""The exceptions that a caller can catch. Each message is one line: what, where, what to do."""

from __future__ import annotations


class PrefixGuardError(Exception):
    """Base of all errors that PrefixGuard raises on purpose. The command line prints it and exits with 2."""


class InputError(PrefixGuardError):
    """An input could not be read: a log, a store, a template, a configuration."""


class RuleError(PrefixGuardError):
    """A file in `rules/`, or a user's own rule, does not say what it must say."""


class ServerError(PrefixGuardError):
    """A model server could not be started, reached or understood."""


class MissingExtraError(PrefixGuardError):
    """A command needs an optional dependency that is not installed."""

    def __init__(self, command: str, extra: str) -> None:
        super().__init__(
            f"`prefixguard {command}` needs the extra '{extra}': "
            f"install prefixguard[{extra}] (or [all]) from its repository; PyPI's is another package"
        )
