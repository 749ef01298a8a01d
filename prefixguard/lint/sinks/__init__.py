"""Where values become part of a request: SDK calls, built messages, prompt names, hooks.

Part of the third step of the linter. What is found is noted as a `Hit`; a sink
that depends on a parameter waits as `Pending` and is judged where the function
is called. `requests` looks at the parts of one request.
"""
