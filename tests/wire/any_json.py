"""JSON that looks a little like what the formats know, so that odd values reach deep places."""

from __future__ import annotations

import json
import re
from typing import Any

from hypothesis import strategies as st

KEYS = re.findall(
    r"\S+",
    """
role content type text messages system tools input instructions prompt contents parts model stream id
name tool_calls function arguments call_id tool_call_id tool_use_id function_call custom tool_choice
choices delta message index finish_reason usage cache_control ttl prompt_cache_breakpoint source data url
media_type image_url detail file thinking signature reasoning reasoning_content reasoning_details summary
encrypted_content output item item_id output_index response event error systemInstruction
functionDeclarations functionCall functionResponse thoughtSignature thought inlineData fileData
candidates usageMetadata toolConfig toolSpec toolUse toolResult toolUseId cachePoint reasoningContent
reasoningText status previous_response_id conversation diagnostics previous_message_id images refusal
parameters properties enum anyOf required default description input_tokens output_tokens
cache_read_input_tokens cache_creation_input_tokens cache_creation prompt_tokens prompt_tokens_details
cached_tokens input_tokens_details total_tokens timings tokens_cached prompt_eval_count contentBlockIndex
start stopReason content_block content_block_index partial_json prompt_string done stop response_format
reasoning_effort service_tier metadata session_id prompt_cache_key output_config citations
""",
)
WORDS = re.findall(
    r"\S+",
    """
user assistant system developer tool function model text tool_use tool_result thinking redacted_thinking
image document input_text output_text input_image input_audio input_file function_call
function_call_output reasoning message item_reference image_url file message_start content_block_start
content_block_delta message_delta response.output_item.added response.output_item.done
response.output_text.delta response.completed response.function_call_arguments.delta text_delta
input_json_delta thinking_delta signature_delta citations_delta ephemeral 5m 1h error messageStart
contentBlockStart contentBlockDelta metadata
""",
)
PATHS = (
    "/v1/chat/completions",
    "/v1/responses",
    "/v1/messages",
    "/v1beta/models/gemini-2.5-pro:generateContent",
    "/v1beta/models/g:streamGenerateContent",
    "/model/anthropic.claude/converse",
    "/model/m/converse-stream",
    "/api/chat",
    "/v1/completions",
    "/completion",
    "/elsewhere",
    "/v1/messages/count_tokens",
)

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(WORDS)
    | st.text(max_size=12)
    | st.sampled_from(
        ['{"a":1}', "[1,", "{", "http://[", "data:image/png;base64,AAAA", "https://h/p?q=1", "\ud800"]
    )
)
values: st.SearchStrategy[Any] = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(KEYS) | st.text(max_size=5), inner, max_size=6)
    ),
    max_leaves=24,
)
objects = st.dictionaries(st.sampled_from(KEYS), values, max_size=8)


def encoded(value: Any) -> bytes:
    """As a client would send it; half surrogates are escaped, as JavaScript does."""
    return json.dumps(value).encode()


@st.composite
def messages(draw: st.DrawFn) -> list[Any]:
    """Mostly messages, with anything inside."""
    roles = st.sampled_from(["user", "assistant", "system", "tool", "model", "developer"])
    content = st.text(max_size=30) | st.lists(objects, max_size=3) | values
    one = st.builds(
        lambda role, content, more: {"role": role, "content": content, **more}, roles, content, objects
    )
    return draw(st.lists(one | values, max_size=5))


bodies = st.builds(
    lambda field, inner, more: {**more, field: inner},
    st.sampled_from(["messages", "input", "contents", "prompt"]),
    messages() | values,
    objects,
)
"""A request body with something in the place of its history."""
