"""Tool definitions as OpenAI models read them: a TypeScript namespace, not JSON.

The layout follows the published harmony format (openai-harmony): a comment with
the description, then `type NAME = (_: {...}) => any;`. Counting raw JSON instead
is off by half.
"""

from __future__ import annotations

from typing import Any


def tool_declaration(definition: Any) -> str:
    """One tool definition (in any API's shape) as a TypeScript declaration."""
    if not isinstance(definition, dict):
        return str(definition)
    inner = definition.get("function") or definition.get("toolSpec")
    function: dict[str, Any] = inner if isinstance(inner, dict) else definition
    name = function.get("name") or function.get("type") or "tool"
    lines = _comment(function.get("description"), "")
    schema = function.get("parameters") or function.get("input_schema") or function.get("inputSchema")
    if isinstance(schema, dict) and isinstance(schema.get("json"), dict):  # Bedrock
        schema = schema["json"]
    if not isinstance(schema, dict) or not schema.get("properties"):
        return "\n".join([*lines, f"type {name} = () => any;"])
    lines.append(f"type {name} = (_: {_type(schema, '', 0)}) => any;")
    return "\n".join(lines)


def _comment(text: Any, indent: str) -> list[str]:
    if not isinstance(text, str) or not text:
        return []
    return [f"{indent}// {line}" for line in text.splitlines()]


def _type(schema: Any, indent: str, depth: int) -> str:
    if not isinstance(schema, dict) or depth > 24:
        return "any"
    if isinstance(schema.get("enum"), list):
        return " | ".join(f'"{item}"' if isinstance(item, str) else str(item) for item in schema["enum"])
    for key in ("anyOf", "oneOf", "allOf"):
        if isinstance(schema.get(key), list):
            return " | ".join(_type(option, indent, depth + 1) for option in schema[key])
    kind = schema.get("type")
    if isinstance(kind, list):
        return " | ".join(_type({**schema, "type": one}, indent, depth + 1) for one in kind)
    if kind == "array":
        return f"{_type(schema.get('items'), indent, depth + 1)}[]"
    properties = schema.get("properties")
    if isinstance(properties, dict) and properties:
        required = schema.get("required")
        required = required if isinstance(required, list) else []
        lines = ["{"]
        for name, value in properties.items():
            if isinstance(value, dict):
                lines += _comment(value.get("description"), indent)
            optional = "" if name in required else "?"
            default = value.get("default") if isinstance(value, dict) else None
            note = f", // default: {default}" if default is not None else ","
            lines.append(f"{indent}{name}{optional}: {_type(value, indent + '    ', depth + 1)}{note}")
        return "\n".join([*lines, f"{indent}}}"])
    return {"integer": "number", "string": "string", "number": "number", "boolean": "boolean",
            "null": "null", "object": "object"}.get(str(kind), "any")  # fmt: skip
