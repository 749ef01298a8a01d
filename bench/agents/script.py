"""What the scripted model does next: a few tool calls by the client's own schemas, then a closing text.

Pure: a request body in, an action out. The same script serves all APIs; what
differs between them is how tools and results are found in a body.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

type Api = Literal["chat", "responses", "messages", "gemini"]
type Json = dict[str, Any]

_SHELL = re.compile(
    r"^(bash|shell|exec_command|run_shell_command|execute_command|run_commands|run_command|"
    r"run_terminal_cmd|terminal|execute|local_shell|execute_bash)$",
    re.IGNORECASE,
)
_READ = re.compile(
    r"^(read|read_file|read_files|view|view_file|open_file|file_read|read_text)$", re.IGNORECASE
)
_SUBMIT = "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
COMMANDS = ("ls", "cat README.md", "wc -c app.py")
"""What is asked for in each user turn, one call each; the second one by a reading tool where there is one."""
CLOSING = "The project holds a greeting and the function that prints it; nothing has to be changed."


@dataclass(frozen=True)
class Tool:
    """A tool of the client. schema: of its arguments. custom: it takes a text and no object."""

    name: str
    schema: Json
    custom: bool = False


@dataclass(frozen=True)
class Call:
    """Call a tool."""

    tool: str
    arguments: Json


@dataclass(frozen=True)
class Say:
    """Answer with a text, and end the turn."""

    text: str


type Action = Call | Say


def next_action(api: Api, body: Json, folder: str) -> Action:
    """The next step of the script. folder: of the project that the agent works in."""
    tools = tools_of(api, body)
    if not tools:
        return Say(_without_tools(api, body))
    done = results_since_user(api, body)
    if done >= len(COMMANDS):
        submit = _shell(tools, f"echo {_SUBMIT}") if _SUBMIT in json.dumps(body) else None
        return submit or Say(CLOSING)
    command = COMMANDS[done]
    reading = _reading(tools, f"{folder}/README.md") if command.startswith("cat ") else None
    return reading or _shell(tools, command) or Say(CLOSING)


def tools_of(api: Api, body: Json) -> list[Tool]:
    """The tools that a request offers."""
    found: list[Tool] = []
    for tool in body.get("tools") or ():
        if api == "gemini":
            for one in tool.get("functionDeclarations") or ():
                schema = one.get("parametersJsonSchema") or one.get("parameters") or {}
                found.append(Tool(one["name"], schema))
        elif api == "chat":
            one = tool.get("function") or {}
            found.append(Tool(one.get("name", ""), one.get("parameters") or {}))
        elif api == "messages":
            found.append(Tool(tool.get("name", ""), tool.get("input_schema") or {}))
        elif tool.get("type") in ("function", "custom"):
            found.append(Tool(tool.get("name", ""), tool.get("parameters") or {}, tool["type"] == "custom"))
    return [tool for tool in found if tool.name]


def results_since_user(api: Api, body: Json) -> int:
    """How many tool results stand behind the last words of the user."""
    count = 0
    for kind in reversed(list(_kinds(api, body))):
        if kind == "user":
            break
        count += kind == "result"
    return count


def _kinds(api: Api, body: Json) -> Sequence[str]:
    kinds: list[str] = []
    if api == "chat":
        for message in body.get("messages") or ():
            role = message.get("role")
            kinds.append({"tool": "result", "user": "user"}.get(role, "other"))
    elif api == "messages":
        for message in body.get("messages") or ():
            content = message.get("content")
            blocks = content if isinstance(content, list) else []
            results = sum(block.get("type") == "tool_result" for block in blocks)
            kinds += ["result"] * results or ["user" if message.get("role") == "user" else "other"]
    elif api == "responses":
        for item in body["input"] if isinstance(body.get("input"), list) else ():
            kind = item.get("type") or "message"
            result = kind.endswith("_call_output")
            kinds.append("result" if result else "user" if item.get("role") == "user" else "other")
    else:
        for content in body.get("contents") or ():
            parts = content.get("parts") or ()
            results = sum("functionResponse" in part for part in parts)
            kinds += ["result"] * results or ["user" if content.get("role") == "user" else "other"]
    return kinds


def _shell(tools: Sequence[Tool], command: str) -> Call | None:
    for tool in tools:
        if _SHELL.match(tool.name) and not tool.custom:
            return Call(
                tool.name, _arguments(tool.schema, re.compile(r"^(command|cmd|commands|script)$"), command)
            )
    return None


def _reading(tools: Sequence[Tool], path: str) -> Call | None:
    for tool in tools:
        if _READ.match(tool.name) and not tool.custom:
            return Call(tool.name, _arguments(tool.schema, re.compile(r"path|^files?$", re.IGNORECASE), path))
    return None


def _arguments(schema: Json, wanted: re.Pattern[str], value: str) -> Json:
    """Arguments that a schema takes: the value where it is wanted, the plainest in what else is required."""
    properties: Mapping[str, Json] = schema.get("properties") or {}
    required = list(schema.get("required") or ())
    name = next((name for name in properties if wanted.search(name)), None)
    arguments = {n: _plainest(properties.get(n) or {}, wanted, value) for n in required if n != name}
    if name is not None:
        arguments[name] = _fitting(name, properties[name], wanted, value)
    return arguments


def _fitting(name: str, schema: Json, wanted: re.Pattern[str], value: str) -> Any:
    for one in (schema, *(schema.get("anyOf") or ()), *(schema.get("oneOf") or ())):
        if one.get("type") == "array":
            items = one.get("items") or {}
            if (items.get("type") or "string") == "object":
                return [_arguments(items, wanted, value)]
            # A list named in the plural holds whole commands or files, one in the singular a command's words.
            return [value] if name.endswith("s") or "/" in value else ["bash", "-lc", value]
        if one.get("type") == "string":
            return value
    return value


def _plainest(schema: Json, wanted: re.Pattern[str], value: str) -> Any:
    if schema.get("enum"):
        return schema["enum"][0]
    kind = schema.get("type")
    kind = next((k for k in kind if k != "null"), "null") if isinstance(kind, list) else kind
    if kind == "object":
        return _arguments(schema, wanted, value)
    plain: dict[str | None, Any] = {"boolean": False, "integer": 1, "number": 1, "array": [], "null": None}
    return plain.get(kind, "Look at the project")


def _without_tools(api: Api, body: Json) -> str:
    """Titles, summaries, checks: helper requests offer no tools, and may want JSON."""
    schema = _wanted_json(api, body)
    if schema is not None:
        return json.dumps(_example(schema))
    text = json.dumps(body)
    if "SEARCH/REPLACE" in text or "SEARCH block" in text:
        return CLOSING
    if _SUBMIT in text:
        done = sum(message.get("role") == "assistant" for message in body.get("messages") or ())
        command = COMMANDS[done] if done < len(COMMANDS) else f"echo {_SUBMIT}"
        return f"THOUGHT: one step further.\n\n```mswea_bash_command\n{command}\n```"
    return "A look at a small project"


def _wanted_json(api: Api, body: Json) -> Json | None:
    if api == "gemini":
        config = body.get("generationConfig") or {}
        return config.get("responseJsonSchema") or config.get("responseSchema")
    if api == "messages":
        return ((body.get("output_config") or {}).get("format") or body.get("output_format") or {}).get(
            "schema"
        )
    wanted = body.get("response_format") if api == "chat" else (body.get("text") or {}).get("format")
    wanted = wanted or {}
    return wanted.get("schema") or (wanted.get("json_schema") or {}).get("schema")


def _example(schema: Json) -> Any:
    kind = str(schema.get("type") or "object").lower()
    if schema.get("enum"):
        return schema["enum"][0]
    if kind == "object":
        return {name: _example(one) for name, one in (schema.get("properties") or {}).items()}
    return {"boolean": False, "integer": 1, "number": 1, "array": []}.get(kind, "none")
