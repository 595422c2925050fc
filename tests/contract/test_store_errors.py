"""Errors of an object store are one sentence of ours that says what to do, whatever the service answers."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

import obstore.store
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from obstore.exceptions import BaseError

import hoodie
from hoodie.errors import HoodieError, StorageError
from hoodie.files.base_file import read_base_file
from hoodie.files.slices import BaseFile
from hoodie.storage import ObjectStore, Store, StoreSpec, open_store
from tests.support.tables import create_in

ANSWERS = {
    "no bucket": (404, "NoSuchBucket", "the bucket does not exist; check its name"),
    "no right": (403, "AccessDenied", "access is denied; give the credentials the right"),
    "wrong key": (403, "SignatureDoesNotMatch", "the service refused the credentials"),
    "wrong region": (400, "AuthorizationHeaderMalformed", "in another region; set the storage option aws_region"),
}


@contextmanager
def service(status: int, code: str) -> Iterator[str]:
    """A service that gives one answer to all requests."""
    body = f"<Error><Code>{code}</Code><Message>No.</Message></Error>".encode()

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = answer

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def options(endpoint: str) -> dict[str, str]:
    return {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ALLOW_HTTP": "true",
        "AWS_ACCESS_KEY_ID": "wer",
        "AWS_SECRET_ACCESS_KEY": "geheim",
        "AWS_REGION": "us-east-1",
    }


CALLS: list[Callable[[Store], object]] = [
    lambda store: store.read("f"),
    lambda store: store.create("f", b"1"),
    lambda store: store.replace("f", b"1"),
    lambda store: store.list("p", recursive=True),
    lambda store: store.folders(""),
    create_in,
]


@pytest.mark.parametrize("name", ANSWERS)
def test_what_a_service_refuses_is_one_sentence(name: str) -> None:
    status, code, message = ANSWERS[name]
    with service(status, code) as endpoint:
        store = open_store("s3://tables/t", options(endpoint))
        for call in CALLS:
            with pytest.raises(StorageError, match=message) as caught:
                call(store)
            text = str(caught.value)
            assert text.startswith("s3://tables/t")
            assert len(text.splitlines()) == 1
            assert "geheim" not in text
        with pytest.raises(HoodieError, match=message):
            hoodie.open("s3://tables/t", storage_options=options(endpoint))


def test_plain_http_has_to_be_allowed() -> None:
    store = open_store("s3://tables/t", {**options("http://127.0.0.1:9"), "AWS_ALLOW_HTTP": "false"})
    with pytest.raises(StorageError, match="set the storage option allow_http=true"):
        store.read("f")


def test_options_of_delta_rs_open_a_table(s3_options: dict[str, str], s3_bucket: str) -> None:
    given = {**options(s3_options["aws_endpoint"]), "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}
    rows = pa.table({"id": ["a", "b"]})
    table = hoodie.create(f"s3://{s3_bucket}/delta-style", rows.schema, record_key="id", storage_options=given)
    table.upsert(rows)
    lower = {key.lower(): value for key, value in given.items()}
    assert hoodie.open(f"s3://{s3_bucket}/delta-style", storage_options=lower).count() == 2
    assert hoodie.exists(f"s3://{s3_bucket}/delta-style", storage_options=given)


def test_percent_signs_of_a_uri_are_kept(s3_options: dict[str, str], s3_bucket: str) -> None:
    encoded = open_store(f"s3://{s3_bucket}/a%20b", s3_options)
    encoded.create("f", b"encoded")
    plain = open_store(f"s3://{s3_bucket}/a b", s3_options)
    plain.create("f", b"plain")
    assert encoded.read("f") == b"encoded"
    assert plain.uri("f") == f"s3://{s3_bucket}/a b/f"


class PanicException(BaseException):
    """As pyo3 names the failures of native code."""


class Panicking:
    """A backend whose native code fails at every call."""

    def __getattr__(self, name: str) -> Any:
        raise PanicException("called `Option::unwrap()` on a `None` value")


def test_failures_of_native_code_are_ours_to_handle() -> None:
    backend: Any = Panicking()
    store = ObjectStore(backend, StoreSpec("s3://tables/t"))
    calls: list[Callable[[Store], object]] = [lambda store: store.head("f"), lambda store: store.delete("f")]
    for call in (*CALLS[:-1], *calls):
        with pytest.raises(StorageError, match=r"obstore failed .*report this"):
            call(store)


@pytest.mark.parametrize(("refused_read", "rows_count"), [(1, 200_000), (2, 200_000), (1, 1000)])
def test_a_refused_read_is_no_damage(refused_read: int, rows_count: int) -> None:
    """Arrow reads a base file through a file of ours: the footer first, then the pages; a small one as a whole."""

    class Refusing(ObjectStore):
        reads: ClassVar[list[str]] = []

        def read(self, path: str) -> bytes:
            self._refuse(path)
            return super().read(path)

        def read_range(self, path: str, start: int, length: int) -> bytes:
            self._refuse(path)
            return super().read_range(path, start, length)

        def _refuse(self, path: str) -> None:
            self.reads.append(path)
            if len(self.reads) >= refused_read:
                raise StorageError(f"{self.uri(path)}: access is denied")

    store = Refusing(obstore.store.MemoryStore(), StoreSpec("s3://not/there"))
    rows = pa.table({"id": pa.array([f"{number:09}" for number in range(rows_count)])})
    with store.open_output("f.parquet") as sink:
        pq.write_table(rows, sink, use_dictionary=False, compression="none")
        size_bytes = sink.tell()
    with pytest.raises(StorageError, match="access is denied") as caught:
        list(read_base_file(store, BaseFile("", "f.parquet", "f", "1", size_bytes), rows.schema))
    assert type(caught.value) is StorageError


def test_a_move_whose_source_cannot_be_deleted_is_done() -> None:
    """The copy is the step; the next holder of the lock deletes what is left."""

    class Undeletable(obstore.store.MemoryStore):
        def delete(self, *args: Any, **kwargs: Any) -> Any:
            raise BaseError("503 slow down")

    store = ObjectStore(Undeletable(), StoreSpec("s3://tables/t"))
    store.replace("prepared", b"1")
    store.move("prepared", "done")
    assert store.read("done") == b"1"
    assert store.read("prepared") == b"1"


def test_interrupts_stay_what_they_are() -> None:
    class Interrupted(obstore.store.MemoryStore):
        def get(self, *args: Any, **kwargs: Any) -> Any:
            raise KeyboardInterrupt

    store = ObjectStore(Interrupted(), StoreSpec("s3://tables/t"))
    with pytest.raises(KeyboardInterrupt):
        store.read("f")


def test_options_for_which_obstore_panics_do_not_reach_it() -> None:
    """`timeout` among the options of the service ends obstore 0.12 in a panic."""
    for name in ("timeout", "AWS_TIMEOUT", "aws_pool_idle_timeout", "http2_keep_alive_timeout"):
        assert open_store("s3://tables/t", {name: "30s"}).spec.options[0][1] == "30s"


def test_a_fork_is_refused_where_it_would_wait_for_ever(s3_options: dict[str, str], s3_bucket: str) -> None:
    """A fork has none of the client's threads. A fork before the first use, and a local table, are fine."""
    code = """
import multiprocessing, sys, hoodie

uri, options, local = sys.argv[1], eval(sys.argv[2]), sys.argv[3]
rows = {"id": ["a"], "n": [1]}

def counted(path, **options):
    try:
        print(hoodie.open(path, spark=False, **options).count(), flush=True)
    except hoodie.StorageError as error:
        print(type(error).__name__, "forked" in str(error), "spawn" in str(error), flush=True)

def forked(*arguments, **options):
    child = multiprocessing.get_context("fork").Process(target=counted, args=arguments, kwargs=options)
    child.start()
    child.join(60)
    assert child.exitcode == 0, child.exitcode

hoodie.create(local, rows, record_key="id", spark=False).upsert(rows)
forked(local)
forked(uri, storage_options=options)
counted(uri, storage_options=options)
forked(uri, storage_options=options)
forked(local)
"""
    uri = f"s3://{s3_bucket}/forked"
    hoodie.create(uri, {"id": ["a"]}, record_key="id", spark=False, storage_options=s3_options).upsert({"id": ["a"]})
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-c", code, uri, repr(s3_options), f"{folder}/t"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    assert done.stdout.splitlines() == ["1", "1", "1", "StorageError True True", "1"], done.stderr
