"""What a call gives, and what it does to what it was given.

Part of the third step of the linter: project functions by their summary,
sources by the table, well-known functions and methods in `known`, and the
rest by what goes in.
"""
