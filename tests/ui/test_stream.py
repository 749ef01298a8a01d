"""Events reach every page once, and a page that was away goes on where it stopped."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from prefixguard.ui import stream
from prefixguard.ui.stream import REMEMBERED, Hub

type Parsed = tuple[str, str, str]


def parsed(block: bytes) -> Parsed:
    fields = dict(line.split(": ", 1) for line in block.decode().splitlines() if ": " in line)
    return fields["id"], fields["event"], fields["data"]


async def some(lines: AsyncIterator[bytes], count: int) -> list[Parsed]:
    return [parsed(await asyncio.wait_for(anext(lines), 5)) for _ in range(count)]


async def attached() -> Hub:
    hub = Hub()
    hub.attach(asyncio.get_running_loop())
    return hub


def test_a_new_page_loads_all_and_then_hears() -> None:
    async def check() -> None:
        hub = await attached()
        lines = hub.follow(None)
        (hello,) = await some(lines, 1)
        assert hello[1:] == ("hello", "true")
        await asyncio.to_thread(hub.publish, "changed", b'["one"]')
        assert await some(lines, 1) == [(hub.id_of(1), "changed", '["one"]')]

    asyncio.run(check())


def test_a_page_that_comes_back_hears_what_it_missed() -> None:
    async def check() -> None:
        hub = await attached()
        for number in range(4):
            hub.publish("changed", str(number).encode())
        await asyncio.sleep(0)
        found = await some(hub.follow(hub.id_of(2)), 3)
        assert [one[1:] for one in found] == [("hello", "false"), ("changed", "2"), ("changed", "3")]
        assert [one[0] for one in found] == [hub.id_of(2), hub.id_of(3), hub.id_of(4)]
        (hello,) = await some(hub.follow(hub.id_of(4)), 1)
        assert hello == (hub.id_of(4), "hello", "false")

    asyncio.run(check())


def test_a_page_that_was_away_too_long_loads_all() -> None:
    async def check() -> None:
        hub = await attached()
        for number in range(REMEMBERED + 2):
            hub.publish("changed", str(number).encode())
        await asyncio.sleep(0)
        for last in (hub.id_of(1), f"other.{REMEMBERED}", hub.id_of(REMEMBERED + 3), "nonsense", "."):
            (hello,) = await some(hub.follow(last), 1)
            assert hello[1:] == ("hello", "true"), last
        found = await some(hub.follow(hub.id_of(2)), 2)
        assert found[0][2] == "false"
        assert found[1][2] == "2"

    asyncio.run(check())


def test_a_page_that_does_not_read_is_let_go() -> None:
    async def check() -> None:
        hub = await attached()
        lines = hub.follow(None)
        await some(lines, 1)
        for number in range(stream._WAITING + 2):
            hub.publish("changed", str(number).encode())
        await asyncio.sleep(0)
        assert [line async for line in lines] == []
        assert not hub.is_full

    asyncio.run(check())


def test_silence_is_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    async def check() -> None:
        hub = await attached()
        lines = hub.follow(None)
        await some(lines, 1)
        assert await asyncio.wait_for(anext(lines), 5) == b":\n\n"

    monkeypatch.setattr(stream, "HEARTBEAT", 0.01)
    asyncio.run(check())


def test_the_end_ends_every_page() -> None:
    async def check() -> None:
        hub = await attached()
        pages = [hub.follow(None) for _ in range(3)]
        for lines in pages:
            await some(lines, 1)
        hub.close()
        for lines in pages:
            assert [line async for line in lines] == []

    asyncio.run(check())
