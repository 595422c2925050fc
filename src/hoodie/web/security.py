"""The gate of the server: who may ask, and with which headers each answer leaves.

The address that `hoodie ui` prints has a random token; the address for the browser has another, for one use. A token is
exchanged for a cookie that scripts cannot read and that no other site's request carries; without the cookie nothing is
served. `Host`, `Origin` and `Sec-Fetch-Site` are checked too, so that a page of another site, or a name that is pointed
at this address, reaches nothing.
"""

from __future__ import annotations

import hmac
import secrets
from dataclasses import dataclass, field
from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_LOCAL: Final = ("127.0.0.1", "localhost", "[::1]")
_HTTP_PORT: Final = 80
_METHODS: Final = ("GET", "HEAD")
_HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'self'; img-src 'self' data:; style-src 'self'; script-src 'self'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}


@dataclass(frozen=True, slots=True)
class Gate:
    """The address of one server, and its secrets: the token of the first address, and the value of the cookie."""

    host: str
    port: int
    token: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    session: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    _once: list[str] = field(default_factory=list, repr=False)

    @property
    def address(self) -> str:
        """The address to open, with the token."""
        return f"http://{_in_url(self.host)}:{self.port}/?token={self.token}"

    def address_for_once(self) -> str:
        """Return the address with a token that is void after its first use: arguments of processes can be seen."""
        self._once.append(secrets.token_urlsafe(32))
        return self.address.replace(self.token, self._once[-1])

    def _takes(self, token: str) -> bool:
        for each in self._once:
            if _equal(token, each):
                self._once.remove(each)
                return True
        return _equal(token, self.token)

    @property
    def cookie(self) -> str:
        """The name of the cookie; browsers send it to all ports of a host."""
        return f"hoodie_ui_{self.port}"

    @property
    def hosts(self) -> frozenset[str]:
        """What `Host` may be."""
        names = (*_LOCAL, _in_url(self.host).lower())
        return frozenset(f"{name}:{self.port}" for name in names) | (
            frozenset(names) if self.port == _HTTP_PORT else frozenset()
        )

    def refusal(self, request: Request) -> Response | None:
        """Return the answer to a request that is refused, whoever sent it; None if it may go on."""
        headers = request.headers
        if request.method not in _METHODS:
            return _refused(405, f"{request.method} is refused: this server only reads", {"Allow": ", ".join(_METHODS)})
        if not _is_one_of(headers, "host", self.hosts):
            return _refused(403, f"the header Host is refused: expected {' or '.join(sorted(self.hosts))}")
        if "origin" in headers and not _is_one_of(headers, "origin", {f"http://{host}" for host in self.hosts}):
            return _refused(403, "the header Origin is refused: a page of another site sent this request")
        if "sec-fetch-site" in headers and not _is_one_of(headers, "sec-fetch-site", {"same-origin", "none"}):
            return _refused(
                403, "Sec-Fetch-Site is refused: another site sent this request. Paste the address into the browser"
            )
        return None

    def admission(self, request: Request) -> Response | None:
        """Return the answer to a request with a token, or without the cookie; None if the cookie is there.

        The right token of the first page is answered with the cookie, and a redirect to the address without a token.
        """
        given = request.query_params.getlist("token")
        if request.scope["path"] == "/" and given:
            if len(given) > 1 or not self._takes(given[0]):
                return _refused(401, "the token is wrong, or was used: open the address that `hoodie ui` printed last")
            answer = RedirectResponse("/", status_code=303)
            answer.set_cookie(self.cookie, self.session, path="/", httponly=True, samesite="strict")
            return answer
        if not _equal(request.cookies.get(self.cookie, ""), self.session):
            return _refused(401, "no token: open the address that `hoodie ui` printed; it contains a token")
        return None


class Guarded:
    """An application behind a gate. All answers have the headers that keep a page to itself."""

    def __init__(self, app: ASGIApp, gate: Gate) -> None:
        self._app, self._gate = app, gate

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(_HEADERS)
            await send(message)

        request = Request(scope)
        answer = self._gate.refusal(request) or self._gate.admission(request) or self._app
        await answer(scope, receive, send_with_headers)


def _refused(status: int, text: str, headers: dict[str, str] | None = None) -> Response:
    return PlainTextResponse(f"hoodie ui: {text}\n", status_code=status, headers=headers)


def _is_one_of(headers: Headers, name: str, expected: set[str] | frozenset[str]) -> bool:
    """Return whether there is exactly one such header, with one of these values."""
    found = headers.getlist(name)
    return len(found) == 1 and found[0].lower() in expected


def _equal(found: str, expected: str) -> bool:
    """Compare in constant time."""
    return hmac.compare_digest(found.encode(), expected.encode())


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host
