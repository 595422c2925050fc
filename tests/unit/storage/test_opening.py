from __future__ import annotations

from pathlib import Path

import pytest

from hoodie.errors import HoodieError, InvalidConfigError
from hoodie.storage import (
    CrashError,
    FaultStore,
    LocalStore,
    MemoryStore,
    ObjectStore,
    StoreSpec,
    open_store,
)


@pytest.mark.parametrize(
    "uri", ["/t/a b%20c", "file:///t/a b%20c", "file:/t/a b%20c", "file://localhost/t/a b%20c", "/t/./x/../a b%20c/"]
)
def test_local_paths(uri: str) -> None:
    store = open_store(uri)
    assert isinstance(store, LocalStore)
    assert store.spec == StoreSpec("/t/a b%20c")
    assert store.uri("f=1") == "file:///t/a b%20c/f=1"
    assert open_store(store.uri("")).spec == store.spec


def test_path_objects(tmp_path: Path) -> None:
    assert open_store(tmp_path).spec.uri == str(tmp_path)


def test_memory_is_shared_by_name() -> None:
    open_store("memory://test_opening/t").create("f", b"1")
    assert open_store("memory://test_opening/t/").read("f") == b"1"
    assert isinstance(open_store("memory://test_opening/t"), MemoryStore)
    assert open_store("memory://test_opening/u").list("") == []


@pytest.mark.parametrize(
    "uri",
    [
        "s3://bucket/a/t",
        "s3a://bucket/a/t",
        "gs://bucket/a/t",
        "az://container/a/t",
        "abfss://c@acc.dfs.core.windows.net/a/t",
    ],
)
def test_object_stores_keep_the_scheme_they_were_opened_with(uri: str) -> None:
    options = {"azure_storage_account_name": "acc"} if uri.startswith("az:") else {}
    store = open_store(uri + "/", options)
    assert isinstance(store, ObjectStore)
    assert store.uri("p/f") == f"{uri}/p/f"
    assert store.spec == StoreSpec(uri, tuple(options.items()))


def test_options_come_on_top_of_the_spec() -> None:
    spec = StoreSpec("s3://b/t", (("aws_region", "eu-west-1"), ("skip_signature", "true")))
    assert open_store(spec, {"aws_region": "us-east-1"}).spec.options == (
        ("aws_region", "us-east-1"),
        ("skip_signature", "true"),
    )


def test_credentials_do_not_show() -> None:
    store = open_store("s3://b/t", {"aws_secret_access_key": "geheim", "aws_access_key_id": "wer"})
    assert "geheim" not in repr(store)


@pytest.mark.parametrize(
    ("uri", "options", "message"),
    [
        ("hdfs://nn/t", None, "hdfs"),
        ("", None, "empty"),
        ("file://host/t", None, "another host"),
        ("/t", {"aws_region": "x"}, "accepts no storage options"),
        ("s3://b/t", {"no_such_option": "x"}, "no_such_option"),
        ("fault+nobody", None, "not registered"),
    ],
)
def test_what_cannot_be_opened(uri: str, options: dict[str, str] | None, message: str) -> None:
    with pytest.raises(InvalidConfigError, match=message):
        open_store(uri, options)


def test_crash_errors_are_not_ours_to_catch() -> None:
    assert not issubclass(CrashError, HoodieError)
    assert FaultStore(MemoryStore()).crashed is False
