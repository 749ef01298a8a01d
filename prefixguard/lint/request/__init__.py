"""The parts of one request: what stands where, and what is sent again behind it.

Part of the third step of the linter. A message in front of the history is as
much a prefix as the system text; what stands behind the history is the tail
and may change. Parameters that enter the cache key must not vary by turn.
"""
