"""The official SARIF 2.1.0 schema, by way of models that are generated from it (fluidattacks-core-sarif)."""

from __future__ import annotations

from typing import Any

from fluidattacks_core.sarif import SarifLog


def validate(document: dict[str, Any]) -> None:
    """Raises pydantic.ValidationError where the schema is not kept; unknown fields are not."""
    SarifLog.model_validate(document)
