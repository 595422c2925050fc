"""A small TCP proxy that drops connections or stops to answer, for tests of clients."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass
class Proxy:
    """Forwards connections to `port_of_server`. The tests set what it does from then on."""

    port_of_server: int
    listener: socket.socket
    bytes_left: int | None = None
    """Bytes from the client after which every connection is cut, once; None for no limit."""
    cuts: int = 0
    """How often a connection was cut."""
    is_silent: bool = False
    """Whether answers are held back."""
    cuts_always: bool = False
    """Whether every later connection is cut too."""
    tls: ssl.SSLContext | None = None
    """The server's side of TLS with the clients; None for plain sockets."""
    sockets: list[socket.socket] = field(default_factory=list)

    @property
    def port(self) -> int:
        """The port on which it listens."""
        return int(self.listener.getsockname()[1])

    def serve(self) -> None:
        """Accept connections until the listener is closed."""
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                if self.cuts_always and self.cuts:
                    client.close()
                    continue
                if self.tls is not None:
                    try:
                        client = self.tls.wrap_socket(client, server_side=True)
                    except OSError:
                        continue
                server = socket.create_connection(("127.0.0.1", self.port_of_server))
                self.sockets += [client, server]
                threading.Thread(target=self._forward, args=(client, server), daemon=True).start()
                threading.Thread(target=self._answer, args=(server, client), daemon=True).start()

    def _forward(self, client: socket.socket, server: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := client.recv(4096):
                if self.bytes_left is not None:
                    self.bytes_left -= len(data)
                    if self.bytes_left < 0:
                        self.bytes_left, self.cuts = None, self.cuts + 1
                        break
                server.sendall(data)
        _close(client, server)

    def _answer(self, server: socket.socket, client: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := server.recv(65536):
                if not self.is_silent:
                    client.sendall(data)
        _close(client, server)


def _close(*sockets: socket.socket) -> None:
    for found in sockets:
        with contextlib.suppress(OSError):
            found.shutdown(socket.SHUT_RDWR)
        found.close()


@contextlib.contextmanager
def proxy_to(port: int) -> Iterator[Proxy]:
    """Run a proxy to a port of this machine."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        proxy = Proxy(port, listener)
        thread = threading.Thread(target=proxy.serve, daemon=True)
        thread.start()
        try:
            yield proxy
        finally:
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            listener.close()
            _close(*proxy.sockets)
            thread.join(5)
