"""Coverage-guided fuzzing of what reads strangers' bytes: decoders, streams, usage, and the fold over them.

Not part of the test suite. In an environment that has this package and
`atheris` (Linux, CPython):

    python tests/fuzz/fuzz_wire.py CORPUS_FOLDER -max_total_time=600

An input is some exchanges, one a line: `{"path", "request", "response", "type"}`;
a line that is not one is read as a stream and as a body. Finds are exceptions.
"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from typing import Any

import atheris

sys.path.insert(0, str(Path(__file__).parent.parent))

with atheris.instrument_imports(include=["prefixguard"]):
    from prefixguard.analysis import Fold, Options
    from prefixguard.exchange import Exchange
    from prefixguard.reports.json import to_json
    from prefixguard.rulebook import Rulebook
    from prefixguard.wire.streams import assemble

from wire.any_json import KEYS, PATHS, WORDS

RULEBOOK = Rulebook()
OPTIONS = [
    Options.standard(RULEBOOK, server=name)
    for name in (None, "anthropic", "openai-5.6", "vllm", "deepseek", "llama.cpp")
]
KINDS = (
    "",
    "text/event-stream",
    "application/json",
    "application/x-ndjson",
    "application/vnd.amazon.eventstream",
)


def one_input(data: bytes) -> None:
    """Reads the input in every way."""
    fold = Fold(RULEBOOK, OPTIONS[len(data) % len(OPTIONS)])
    for i, line in enumerate(data.split(b"\n")[:6]):
        try:
            fields = json.loads(line)
            assert isinstance(fields, dict)
        except (ValueError, RecursionError, AssertionError):
            kind = KINDS[len(line) % len(KINDS)]
            stream = line.replace(b"\x1e", b"\n")
            response = assemble(stream, kind)
            exchange = Exchange(float(i), PATHS[len(line) % len(PATHS)], line, response=response)
        else:
            exchange = Exchange(
                float(i), str(fields.get("path")).encode("ascii", "replace").decode(),
                _dumped(fields.get("request")), {"x-session-id": "s"} if len(line) % 3 else {},
                response=_dumped(fields.get("response")) if "response" in fields else None,
                usage=_dumped(fields["usage"]) if "usage" in fields else None,
                status=fields.get("status") if isinstance(fields.get("status"), int) else 200,
            )  # fmt: skip
        turn = fold.step(exchange)
        assert 0 <= turn.tokens.rebilled <= turn.tokens.lost, turn
    to_json(fold.result())


def _dumped(value: Any) -> bytes:
    return json.dumps(value).encode()


# -- mutations that keep JSON JSON ------------------------------------------------------------


def mutate(data: bytes, most: int, seed: int) -> bytes:
    """Half the time libFuzzer's own mutations of the bytes, else one of the JSON's structure."""
    chance = random.Random(seed)
    lines = data.split(b"\n")
    if chance.random() < 0.4 or not lines:
        return bytes(atheris.Mutate(data, most))
    at = chance.randrange(len(lines))
    try:
        value = json.loads(lines[at])
    except (ValueError, RecursionError):
        return bytes(atheris.Mutate(data, most))
    for _ in range(chance.randint(1, 3)):
        value = _changed(value, chance)
    if chance.random() < 0.3:
        lines.insert(at, lines[at])
    lines[at] = _dumped(value)
    made = b"\n".join(lines[-6:])
    return made if len(made) <= most else data


def _any(chance: random.Random, depth: int = 0) -> Any:
    pick = chance.random()
    if pick < 0.25 or depth > 2:
        return chance.choice(WORDS)
    if pick < 0.5:
        return chance.choice(
            [None, True, 0, -1, 2**63, 1.5, 1e308, "", "{", '{"a":1}', "http://[", "\ud800", "x" * 40]
        )
    if pick < 0.75:
        return {chance.choice(KEYS): _any(chance, depth + 1) for _ in range(chance.randint(0, 3))}
    return [_any(chance, depth + 1) for _ in range(chance.randint(0, 3))]


def _changed(value: Any, chance: random.Random) -> Any:
    """The value with one place in it changed."""
    if isinstance(value, dict) and value and chance.random() < 0.85:
        key = chance.choice(list(value))
        match chance.randrange(8):
            case 0:
                return {k: v for k, v in value.items() if k != key}
            case 1:
                return {**value, chance.choice(KEYS): _any(chance)}
            case 2:
                return {(chance.choice(KEYS) if k == key else k): v for k, v in value.items()}
        return {**value, key: _changed(value[key], chance)}
    if isinstance(value, list) and value and chance.random() < 0.85:
        at = chance.randrange(len(value))
        match chance.randrange(6):
            case 0:
                return value[:at] + value[at + 1 :]
            case 1:
                return [*value[:at], _any(chance), *value[at:]]
            case 2:
                return [*value, value[at]]
        return [*value[:at], _changed(value[at], chance), *value[at + 1 :]]
    if isinstance(value, str) and chance.random() < 0.4:
        at = chance.randint(0, len(value))
        return (
            value[:at]
            + chance.choice(["", "x", "\n", "é", "\ud83d", '"', "2026-11-30T10:00:00Z"])
            + value[at + 1 :]
        )
    return _any(chance)


def seeds(folder: Path) -> None:
    """Writes small conversations of every API as the first corpus."""
    from cases.agent import Talk, call, reasoning, result, text
    from cases.bodies import APIS
    from wire.transcripts import TRANSCRIPTS

    folder.mkdir(parents=True, exist_ok=True)
    for api in (*APIS, "completions"):
        talk = Talk(api=api, system=["You are an agent."], tools=[])
        talk.tools = [
            {"name": "read_file", "description": "Reads.", "properties": {"path": {"type": "string"}}}
        ]
        talk.user(
            "Hello, please look at this picture.",
            *([] if api == "completions" else [{"kind": "image", "data": "AAAABBBBCCCC"}]),
        )
        if api == "completions":
            talk.send(text("An answer that is long enough to be found again."))
        else:
            talk.send(reasoning("I think"), text("Let me see what it holds."), call(1))
            talk.tool_result(result(1, "the content of the file"))
        talk.user("And what else is there?")
        talk.send(text("Nothing else that I could see in there."))
        lines = [
            _dumped(
                {
                    "path": e.path,
                    "request": json.loads(e.request),
                    "response": json.loads(e.response or b"null"),
                }
            )
            for e in talk.log
        ]
        (folder / f"talk-{api}").write_bytes(b"\n".join(lines))
    for name, (_, stream, _) in TRANSCRIPTS.items():
        (folder / f"stream-{name}").write_bytes(stream.replace(b"\n", b"\x1e"))


if __name__ == "__main__":
    for argument in sys.argv[1:2]:
        if not argument.startswith("-") and not any(Path(argument).glob("*")):
            seeds(Path(argument))
    atheris.Setup(sys.argv, one_input, custom_mutator=mutate)
    atheris.Fuzz()
