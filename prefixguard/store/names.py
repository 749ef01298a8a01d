"""Names that stand for sessions, wherever a session id is taken."""

from __future__ import annotations

UNASSIGNED = "unassigned"
"""The exchanges that no session claims yet."""
LAST = "last"
"""The session that was active last."""
