"""Our locks and those of the JVM exclude each other: file system, storage-based in S3 (moto's server), ZooKeeper.

`LockJudge.java` holds locks with the lock providers of the bundle, without Spark. The bundle has no client for S3, so
`S3StorageLockClient.java` sends the requests of the storage-based provider.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from kazoo.client import KazooClient
from moto.server import ThreadedMotoServer

from hoodie.errors import CommitConflictError, LockTimeoutError
from hoodie.storage import LocalStore, MemoryStore, Store, open_store
from hoodie.timeline import LockOptions, TableLock
from hoodie.timeline.locks import file_system, storage_based, zookeeper
from hoodie.timeline.locks.zookeeper import ZooKeeperLock
from tests.interop.judges import Jvm, create_trips
from tests.support.zookeeper_server import running_zookeeper

HERE = Path(__file__).parent
URL = "hoodie.write.lock.zookeeper.url"
JSON = ".hoodie/.locks/table_lock.json"


class Judge:
    """A process that holds a lock with a provider of the JVM."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        assert self._answer() == "ready"

    def ask(self, command: str) -> str:
        """Send a command and return the answer."""
        assert self.process.stdin is not None
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        return self._answer()

    def _answer(self) -> str:
        assert self.process.stdout is not None
        return next(line for line in self.process.stdout if line.startswith("= "))[2:].strip()


Start = Callable[..., Judge]


@pytest.fixture(scope="module")
def s3() -> Iterator[str]:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    endpoint = f"http://{host}:{port}"
    urllib.request.urlopen(urllib.request.Request(f"{endpoint}/tables", method="PUT")).close()
    yield endpoint
    server.stop()


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running_zookeeper(tmp_path_factory.mktemp("zookeeper")) as address:
        yield address


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory, s3: str) -> Iterator[Start]:
    import pyspark

    classes = tmp_path_factory.mktemp("classes")
    jars = Path(pyspark.__file__).parent / "jars" / "*"
    classpath = os.pathsep.join([os.environ["HOODIE_JVM_BUNDLE"], str(jars), str(classes)])
    sources = [str(HERE / name) for name in ("LockJudge.java", "S3StorageLockClient.java")]
    subprocess.run(["javac", "-cp", classpath, "-d", str(classes), *sources], check=True)
    judges: list[Judge] = []

    def started(provider: str, **options: str) -> Judge:
        settings = [f"{key}={value}" for key, value in options.items()]
        command = ["java", "-Xmx256m", f"-Ds3.endpoint={s3}", "-cp", classpath, "LockJudge", provider, *settings]
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        judges.append(Judge(process))
        return judges[-1]

    yield started
    for judge in judges:
        with judge.process:
            judge.process.kill()


def ours(store: Store, provider: str, settings: dict[str, str] | None = None, *, wait_ms: int = 0) -> TableLock:
    return TableLock(store, LockOptions(wait_ms_max=wait_ms, provider=provider, settings=settings or {}))


def check_both_ways(judge: Judge, lock: Callable[[], TableLock]) -> None:
    """While one holds the lock the other does not get it; then it does."""
    with lock() as held:
        assert judge.ask("try 300") != "true"
        assert held.is_held
    assert judge.ask("try 5000") == "true"
    with pytest.raises(LockTimeoutError):
        lock().acquire()
    assert judge.ask("unlock") == "ok"
    with lock() as again:
        assert again.is_held
        assert judge.ask("try 300") != "true"
    assert judge.ask("try 5000") == "true"
    assert judge.ask("unlock") == "ok"


def test_the_file_system_lock(tmp_path: Path, start: Start) -> None:
    judge = start(file_system.NAME, **{"hoodie.base.path": str(tmp_path)})
    (tmp_path / ".hoodie").mkdir()
    check_both_ways(judge, lambda: ours(LocalStore(tmp_path), file_system.NAME))


def s3_store(s3: str) -> Store:
    options = {
        "aws_endpoint": s3,
        "allow_http": "true",
        "aws_access_key_id": "test",
        "aws_secret_access_key": "test",
        "aws_region": "us-east-1",
    }
    return open_store(f"s3://tables/{time.time_ns()}/t", options)


def test_the_storage_based_lock(start: Start, s3: str) -> None:
    store = s3_store(s3)
    judge = start(storage_based.NAME, **{"hoodie.base.path": store.uri("")})
    assert judge.ask("try 1000") == "true"  # the JVM creates the file
    theirs = store.read(JSON)
    assert storage_based.LockFile.parse(theirs) is not None
    found = storage_based.LockFile.parse(theirs)
    assert found is not None
    assert found.to_bytes() == theirs  # byte by byte what we write
    with pytest.raises(LockTimeoutError, match=f"held by the writer {found.owner}"):
        ours(store, storage_based.NAME).acquire()
    assert judge.ask("unlock") == "ok"
    assert json.loads(store.read(JSON)) == {**json.loads(theirs), "expired": True}
    check_both_ways(judge, lambda: ours(store, storage_based.NAME))


def test_a_storage_based_lock_of_the_jvm_that_was_killed(start: Start, s3: str) -> None:
    """It ends by itself. And a JVM takes over ours; then we cannot complete."""
    store, validity = s3_store(s3), "hoodie.write.lock.storage.validity.timeout.secs"
    settings = {validity: "10", "hoodie.write.lock.storage.renew.interval.secs": "1"}
    judge = start(storage_based.NAME, **{"hoodie.base.path": store.uri(""), **settings})
    assert judge.ask("try 1000") == "true"
    first = store.read(JSON)
    deadline = time.monotonic() + 10
    while store.read(JSON) == first:  # the JVM renews it
        assert time.monotonic() < deadline
        time.sleep(0.2)
    judge.process.kill()
    killed = time.monotonic()
    with ours(store, storage_based.NAME, wait_ms=30_000) as held:
        assert 8 < time.monotonic() - killed < 15
        # As if this process had been stopped: the validity is over, and no renewal came.
        text = store.read(JSON)
        store.replace(JSON, text.replace(str(json.loads(text)["validUntil"]).encode(), b"1"))
        other = start(storage_based.NAME, **{"hoodie.base.path": store.uri(""), **settings})
        assert other.ask("try 3000") == "true"
        with pytest.raises(CommitConflictError, match="does not name this writer any more"):
            held.create_last("done", b"1")
    assert other.ask("unlock") == "ok"
    assert store.head("done") is None


def test_the_lock_in_zookeeper(start: Start, servers: str, tmp_path: Path) -> None:
    settings = {
        URL: servers,
        "hoodie.write.lock.zookeeper.base_path": "/hudi/locks",
        "hoodie.write.lock.zookeeper.lock_key": "trips",
        "hoodie.write.lock.zookeeper.session_timeout_ms": "2000",
    }
    store = MemoryStore()
    judge = start(zookeeper.NAME, **settings)
    check_both_ways(judge, lambda: ours(store, zookeeper.NAME, settings, wait_ms=200))
    assert judge.ask("try 2000") == "true"
    with pytest.raises(LockTimeoutError, match=r"zookeeper://.*/hudi/locks/trips is held by the writer with app.*_c_"):
        ours(store, zookeeper.NAME, settings).acquire()
    judge.process.kill()  # its session ends after two seconds
    with ours(store, zookeeper.NAME, settings, wait_ms=20_000) as held:
        assert held.is_held
    implicit = {URL: servers, "hoodie.base.path": str(tmp_path / "t")}
    judge = start(zookeeper.IMPLICIT_NAME, **implicit, **{"hoodie.table.name": "t"})
    check_both_ways(
        judge, lambda: ours(LocalStore(tmp_path / "t"), zookeeper.IMPLICIT_NAME, {URL: servers}, wait_ms=200)
    )


def test_contenders_of_both_kinds_take_turns_in_zookeeper(start: Start, servers: str) -> None:
    """The queue is fair: who came later gets the lock later, whatever implementation he uses."""
    settings = {
        URL: servers,
        "hoodie.write.lock.zookeeper.base_path": "/q",
        "hoodie.write.lock.zookeeper.lock_key": "t",
    }
    judge, store = start(zookeeper.NAME, **settings), MemoryStore()
    with ours(store, zookeeper.NAME, settings):
        assert judge.process.stdin is not None
        judge.process.stdin.write("try 20000\n")
        judge.process.stdin.flush()
        client = KazooClient(servers)
        client.start()
        deadline = time.monotonic() + 10
        while len(client.get_children("/q/t")) < 2:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        client.stop()
        client.close()
        with pytest.raises(LockTimeoutError):
            ours(store, zookeeper.NAME, settings, wait_ms=300).acquire()
    assert judge._answer() == "true"
    assert judge.ask("unlock") == "ok"


def test_a_session_that_ended_behind_its_holder(servers: str) -> None:
    """As after SIGSTOP for longer than the session timeout: the next holder commits, this one cannot."""
    settings = {
        URL: servers,
        "hoodie.write.lock.zookeeper.base_path": "/f",
        "hoodie.write.lock.zookeeper.lock_key": "t",
    }
    store = MemoryStore()
    last, following = (ours(store, zookeeper.NAME, settings, wait_ms=5_000) for _ in range(2))
    last.acquire()
    provider = last._provider
    assert isinstance(provider, ZooKeeperLock)
    assert provider._client is not None
    ghost = KazooClient(servers, client_id=provider._client.client_id)
    ghost.start()
    ghost.stop()  # ends the session of both
    ghost.close()
    with following:
        with pytest.raises(CommitConflictError, match="does not name this writer any more"):
            last.create_last("done", b"1")
        assert store.head("done") is None
        last.release()
        assert following.is_held


ROWS = pa.table({"id": ["a"], "ts": [1], "city": ["sf"]})


def test_the_jvm_reads_the_provider_from_the_tables_properties(jvm: Jvm, tmp_path: Path, servers: str) -> None:
    """A writer of the JVM that names no provider uses the one that we stored."""
    path = tmp_path / "trips"
    stored = {
        "hoodie.write.lock.provider": zookeeper.NAME,
        URL: servers,
        "hoodie.write.lock.zookeeper.base_path": "/stored",
        "hoodie.write.lock.zookeeper.lock_key": "trips",
    }
    table = create_trips(path, ROWS.schema, properties=stored)
    table.upsert(ROWS)
    quick = {"hoodie.write.lock.client.num_retries": "0", "hoodie.write.lock.wait_time_ms": "500"}

    def write(options: dict[str, str]) -> None:
        jvm.write_trips(ROWS, path, options=options)

    with table.view().state.table_lock(), pytest.raises(Exception, match=r"FAILED_TO_ACQUIRE|acquire lock|HoodieLock"):
        write(quick)
    write(quick)
    assert table.to_arrow().num_rows == 1
    assert table.inspect.locks().to_pylist()[0]["place"] == f"zookeeper://{servers}/stored/trips"
    table.upsert(ROWS)
    assert jvm.read(path).num_rows == 1
