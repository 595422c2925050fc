"""The server of `hoodie ui` in a thread of this process, and a client with the cookie of its page."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

from hoodie.web.places import Tables
from hoodie.web.server import Server, Site


class Reply(NamedTuple):
    """An answer of the server."""

    status: int
    headers: Mapping[str, str]
    text: str

    @property
    def values(self) -> Any:
        """The values of an answer in JSON."""
        return json.loads(self.text)


@dataclass
class Client:
    """Sends requests to a server; `cookie` is the header that a browser sends."""

    server: Server
    cookie: str = ""

    def send(self, path: str, method: str = "GET", **headers: str) -> Reply:
        """Send one request with these headers, `_` for `-`; without the cookie if `Cookie` is given."""
        connection = http.client.HTTPConnection("127.0.0.1", self.server.gate.port, timeout=20)
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        try:
            connection.request(method, path, headers={"Cookie": self.cookie, **given})
            answer = connection.getresponse()
            return Reply(answer.status, {k.lower(): v for k, v in answer.headers.items()}, answer.read().decode())
        finally:
            connection.close()

    def get(self, path: str) -> Any:
        """The values of an endpoint below `/api/`."""
        reply = self.send(f"/api/{path}")
        assert reply.status == 200, reply
        return reply.values

    def id_of(self, name: str) -> str:
        """The id of the table of this name."""
        found = [table["id"] for table in self.get("places")["tables"] if table["name"] == name]
        assert len(found) == 1, name
        return str(found[0])

    def report(self, name: str, report: str) -> Any:
        """The values of a report of the table of this name."""
        return self.get(f"tables/{self.id_of(name)}/{report}")


@contextmanager
def serving(
    *places: object, shows_data: bool = True, options: Mapping[str, str] | None = None, host: str = "127.0.0.1"
) -> Iterator[Client]:
    """Serve these places on a free port; the client is logged in."""
    site = Site.of(Tables([str(place) for place in places], options or {}), shows_data=shows_data)
    server = Server(site, host=host, port=0)
    thread = threading.Thread(target=server.serve_until_stopped)
    thread.start()
    try:
        client = Client(server)
        login = client.send(f"/?token={server.gate.token}", Cookie="")
        client.cookie = login.headers["set-cookie"].partition(";")[0]
        yield client
    finally:
        server.should_exit = True
        thread.join(timeout=20)
        assert not thread.is_alive()
