"""Counting tokens, offline: exact where that can be had, marked as an estimate where not."""
