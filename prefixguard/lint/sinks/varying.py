"""Whether a test comes out differently from turn to turn.

Part of the third step of the linter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from prefixguard.lint import facts as f
from prefixguard.lint import walk
from prefixguard.lint.knowledge import snake
from prefixguard.lint.sinks import judging
from prefixguard.lint.summary import Hit, Sink
from prefixguard.lint.tables import TURN
from prefixguard.lint.values import Func, Klass, mixed

if TYPE_CHECKING:
    from prefixguard.lint.frame import Frame


def decided(frame: Frame, test: f.Expr) -> None:
    """A test in a function that writes the system text: a mode in it decides what the text says."""
    function = frame.function
    if function is None or frame.knowledge.prompt_function(function.name) is None:
        return
    named = [item for item in walk.inside(test) if isinstance(item, (f.Name, f.Attr)) and _is_mode(item.name)]
    parts = [frame.value(item) for item in named]
    value = mixed(part for part in parts if not isinstance(part.shape, (Func, Klass)))
    if not value.plain:
        label = "decides what the system text says"
        judging.judge(frame, Sink("decision", "function", frame.file.index, test.at, "", 0, label), value)


def _is_mode(name: str) -> bool:
    """Whether a name says how the agent works just now."""
    return snake(name).rsplit("_", 1)[-1] in {"mode", "state", "plan", "phase", "stage"}


def tools_decided(frame: Frame, test: f.Expr) -> None:
    """A test of a mode in a function that gives the tools: the definitions change with it."""
    scopes: list[Frame] = [frame]
    while (outer := scopes[-1].scope) is not None:
        scopes.append(outer)
    functions = (scope.function for scope in scopes if scope.function is not None)
    function = next((one for one in functions if frame.knowledge.is_tool_list_name(one.name)), None)
    if function is None:
        return
    words = walk.names(test)
    for scope in scopes:
        for name in list(words):
            words |= walk.names(scope.definitions.get(name))
    mode = next((word for word in sorted(words) if snake(word).rsplit("_", 1)[-1] == "mode"), None)
    if mode is None:
        return
    change = frame.change(
        "PG403", f"a definition that depends on a mode (`{mode}`)", test.at, TURN, confidence=0
    )
    label = f"`{function.name}` gives it"
    sink = Sink("tools", "function", frame.file.index, function.at, "", 0, label)
    frame.flow.hits.append(Hit(change, sink, "tools", (frame.step(function.at, label),), 0))


def varies(frame: Frame, test: f.Expr) -> bool:
    """Whether a test can come out differently from turn to turn."""
    used = walk.names(test)
    if used & frame.indexes and frame.loops:
        return True
    for name in used:
        if frame.is_list_name(name):
            return True
        plain = snake(name)
        if plain in {
            "step",
            "turn",
            "iteration",
            "attempt_count",
            "n_steps",
            "last_message",
            "user_message",
            "user_input",
            "query",
            "question",
            "last_response",
            "last_tool",
            "tool_calls",
            "token_count",
            "used_tokens",
            "needs_reasoning",
            "is_complex",
            "complexity",
            "difficulty",
            "hard",
        } and (frame.talking or name not in frame.parameters or plain not in {"attempt_count"}):
            return frame.talking or plain in {
                "step",
                "turn",
                "iteration",
                "n_steps",
                "last_message",
                "token_count",
                "used_tokens",
                "last_response",
            }
    for item in walk.inside(test):
        if isinstance(item, f.Call):
            value = frame.lookup(item.func.name) if isinstance(item.func, f.Name) else None
            if frame.talking and value is not None and item.args:
                return True
            if walk.dotted(item.func) in {"random.random", "random.choice", "Math.random"}:
                return True
    return False
