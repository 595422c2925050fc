"""Which provider a writer uses, and writers that use different ones."""

from __future__ import annotations

import gc
import os
from dataclasses import replace
from pathlib import Path

import obstore.store
import pytest

from hoodie.errors import CommitConflictError, InvalidConfigError, LockTimeoutError, UnsupportedError
from hoodie.storage import LocalStore, MemoryStore, ObjectStore, Store, StoreSpec, open_store
from hoodie.storage.paths import one_spelling
from hoodie.timeline import LockOptions, TableLock
from hoodie.timeline.locks import file_system, in_process, storage_based, zookeeper
from hoodie.timeline.locks.zookeeper import implicit_path, in_order
from hoodie.timeline.owner import Owner
from tests.unit.timeline.writers import on_another_machine, take_turns

PROVIDER = "hoodie.write.lock.provider"
LOCK = ".hoodie/lock"
JSON = ".hoodie/.locks/table_lock.json"


def lock_of(store: Store, name: str = "", **settings: str) -> TableLock:
    return TableLock(store, LockOptions(wait_ms_max=0, provider=name, settings=settings))


def test_one_at_a_time_in_a_process() -> None:
    store = MemoryStore()
    with lock_of(store, in_process.NAME) as lock:
        assert lock.is_held
        with pytest.raises(LockTimeoutError, match=r"in-process lock of .* is held by another thread"):
            lock_of(MemoryStore(store.spec.uri.removeprefix("memory://")), in_process.NAME).acquire()
        with lock_of(MemoryStore(), in_process.NAME):
            lock.create_last("done", b"1")
    assert not lock.is_held
    assert [info.path for info in store.list("", recursive=True)] == ["done"]


def test_an_in_process_lock_of_a_deleted_holder_and_of_another_process(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore()
    lock_of(store, in_process.NAME).acquire()
    gc.collect()
    with lock_of(store, in_process.NAME) as held:
        pid = os.getpid()
        monkeypatch.setattr(os, "getpid", lambda: pid + 1)  # as in a process that was forked meanwhile
        with lock_of(store, in_process.NAME) as other:
            assert other.is_held
        monkeypatch.undo()
        assert not held.is_held
        with pytest.raises(CommitConflictError):
            held.create_last("done", b"1")


@pytest.mark.parametrize("name", [file_system.NAME, in_process.NAME, storage_based.NAME, "objects"])
def test_threads_take_turns(name: str) -> None:
    store: Store = MemoryStore()
    if name == "objects":
        store, name = ObjectStore(obstore.store.MemoryStore(), StoreSpec("s3://not/there")), storage_based.NAME
    take_turns(lambda: TableLock(store, LockOptions(retry_ms=1, retry_ms_max=2, provider=name)))


@pytest.mark.parametrize("name", ["", file_system.NAME, in_process.NAME])
def test_a_lock_that_another_provider_holds(name: str) -> None:
    store = MemoryStore()
    with lock_of(store, storage_based.NAME):
        if name:
            with pytest.raises(InvalidConfigError, match=rf"{name}, found memory://.*table_lock.json, held by"):
                lock_of(store, name).acquire()
        else:
            with pytest.raises(LockTimeoutError, match=r"table_lock\.json is held by the writer"):
                lock_of(store).acquire()
        assert store.head(LOCK) is None
    with lock_of(store, name) as lock:
        assert lock.is_held


@pytest.mark.parametrize("name", [storage_based.NAME, in_process.NAME])
def test_a_file_system_lock_that_is_held_by_another(name: str) -> None:
    store = MemoryStore()
    with lock_of(store, file_system.NAME):
        with pytest.raises(InvalidConfigError, match=r"found memory://.*lock, held by process"):
            lock_of(store, name).acquire()
        assert store.head(JSON) is None or b'"expired":true' in store.read(JSON)
    store.create(LOCK, Owner.new().to_bytes())  # of a dead writer of this process
    with lock_of(store, name) as lock:
        assert lock.is_held
    store.replace(LOCK, replace(on_another_machine(), lease_ms=30_000).to_bytes())
    with pytest.raises(InvalidConfigError, match="on elsewhere"):
        lock_of(store, name).acquire()
    store.set_modified_ms(LOCK, 1_000_000)
    with lock_of(store, name) as lock:
        assert lock.is_held


def test_without_a_provider_the_lock_is_the_one_that_writers_used_before() -> None:
    store = MemoryStore()
    with lock_of(store):
        assert store.head(LOCK) is not None
        assert store.head(JSON) is None
    with lock_of(store, storage_based.NAME):
        pass
    for _ in range(2):
        with lock_of(store) as lock:
            assert store.head(LOCK) is None
            assert b'"expired":false' in store.read(JSON)
            lock.create_last("done", b"1")
            with pytest.raises(LockTimeoutError):
                lock_of(store).acquire()
        assert b'"expired":true' in store.read(JSON)


def test_a_table_that_was_copied_to_a_local_disk(tmp_path: Path) -> None:
    """The file of the storage-based lock came along; there nobody can use it, the JVM neither."""
    store = LocalStore(tmp_path)
    store.create(JSON, b'{"expired":false,"validUntil":99999999999999,"owner":"x"}')
    with lock_of(store) as lock:
        assert store.head(LOCK) is not None
        lock.create_last("done", b"1")


def test_providers_that_this_library_does_not_have() -> None:
    for name in ("org.apache.hudi.aws.transaction.lock.DynamoDBBasedLockProvider", "zookeeper"):
        with pytest.raises(UnsupportedError, match=f"{name}'.*expected one of"):
            lock_of(MemoryStore(), name)
    key = "hoodie.write.lock.filesystem.path"
    with pytest.raises(UnsupportedError, match=key):
        lock_of(MemoryStore(), **{key: "hdfs:///locks"})
    store = MemoryStore()
    lock_of(store, **{key: store.uri(".hoodie") + "/"})


def test_the_options_of_a_call_win_over_those_of_the_table() -> None:
    found = LockOptions.of({PROVIDER: in_process.NAME}, {PROVIDER: file_system.NAME, "hoodie.table.name": "t"})
    assert found.provider == in_process.NAME
    assert found.settings["hoodie.table.name"] == "t"
    wait, expire = "hoodie.write.lock.wait_time_ms", "hoodie.write.lock.filesystem.expire"
    found = LockOptions.of({wait: "5"}, {wait: "6", expire: "2"})
    assert (found.wait_ms_max, found.expire_ms, found.retry_ms) == (5, 120_000, 100)
    found = LockOptions.of(
        {
            "hoodie.write.lock.max_wait_time_ms_between_retry": "16000",
            "hoodie.write.lock.num_retries": "15",
            "hoodie.write.lock.client.num_retries": "50",
            "hoodie.write.lock.client.wait_time_ms_between_retry": "7",
        }
    )
    assert (found.retry_ms_max, found.attempts_max, found.rounds, found.pause_ms) == (16_000, 15, 51, 7)


@pytest.mark.parametrize(
    ("path", "node"),
    [
        ("/tmp/x", "11A474BD7A470A85"),
        ("file:///tmp/x", "542210FECE91C2D5"),
        ("s3://b/t", "45205BCC2F82AB53"),
        ("s3a://b/t", "45205BCC2F82AB53"),
        ("", "0D6FDE68D55B45DA"),
        ("a" * 40, "2CCB4F4CC3BC01C3"),
        ("città", "FDBEB915F46EBE94"),
    ],
)
def test_the_implicit_node_is_that_of_the_jvm(path: str, node: str) -> None:
    """The expected values are answers of `ZookeeperBasedImplicitBasePathLockProvider.getLockBasePath`, 1.2.0."""
    assert implicit_path(path) == f"/tmp/{node}/lock_key"


def test_contenders_are_in_the_order_of_curator() -> None:
    nodes = ["_c_b3-lock-0000000002", "_c_ff-lock-0000000000", "lock-0000000001"]
    assert in_order(nodes) == [nodes[1], nodes[2], nodes[0]]


def test_options_that_zookeeper_needs() -> None:
    url = "hoodie.write.lock.zookeeper.url"
    with pytest.raises(InvalidConfigError, match=url):
        lock_of(MemoryStore(), zookeeper.NAME)
    with pytest.raises(InvalidConfigError, match=r"base_path and hoodie\.write\.lock\.zookeeper\.lock_key"):
        lock_of(MemoryStore(), zookeeper.NAME, **{url: "h:1", "hoodie.table.name": "t"})
    base = "hoodie.write.lock.zookeeper.base_path"
    found = lock_of(MemoryStore(), zookeeper.NAME, **{url: "h:1", base: "/locks/", "hoodie.table.name": "t"})
    assert found._provider.place == "zookeeper://h:1/locks/t"
    wanted = lock_of(MemoryStore(), zookeeper.IMPLICIT_NAME, **{url: "h:1", "hoodie.base.path": "/tmp/x"})
    assert wanted._provider.place == "zookeeper://h:1/tmp/11A474BD7A470A85/lock_key"
    port = "hoodie.write.lock.zookeeper.port"  # a JVM does not read it
    for hosts, same, other in (("h:1,i:1/root", "1", "2181"), ("h,i", "2181", "1"), ("h:1,i", "", "1")):
        given = {url: hosts, base: "/locks", "hoodie.table.name": "t"}
        assert not same or lock_of(MemoryStore(), zookeeper.NAME, **given, **{port: same})
        with pytest.raises(InvalidConfigError, match="behind each host"):
            lock_of(MemoryStore(), zookeeper.NAME, **given, **{port: other})


def test_spellings_of_one_table_have_one_in_process_lock(tmp_path: Path) -> None:
    folder = tmp_path / "t"
    folder.mkdir()
    (tmp_path / "link").symlink_to(folder)
    with lock_of(open_store(str(folder)), in_process.NAME):
        for other in (f"{folder}/", f"file://{folder}", str(tmp_path / "link"), f"{tmp_path}/./t"):
            with pytest.raises(LockTimeoutError):
                lock_of(open_store(other), in_process.NAME).acquire()
        with lock_of(open_store(str(tmp_path / "other")), in_process.NAME):
            pass
    assert one_spelling("s3a://bucket/t/") == one_spelling("s3://bucket/t") != one_spelling("gs://bucket/t")
