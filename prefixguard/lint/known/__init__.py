"""Well-known functions and methods: text, lists, dicts, copies, formats, callbacks.

Part of the third step of the linter. Each entry says what comes out of what
goes in; an answer of None means "not known here".
"""
