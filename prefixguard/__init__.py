"""PrefixGuard: where a prompt stopped matching what the server had cached, why, and what it cost."""

__version__ = "0.1.0"
