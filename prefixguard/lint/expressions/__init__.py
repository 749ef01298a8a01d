"""What an expression gives: literals, names, attributes, containers, templates, operators.

Part of the third step of the linter; called by `frame`, calls `calls` for calls.
"""
