"""Edits of message lists: windows, pruning, compaction, what is sent but not stored.

Part of the third step of the linter. An edit is a `Change` that rides on the
list; it becomes a finding when the list reaches a request (`sinks`), or, at low
confidence, when the code's own words say that it rewrites history.
What is the same for every message, wherever it stands, is no edit: it gives the
same bytes each time. So each rule here asks for a dependence on place or size.
"""
