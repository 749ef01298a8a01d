"""Front ends: whatever the bytes, facts come out; what cannot be parsed is said and the rest is kept."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prefixguard.lint import facts as f
from prefixguard.lint.frontends import lower

PYTHON = """
@app.hook(1)
async def ask(x, y: int = 3, *rest, k=None, **more) -> str:
    text = f"a{x:%H}{{b}}" "c"
    for i, item in enumerate(rest):
        text += str(item)
    if (n := len(rest)) > 2: return text
    return [q async for q in more if q] or {**more, "a": 1} or x[1:2]
"""
TYPESCRIPT = """
import A, { b as c, type D } from "x";
export const ask = async ({ u, v: w }: { u: string }) => { const t = `a${u}b`; return t; };
export default class K extends B { private x = 1; constructor(private p: string) { super(); } get s() { return this.p; } }
"""  # noqa: E501


def names(body: list[f.Stmt]) -> list[str]:
    return [type(statement).__name__ for statement in body]


def test_python_is_lowered() -> None:
    module = lower(PYTHON.encode(), "python")
    function = module.functions[0]
    assert function.name == "ask"
    assert [(p.name, p.star) for p in function.params] == [
        ("x", 0),
        ("y", 0),
        ("rest", 1),
        ("k", 0),
        ("more", 2),
    ]
    assert names(function.body) == ["Assign", "Loop", "If", "Return"]
    first = function.body[0]
    assert isinstance(first, f.Assign)
    assert isinstance(first.value, f.Text)
    assert [type(part).__name__ for part in first.value.parts] == ["Lit", "Format", "Lit", "Lit"]
    assert module.errors == []


def test_typescript_is_lowered() -> None:
    module = lower(TYPESCRIPT.encode(), "typescript")
    assert [(i.module, i.name, i.alias) for i in module.imports] == [("x", "default", "A"), ("x", "b", "c")]
    assert module.functions[0].params[0].fields == [("u", "u"), ("v", "w")]
    assert set(module.classes[0].methods) == {"constructor", "s"}
    assert module.functions[module.classes[0].methods["s"]].kind == "getter"
    assert module.exports == {"default": "K"}


@pytest.mark.parametrize(
    ("language", "source"),
    [("python", "def broken(:\n    pass\nx = 1\n"), ("typescript", "function broken( {\n}\nconst x = 1;\n")],
)
def test_a_parse_error_is_placed(language: str, source: str) -> None:
    module = lower(source.encode(), language)
    assert module.errors
    assert all(1 <= at[0] <= 4 for at in module.errors)


def test_the_rest_of_a_broken_file_is_kept() -> None:
    module = lower(b"def broken(:\n    pass\n\ndef whole(a):\n    return a\n", "python")
    assert "whole" in {function.name for function in module.functions}


def test_half_a_surrogate_pair_can_be_cached() -> None:
    for language, source in (("python", b's = "\\udce9"'), ("typescript", b'const s = "\\udce9";')):
        msgspec.msgpack.encode(lower(source, language))


def test_a_notebook_keeps_the_rows_of_its_file() -> None:
    book = {
        "cells": [
            {"cell_type": "markdown", "source": ["# title\n"]},
            {"cell_type": "code", "source": ["%pip install x\n", "import time\n", "t = time.time()"]},
        ],
        "nbformat": 4,
    }
    text = json.dumps(book, indent=1)
    module = lower(text.encode(), "notebook")
    row = next(i for i, line in enumerate(text.split("\n"), 1) if "t = time.time()" in line)
    assert module.errors == []
    assert [statement.at[0] for statement in module.body] == [row - 1, row]


@pytest.mark.parametrize(
    "source", [b"", b"not json", b"[]", b'{"cells": 3}', b'{"cells": [{"cell_type": "code"}]}']
)
def test_a_strange_notebook_is_no_crash(source: bytes) -> None:
    lower(source, "notebook")


def test_a_notebook_on_one_line_is_read() -> None:
    book = {"cells": [{"cell_type": "code", "source": "x = 1\ny = 2"}]}
    assert len(lower(json.dumps(book).encode(), "notebook").body) == 2


FRAGMENTS = st.sampled_from(
    [
        "def f(",
        "class A:",
        "\n    ",
        "return x",
        "`${",
        "}",
        "{",
        "x => ",
        "'",
        '"',
        "f'{a:%H}'",
        "[",
        "]",
        "await ",
        "\\u",
        "import ",
        "…",
        "\t",
    ]
)


@settings(max_examples=80, deadline=None)
@given(
    st.one_of(
        st.binary(max_size=200), st.lists(FRAGMENTS, max_size=25).map(lambda parts: "".join(parts).encode())
    )
)
def test_any_bytes_are_lowered_and_survive_the_cache(source: bytes) -> None:
    for language in ("python", "typescript", "tsx", "notebook"):
        module = lower(source, language)
        again = msgspec.msgpack.decode(msgspec.msgpack.encode(module), type=f.Module)
        assert again == module
