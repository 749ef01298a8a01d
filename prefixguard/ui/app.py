"""The web application: pages, data and events behind the guard."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable
from functools import cache
from pathlib import Path

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route

from prefixguard.reports.html import Overview, assets
from prefixguard.ui.api import Api
from prefixguard.ui.desk import Desk
from prefixguard.ui.guard import ENTRY, Gate, Guard
from prefixguard.ui.stream import Hub

_FOLDER = Path(__file__).parent / "page"
_HEAD = (
    '<link rel="icon" href="data:,">\n'
    '<link rel="stylesheet" href="/page/page.css">\n'
    '<link rel="stylesheet" href="/live/live.css">\n'
    '<script type="module" src="/live/live.js"></script>'
)


def make_app(desk: Desk, hub: Hub, gate: Gate, opening: Overview) -> Starlette:
    """The application. The desk is started with it and stopped with it.

    opening: an overview without sessions, for its version and prices.
    """
    api = Api(desk, hub, opening)

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        import asyncio

        hub.attach(asyncio.get_running_loop())
        desk.start()
        try:
            yield
        finally:
            hub.close()
            await asyncio.to_thread(desk.stop)

    async def key(_: Request) -> Response:
        return PlainTextResponse(gate.key)

    turn = "/api/sessions/{key}/turns/{index:int}"
    return Starlette(
        routes=[
            Route("/", _page),
            Route("/page/{name}", _file_of(assets.read)),
            Route("/live/{name}", _file_of(_read)),
            Route(ENTRY, key),
            Route("/api/overview", api.overview),
            Route("/api/sessions/{key}", api.session),
            Route(turn, api.turn),
            Route(turn + "/segments/{position:int}", api.text),
            Route("/api/compare", api.compare),
            Route("/api/search", api.search),
            Route("/api/events", api.events),
        ],
        middleware=[
            Middleware(Guard, gate=gate),
            Middleware(GZipMiddleware, minimum_size=2_000, compresslevel=2),
        ],
        lifespan=lifespan,
    )


async def _page(_: Request) -> Response:
    return HTMLResponse(assets.shell(_HEAD), headers={"cache-control": "no-cache"})


def _file_of(read: Callable[[str], bytes]) -> Callable[[Request], Response]:
    def file(request: Request) -> Response:
        name = request.path_params["name"]
        try:
            content = read(name)
        except KeyError:
            return Response("There is no such file.\n", 404, media_type="text/plain")
        media_type = assets.MEDIA_TYPES[Path(name).suffix]
        return Response(content, media_type=media_type, headers={"cache-control": "no-cache"})

    return file


@cache
def _read(name: str) -> bytes:
    """A file of the live pages' own. Raises KeyError for any other name."""
    names = {path.name for path in _FOLDER.iterdir() if path.suffix in assets.MEDIA_TYPES}
    if name not in names:
        raise KeyError(name)
    return (_FOLDER / name).read_bytes()
