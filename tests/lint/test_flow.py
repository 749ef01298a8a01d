"""How values travel: modules, re-exports, classes, lifetimes, formats, and what stops them."""

from __future__ import annotations

from pathlib import Path

import pytest

from prefixguard.lint.run import Options, Report, lint

RULES = 'RULES = "Read a file before you edit it. " * 60\n'
SEND = """
def turn(client, history, system):
    return client.chat.completions.create(model="m", messages=[{"role": "system", "content": system}, *history])
"""  # noqa: E501


def run(folder: Path, **files: str) -> Report:
    """Lint these files; in a name, `_py` and `_ts` stand for the ending, `__` for a folder's end."""
    for name, text in files.items():
        path = folder / name.replace("_py", ".py").replace("_ts", ".ts").replace("__", "/").replace(
            "DUNDER", "__"
        )
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return lint([folder], Options(jobs=1))


def codes(report: Report) -> list[tuple[str, str, str]]:
    return [(f.code, f.severity, f.lifetime) for f in report.findings]


def ask(folder: Path, setup: str, expression: str) -> list[tuple[str, str, str]]:
    """The findings for an expression that becomes system text on every call."""
    text = f"{setup}\n{RULES}\ndef turn(client, history, x):\n    system = RULES + str({expression})\n" + (
        '    return client.chat.completions.create(model="m", '
        'messages=[{"role": "system", "content": system}, *history])\n'
    )
    return codes(run(folder, agent_py=text))


def test_through_two_modules_and_a_reexport(tmp_path: Path) -> None:
    report = run(
        tmp_path,
        pkg__DUNDERinitDUNDER_py="from .clock import stamp\n",
        pkg__clock_py="import datetime as dt\n\ndef stamp():\n    return dt.datetime.now().isoformat()\n",
        agent_py="from pkg import stamp\n"
        + SEND
        + "\ndef go(client, history):\n    return turn(client, history, f'now {stamp()}')\n",
    )
    assert codes(report) == [("PG101", "error", "call")]
    finding = report.findings[0]
    assert report.path(finding).name == "clock.py"
    assert [report.project.files[s.file].path.name for s in finding.trace][-1] == "agent.py"


def test_through_an_index_file_in_typescript(tmp_path: Path) -> None:
    report = run(
        tmp_path,
        lib__time_ts="export const now = () => new Date().toISOString();\n",
        lib__index_ts='export * from "./time";\n',
        agent_ts='import { generateText } from "ai";\nimport { now } from "./lib";\n'
        "export const turn = (model: any, messages: any[]) => generateText({ model, messages, system: `It is ${now()}` });\n",  # noqa: E501
    )
    assert codes(report) == [("PG101", "error", "call")]


def test_an_own_helper_is_a_source_without_being_named(tmp_path: Path) -> None:
    setup = "import subprocess\n\ndef tree(root):\n    done = subprocess.run(['git', 'ls-files'], cwd=root, capture_output=True, text=True)\n    return done.stdout\n"  # noqa: E501
    assert ask(tmp_path, setup, "tree('.')") == [("PG106", "error", "call")]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("datetime.now()", ("PG101", "error", "call")),
        ("datetime.now().strftime('%H:%M')", ("PG101", "error", "call")),
        ("datetime.now().strftime('%Y-%m-%d')", ("PG102", "info", "day")),
        ("datetime.now().date()", ("PG102", "info", "day")),
        ("datetime.now().year", ("PG102", "info", "day")),
        ("f'{datetime.now():%A, %d %B %Y}'", ("PG102", "info", "day")),
        ("datetime.now() - x", ("PG103", "error", "call")),
        ("date.today()", ("PG102", "info", "day")),
    ],
)
def test_what_a_format_leaves_of_a_clock(
    tmp_path: Path, expression: str, expected: tuple[str, str, str]
) -> None:
    assert ask(tmp_path, "from datetime import date, datetime", expression) == [expected]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("new Date().toISOString()", "PG101"),
        ("new Date().toISOString().slice(0, 10)", "PG102"),
        ('new Date().toISOString().split("T")[0]', "PG102"),
        ("new Date().toLocaleDateString()", "PG102"),
        ("new Date().getFullYear()", "PG102"),
        ("dayjs().format('YYYY-MM-DD')", "PG102"),
        ("dayjs().format('HH:mm')", "PG101"),
        ("Date.now()", "PG101"),
        ("crypto.randomUUID()", "PG104"),
    ],
)
def test_what_a_format_leaves_of_a_clock_in_typescript(
    tmp_path: Path, expression: str, expected: str
) -> None:
    text = (
        'import dayjs from "dayjs";\nimport { generateText } from "ai";\n'
        f"export const turn = (model: any, messages: any[]) => generateText({{ model, messages, system: `x ${{{expression}}}` }});\n"  # noqa: E501
    )
    assert [code for code, _, _ in codes(run(tmp_path, agent_ts=text))] == [expected]


@pytest.mark.parametrize(
    ("setup", "expression"),
    [
        ("import time", "len(str(time.time()))"),
        ("import os", "sorted(os.environ['PATH'])"),
        ("", "sorted({'a', 'b'} | set(x))"),
        ("def now():\n    return '2025-01-01'", "now()"),
        ("import platform", "platform.system()"),
        ("import random", "random.Random(3).choice('ab')"),
    ],
)
def test_what_does_not_change(tmp_path: Path, setup: str, expression: str) -> None:
    assert ask(tmp_path, setup, expression) == []


@pytest.mark.parametrize(
    ("body", "lifetime"),
    [
        ("    def __init__(self): self.system = f'{datetime.now()}'", "session"),
        (
            "    def __init__(self): self.system = None\n    def prepare(self):\n        if self.system is None:\n            self.system = f'{datetime.now()}'",  # noqa: E501
            "session",
        ),
        ("    @property\n    def system(self): return f'{datetime.now()}'", "call"),
        ("    @functools.cached_property\n    def system(self): return f'{datetime.now()}'", "session"),
    ],
)
def test_how_long_a_field_lives(tmp_path: Path, body: str, lifetime: str) -> None:
    text = (
        "import functools\nfrom datetime import datetime\nclass Agent:\n" + body + "\n"
        "    def turn(self, client, history):\n"
        "        return client.chat.completions.create(model='m', messages=[{'role': 'system', 'content': self.system}, *history])\n"  # noqa: E501
    )
    report = run(tmp_path, agent_py=text)
    assert [f.lifetime for f in report.findings] == [lifetime]


def test_a_value_read_before_the_conversation_is_read_once(tmp_path: Path) -> None:
    text = (
        "from datetime import datetime\ndef chat(client):\n    system = f'{datetime.now()}'\n"
        "    messages = [{'role': 'system', 'content': system}]\n    while True:\n"
        "        messages.append({'role': 'user', 'content': input()})\n"
        "        r = client.chat.completions.create(model='m', messages=messages)\n        messages.append(r)\n"  # noqa: E501
    )
    assert {f.severity for f in run(tmp_path, agent_py=text).findings} <= {"info"}


def test_a_value_given_to_a_constructor_reaches_the_method_that_sends_it(tmp_path: Path) -> None:
    text = (
        "from datetime import datetime\nclass Agent:\n    def __init__(self, system): self.system = system\n"
        "    def turn(self, client, history):\n"
        "        return client.chat.completions.create(model='m', messages=[{'role': 'system', 'content': self.system}, *history])\n"  # noqa: E501
        "def handle(client, history):\n    agent = Agent(f'now {datetime.now()}')\n    return agent.turn(client, history)\n"  # noqa: E501
    )
    assert "PG101" in [f.code for f in run(tmp_path, agent_py=text).findings]


def test_an_overriding_method_is_seen_through_its_base(tmp_path: Path) -> None:
    text = (
        "from datetime import datetime\nclass Base:\n    def prompt(self): raise NotImplementedError\n"
        "    def turn(self, client, history):\n"
        "        return client.chat.completions.create(model='m', messages=[{'role': 'system', 'content': self.prompt()}, *history])\n"  # noqa: E501
        "class Clocked(Base):\n    def prompt(self): return f'{datetime.now()}'\n"
    )
    assert "PG101" in [f.code for f in run(tmp_path, agent_py=text).findings]


def test_one_shot_calls_are_only_remarked_on(tmp_path: Path) -> None:
    text = (
        "from datetime import datetime\nfrom openai import OpenAI\nclient = OpenAI()\ndef judge(answer):\n"
        "    return client.chat.completions.create(model='m', messages=[{'role': 'system', 'content': f'Now {datetime.now()}'},"  # noqa: E501
        " {'role': 'user', 'content': answer}])\n"
    )
    assert {f.severity for f in run(tmp_path, agent_py=text).findings} == {"info"}


def test_recursion_and_cycles_end(tmp_path: Path) -> None:
    report = run(
        tmp_path,
        a_py="from b import g\ndef f(n, messages):\n    return g(n - 1, messages)\n",
        b_py="from a import f\ndef g(n, messages):\n    return f(n, messages) if n else messages\nx = [1]\nx.append(x)\n",  # noqa: E501
    )
    assert report.findings == []


def test_a_long_chain_of_calls_is_read_in_time_that_grows_with_its_length(tmp_path: Path) -> None:
    chain = "z" + ".opt('a', {'type': 'string'})" * 60
    assert run(tmp_path, chain_py=f"messages = {chain}\n").findings == []


def test_a_set_that_the_callee_sorts_is_in_order(tmp_path: Path) -> None:
    setup = "def named(kinds: frozenset):\n    return ', '.join(sorted(kinds))\n\ndef listed(kinds: frozenset):\n    return ', '.join(kinds)\n"  # noqa: E501
    assert ask(tmp_path, setup, "named(frozenset(x))") == []
    assert {code for code, _, _ in ask(tmp_path, setup, "listed(frozenset(x))")} == {"PG209"}


def test_a_script_reads_anew_what_its_own_conversation_reads(tmp_path: Path) -> None:
    script = """
from datetime import datetime
from openai import OpenAI
client, history = OpenAI(), []
RULES = "Answer in one line, and never guess. " * 200
started = datetime.now()
for question in ["one", "two"]:
    history.append({"role": "user", "content": question})
    system = RULES + f"It is PLACE."
    reply = client.chat.completions.create(
        model="m", messages=[{"role": "system", "content": system}, *history])
    history.append({"role": "assistant", "content": reply.choices[0].message.content})
"""
    (tmp_path / "anew").mkdir()
    (tmp_path / "once").mkdir()
    anew = codes(run(tmp_path / "anew", agent_py=script.replace("PLACE", "{datetime.now()}")))
    once = codes(run(tmp_path / "once", agent_py=script.replace("PLACE", "{started}")))
    assert [(code, severity) for code, severity, _ in anew] == [("PG101", "error")]
    assert all(severity != "error" for _, severity, _ in once)


def test_a_message_to_a_person_is_no_message_to_a_model(tmp_path: Path) -> None:
    text = (
        "import time\nfrom openai import OpenAI\n"
        "def told(began, question):\n"
        "    return {kind}(content=f'after {{time.time() - began}} s: {{question}}')\n"
    )
    (tmp_path / "model.py").write_text(text.format(kind="UserMessage"))
    (tmp_path / "person.py").write_text(text.format(kind="OutboundMessage"))
    report = lint([tmp_path], Options(jobs=1))
    assert {report.path(finding).name for finding in report.findings} == {"model.py"}


def test_a_prompt_handed_over_as_a_function_is_made_anew_for_each_request(tmp_path: Path) -> None:
    """What the function reads, that is: what it found outside was read when the module was."""
    head = "from datetime import datetime\nfrom langgraph.prebuilt import create_react_agent\n"
    prompt = "def prompt(s):\n    return [{{'role': 'system', 'content': f'It is {{{}}}.'}}, *s['log']]\n"
    agent = "agent = create_react_agent('openai:gpt-5', tools=[], prompt=prompt)\n"
    inside = run(tmp_path / "inside", agent_py=head + prompt.format("datetime.now()") + agent)
    outside = run(
        tmp_path / "outside", agent_py=head + "START = datetime.now()\n" + prompt.format("START") + agent
    )
    assert codes(inside) == [("PG101", "error", "call")]
    assert codes(outside) == [("PG101", "warning", "process")]
