"""The live pages: what is being recorded, seen in a browser on the same machine.

feed (what is new) -> desk (folds it) -> stream (tells the pages) and api (what
they then ask for). Nothing here changes a record.
"""
