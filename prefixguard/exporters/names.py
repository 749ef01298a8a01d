"""What OpenTelemetry calls things: `rules/exporters/otel.toml`, read once."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from urllib.parse import urlsplit

from prefixguard.rulebook import Dated, read_table, rules_folder
from prefixguard.turn import Turn


class Names(Dated, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Attribute names by our words; operations by API; providers by host patterns; buckets by metric."""

    span: Mapping[str, str]
    operations: Mapping[str, str]
    providers: Mapping[str, str]
    metrics: Mapping[str, str]
    buckets: Mapping[str, tuple[float, ...]]

    def operation(self, turn: Turn) -> str:
        """What the conventions call a turn's operation."""
        return self.operations.get(turn.api, "chat")

    def provider(self, turn: Turn) -> str:
        """Who serves a turn, as far as its host tells; "_OTHER" where it does not."""
        host = host_of(turn)[0]
        return next((name for p, name in self.providers.items() if fnmatchcase(host, p)), "_OTHER")


def read_names() -> Names:
    """The names that came with the program. Raises RuleError."""
    return read_table(rules_folder() / "exporters" / "otel.toml", Names)


def host_of(turn: Turn) -> tuple[str, int | None]:
    """(host, port) of the server that answered; ("", None) where it is not known."""
    try:
        parts = urlsplit(turn.upstream or "")
        port = parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    except ValueError:
        return "", None
    return parts.hostname or "", port
