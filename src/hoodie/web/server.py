"""The server of the pages: routes, static files by exact name, and the life of the process. Only GET and HEAD."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import socket
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from hoodie.errors import InvalidConfigError
from hoodie.format.json_values import to_json
from hoodie.web.api import REPORTS, Query, answer_of, error_of
from hoodie.web.checks import Checks
from hoodie.web.live import EventStream, Watchers, left_by
from hoodie.web.pages import TYPES, static_files
from hoodie.web.places import Tables, places_of
from hoodie.web.security import Gate, Guarded
from hoodie.web.work import DATA, Work

_LEAVE_SECONDS: Final = 1
"""How long requests that run may take to end once the server is stopped."""
_LEFT: Final = 499
"""The status of an answer whose reader left."""


@dataclass(frozen=True, slots=True)
class Site:
    """The answers of a server: its tables, and whether rows of data are shown."""

    tables: Tables
    shows_data: bool
    work: Work
    checks: Checks
    watchers: Watchers

    @classmethod
    def of(cls, tables: Tables, *, shows_data: bool) -> Site:
        """Make a site of these tables; nothing is read yet."""
        work = Work()
        return cls(tables, shows_data, work, Checks(tables.open), Watchers(work, tables.open))

    @property
    def is_busy(self) -> bool:
        """Whether threads still work for requests or checks."""
        return self.work.is_busy or self.checks.is_busy

    def app(self) -> ASGIApp:
        """Return the application, without a gate."""
        files = static_files()

        async def page(request: Request) -> Response:
            return _file(files, request.path_params.get("name", "index.html"))

        one = "/api/tables/{table_id}"
        return Starlette(
            routes=[
                Route("/", page),
                Route("/static/{name}", page),
                Route("/api/places", self._answer_places),
                Route(f"{one}/verify", self._answer_verify),
                Route(f"{one}/live", self._answer_live),
                Route(f"{one}/{{report}}", self._answer_report),
            ],
            exception_handlers={404: _not_here},
        )

    async def _answer_places(self, request: Request) -> Response:
        return await self._answer(request, "", lambda: places_of(self.tables, shows_data=self.shows_data))

    async def _answer_report(self, request: Request) -> Response:
        table_id, name = request.path_params["table_id"], request.path_params["report"]
        report = REPORTS.get(name)
        if report is None:
            raise HTTPException(404)
        if report.shows_data and not self.shows_data:
            return _no_data("rows are not shown")
        given = dict(sorted(request.query_params.items()))
        kind = DATA if report.shows_data else ""
        return await self._answer(request, kind, lambda: answer_of(self.tables.open(table_id), name, given))

    async def _answer_verify(self, request: Request) -> Response:
        table_id, query = request.path_params["table_id"], Query(request.query_params)
        if not self.shows_data and request.query_params.get("full", "0") != "0":
            return _no_data("a full check names record keys")

        def state() -> dict[str, Any]:
            self.tables.find(table_id)
            if query.flag("start"):
                self.checks.start(table_id, full=query.flag("full"))
            return self.checks.state(table_id)

        return await self._answer(request, "verify", state)

    async def _answer_live(self, request: Request) -> Response:
        table_id = request.path_params["table_id"]
        known = await self._answer(request, "live", lambda: self.tables.find(table_id).to_dict())
        if known.status_code != 200 or request.method == "HEAD":
            return known
        return EventStream(self.watchers.events(table_id))

    async def _answer(self, request: Request, kind: str, work: Callable[[], Any]) -> Response:
        """Answer with the result of blocking work, or its error, as JSON; it is cancelled if the reader leaves."""
        key = (request.url.path, *sorted(request.query_params.items()))
        found = self.work.run(request.path_params.get("table_id", ""), key, lambda: _encoded(work()), kind)
        tasks = asyncio.create_task(found), asyncio.create_task(left_by(request.receive))
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            return _json(tasks[0].result()) if tasks[0].done() else Response(status_code=_LEFT)
        except Exception as error:
            status, values = error_of(error)
            return _json(values, status)
        finally:
            for task in tasks:
                task.cancel()


class Server(uvicorn.Server):
    """A server of one site on one port, which is open from the start."""

    def __init__(self, site: Site, *, host: str, port: int) -> None:
        """Open the port; 0: a free one. Requests wait until `run`.

        Raises: InvalidConfigError if the port cannot be opened.
        """
        self._socket = _opened(host, port)
        self.site = site
        self.gate = Gate(host, self._socket.getsockname()[1])
        super().__init__(
            uvicorn.Config(
                Guarded(site.app(), self.gate),
                loop="asyncio",
                http="h11",
                ws="none",
                lifespan="off",
                log_level="critical",
                access_log=False,
                server_header=False,
                proxy_headers=False,
                timeout_graceful_shutdown=_LEAVE_SECONDS,
            )
        )

    def serve_until_stopped(self) -> None:
        """Serve until SIGINT or SIGTERM, or until `should_exit` is set."""
        # What the first reports need takes longer to load than the server: it is loaded beside the first page.
        threading.Thread(target=importlib.import_module, args=("hoodie.read.inspect",), daemon=True).start()
        with contextlib.suppress(KeyboardInterrupt):
            self.run(sockets=[self._socket])

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End the listeners first: they would stay for ever."""
        self.site.watchers.close()
        await super().shutdown(sockets)
        self.site.work.close()


def _opened(host: str, port: int) -> socket.socket:
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        opened = socket.socket(family, socket.SOCK_STREAM)
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        opened.bind(address)
        opened.listen()
    except (OSError, ValueError) as error:
        raise InvalidConfigError(
            f"{host[:100]!r} port {port} cannot be opened: {getattr(error, 'strerror', None) or error}; pass another "
            "--port, or none"
        ) from error
    return opened


def _file(files: Mapping[str, Any], name: str) -> Response:
    """Answer with a static file of exactly this name."""
    found = files.get(name)
    if found is None:
        raise HTTPException(404)
    return Response(found.read_bytes(), headers={"Content-Type": TYPES[name.rpartition(".")[2]]})


def _no_data(reason: str) -> Response:
    return _json({"error": f"{reason}: `hoodie ui` runs with --no-data", "type": "NoData"}, 403)


async def _not_here(request: Request, error: Exception) -> Response:
    return _json({"error": "there is no such page or report", "type": "NotFound"}, 404)


def _encoded(values: Any) -> bytes:
    return to_json(values, wide_as_text=True).encode(errors="backslashreplace")


def _json(values: Any, status: int = 200) -> Response:
    content = values if isinstance(values, bytes) else _encoded(values)
    return Response(content, status, media_type="application/json")
