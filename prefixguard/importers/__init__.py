"""Reads other tools' records, and our own, as exchanges: the one door for every reading command."""

from prefixguard.importers.exchange_log import read_log, write_log
from prefixguard.importers.sources import iterate_source, open_source

__all__ = ["iterate_source", "open_source", "read_log", "write_log"]
