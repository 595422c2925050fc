"""A real ZooKeeper server, from the jars that Spark brings (the Maven artifact org.apache.zookeeper:zookeeper)."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

_SECONDS_TO_START = 60.0
_JARS = ("zookeeper-*.jar", "slf4j-api-*.jar", "log4j-*.jar", "metrics-core-*.jar", "netty-*.jar", "snappy-java-*.jar")


@contextlib.contextmanager
def running_zookeeper(folder: Path) -> Iterator[str]:
    """Run a server with its data in `folder`; return `host:port`. Sessions may be as short as 0.4 s."""
    import pyspark

    folder.mkdir(exist_ok=True)
    jars = Path(pyspark.__file__).parent / "jars"
    classpath = ":".join(str(jar) for pattern in _JARS for jar in sorted(jars.glob(pattern)))
    port = free_port()
    config = {
        "tickTime": 200,
        "maxSessionTimeout": 60_000,
        "dataDir": folder / "data",
        "clientPort": port,
        "clientPortAddress": "127.0.0.1",
        "admin.enableServer": "false",
    }
    (folder / "zoo.cfg").write_text("".join(f"{key}={value}\n" for key, value in config.items()))
    main = "org.apache.zookeeper.server.ZooKeeperServerMain"
    with (folder / "log").open("w") as log:
        server = subprocess.Popen(
            ["java", "-Xmx128m", "-cp", classpath, main, str(folder / "zoo.cfg")], stdout=log, stderr=log
        )
    try:
        _wait_for(port, server, folder / "log")
        yield f"127.0.0.1:{port}"
    finally:
        server.kill()
        server.wait()


def free_port() -> int:
    """Return a port that nobody listens to."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def _wait_for(port: int, server: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + _SECONDS_TO_START
    while True:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        if server.poll() is not None or time.monotonic() > deadline:
            raise AssertionError(f"ZooKeeper did not start:\n{log.read_text()[-2000:]}")
        time.sleep(0.1)
