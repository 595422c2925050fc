"""A real HBase with its Thrift 2 server, in one JVM: the jars that `make hbase` fetches (scripts/fetch_jars.py)."""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from tests.support.zookeeper_server import free_port

_SECONDS_TO_START = 120.0
_LAUNCHER = Path(__file__).parents[1] / "hbase" / "StandaloneHBase.java"
_OPENED = ("java.nio", "sun.nio.ch", "java.lang", "jdk.internal.ref", "java.lang.reflect", "java.util")
_JVM = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.net.preferIPv4Stack=true")


@contextlib.contextmanager
def running_hbase(folder: Path, *, heap: str = "384m") -> Iterator[int]:
    """Run a server with its data in `folder`; return the port of Thrift. The server ends with this process at last.

    Raises: AssertionError if the jars are missing, or the server does not start.
    """
    jars = Path(os.environ.get("HOODIE_HBASE_JARS", ""))
    assert list(jars.glob("hbase-thrift-*.jar")), f"HOODIE_HBASE_JARS is '{jars}', not the jars of HBase: `make hbase`"
    folder.mkdir(exist_ok=True)
    port = free_port()
    (folder / "hbase-site.xml").write_text(_site(folder))
    options = [f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in (*_OPENED, "java.util.concurrent")]
    options += ["--add-exports=java.base/jdk.internal.misc=ALL-UNNAMED", f"-Dhadoop.home.dir={folder}"]
    classpath = f"{folder}:{jars.resolve()}/*"
    launched = [str(_LAUNCHER), str(port), str(folder / "zookeeper")]
    command = ["java", f"-Xmx{heap}", *_JVM, *options, "-cp", classpath, *launched]
    with (folder / "log").open("w") as log:
        # It ends at the end of its input, whatever happens to this process.
        server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=log, stderr=log, cwd=folder)
    try:
        _wait_for(server, folder / "log")
        yield port
    finally:
        server.kill()
        server.communicate()


def _site(folder: Path) -> str:
    properties = {
        "hbase.rootdir": f"file://{folder}/data",
        "hbase.tmp.dir": f"{folder}/tmp",
        "hbase.unsafe.stream.capability.enforce": "false",
        "hbase.wal.provider": "filesystem",
        "hbase.zookeeper.quorum": "127.0.0.1",
        "hbase.zookeeper.property.clientPort": free_port(),
        "hbase.master.port": 0,
        "hbase.regionserver.port": 0,
        "hbase.master.info.port": -1,
        "hbase.regionserver.info.port": -1,
        "hbase.master.hostname": "127.0.0.1",
        "hbase.regionserver.hostname": "127.0.0.1",
        "hbase.regionserver.handler.count": 8,
        # Each table of a test would take 2 MB of the heap at its first row.
        "hbase.hregion.memstore.mslab.enabled": "false",
    }
    found = "".join(
        f"<property><name>{key}</name><value>{value}</value></property>" for key, value in properties.items()
    )
    return f"<configuration>{found}</configuration>"


def _wait_for(server: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + _SECONDS_TO_START
    while "READY\n" not in log.read_text():
        if server.poll() is not None or time.monotonic() > deadline:
            raise AssertionError(f"HBase did not start:\n{log.read_text()[-3000:]}")
        time.sleep(0.1)
