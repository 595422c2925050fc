"""A real PostgreSQL with a cluster of its own: Debian's package `postgresql`, started as a user that is not root."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.zookeeper_server import free_port

PASSWORD = "ge/heim&1"
"""The password of the user `hoodie`, which has characters that URLs escape."""
_USER_OF_ROOT = "postgres"
_SECONDS_TO_START = 60.0
# The server ends at the end of the input, whatever happens to this process.
_SERVE = '"$0" -D "$1" & server=$!; cat > /dev/null; kill -INT $server; wait $server'


@dataclass
class Postgres:
    """A server on loopback; `start` and `stop` may be called in turn, and the data stays."""

    programs: Path
    folder: Path
    port: int
    _server: subprocess.Popen[bytes] | None = None

    @property
    def uri(self) -> str:
        """The URI of the database for libpq, with the password."""
        return f"postgresql://hoodie:ge%2Fheim%261@127.0.0.1:{self.port}/postgres"

    @property
    def jdbc_url(self) -> str:
        """The URL of the database for JDBC, without user and password."""
        return f"jdbc:postgresql://127.0.0.1:{self.port}/postgres"

    def execute(self, sql: str, rows: Sequence[Sequence[Any]] = ()) -> None:
        """Run statements, or one statement for each row, and commit."""
        import psycopg

        with psycopg.connect(self.uri) as connection, connection.cursor() as cursor:
            if rows:
                cursor.executemany(sql, rows)
            else:
                cursor.execute(sql)

    def start(self) -> None:
        """Start the server and wait until it answers."""
        import psycopg

        assert self._server is None, "the server runs already"
        command = _as_user(["sh", "-c", _SERVE, str(self.programs / "postgres"), str(self.folder / "data")])
        with (self.folder / "log").open("a") as log:
            self._server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=log, stderr=log, cwd="/")
        deadline = time.monotonic() + _SECONDS_TO_START
        while True:
            with contextlib.suppress(psycopg.OperationalError), psycopg.connect(self.uri, connect_timeout=2):
                return
            if time.monotonic() > deadline:
                raise AssertionError(f"PostgreSQL did not start:\n{(self.folder / 'log').read_text()[-2000:]}")
            time.sleep(0.05)

    def stop(self) -> None:
        """Stop the server: open connections and their transactions end."""
        if self._server is not None:
            self._server.communicate()
            self._server = None


@contextlib.contextmanager
def running_postgres() -> Iterator[Postgres]:
    """Run a server with an empty database. Raises: AssertionError if PostgreSQL is not installed."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    program = Path(os.environ.get("HOODIE_POSTGRES", found[-1].parent if found else "")) / "initdb"
    assert program.is_file(), (
        f"{program} is missing: apt-get install postgresql, or set HOODIE_POSTGRES to its programs"
    )
    folder = Path(tempfile.mkdtemp(prefix="hoodie-postgres-"))
    server = Postgres(program.parent, folder, free_port())
    try:
        (folder / "password").write_text(PASSWORD)
        if os.getuid() == 0:
            shutil.chown(folder, _USER_OF_ROOT)
            shutil.chown(folder / "password", _USER_OF_ROOT)
        options = ["-A", "scram-sha-256", "-U", "hoodie", f"--pwfile={folder}/password", "-E", "UTF8", "--no-sync"]
        command = [str(program), "-D", str(folder / "data"), "--locale=C.UTF-8", *options]
        subprocess.run(_as_user(command), check=True, stdout=subprocess.DEVNULL, cwd="/")
        settings = {"port": server.port, "listen_addresses": "'127.0.0.1'", "unix_socket_directories": "''"}
        # A time zone unlike UTC: reads must not depend on it.
        settings |= {"fsync": "off", "timezone": "'Asia/Kolkata'", "datestyle": "'German'"}
        with (folder / "data" / "postgresql.conf").open("a") as conf:
            conf.writelines(f"{key} = {value}\n" for key, value in settings.items())
        server.start()
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder)


def _as_user(command: list[str]) -> list[str]:
    return ["runuser", "-u", _USER_OF_ROOT, "--", *command] if os.getuid() == 0 else command
