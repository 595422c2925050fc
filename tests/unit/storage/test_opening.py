from __future__ import annotations

import traceback
from pathlib import Path

import pyarrow as pa
import pytest

import hoodie
from hoodie.errors import HoodieError, InvalidConfigError
from hoodie.format.table.merge_config import MergeMode
from hoodie.records.merging.merge import RecordMerger
from hoodie.storage import LocalStore, MemoryStore, ObjectStore, StoreSpec, open_store
from hoodie.write.files.context import WriteContext
from tests.support.fault_store import CrashError, FaultStore


@pytest.mark.parametrize(
    "uri", ["/t/a b%20c", "file:///t/a b%20c", "file:/t/a b%20c", "file://localhost/t/a b%20c", "/t/./x/../a b%20c/"]
)
def test_local_paths(uri: str) -> None:
    store = open_store(uri)
    assert isinstance(store, LocalStore)
    assert store.spec == StoreSpec("/t/a b%20c")
    assert store.uri("f=1") == "file:///t/a b%20c/f=1"
    assert open_store(store.uri("")).spec == store.spec


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


@pytest.mark.parametrize(
    ("uri", "options", "kept"),
    [
        ("s3://b/t", {"AWS_REGION": "x", "AWS_ALLOW_HTTP": "true"}, {"aws_region": "x", "allow_http": "true"}),
        ("s3://b/t", {"aws_allow_http": True, "region": "x"}, {"allow_http": "true", "region": "x"}),
        ("s3://b/t", {"Allow_Http": "true", "AWS_ALLOW_HTTP": "true"}, {"allow_http": "true"}),
        ("s3://b/t", {"AWS_ENDPOINT_URL": "http://x"}, {"aws_endpoint_url": "http://x"}),
        ("s3://b/t", {"aws_conditional_put": "etag"}, {"aws_conditional_put": "etag"}),
        ("az://c/t", {"AZURE_STORAGE_ACCOUNT_NAME": "x"}, {"azure_storage_account_name": "x"}),
        ("az://c/t", {"account_name": "x", "azure_allow_http": "true"}, {"account_name": "x", "allow_http": "true"}),
        ("gs://b/t", {"GOOGLE_SKIP_SIGNATURE": "true"}, {"google_skip_signature": "true"}),
        ("gcs://b/t", {}, {}),
    ],
)  # fmt: skip
def test_options_have_many_spellings(uri: str, options: dict[str, str], kept: dict[str, str]) -> None:
    store = open_store(uri, options)
    assert dict(store.spec.options) == kept
    assert open_store(store.spec).spec == store.spec


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"AWS_S3_ALLOW_UNSAFE_RENAME": "true"}, "AWS_S3_ALLOW_UNSAFE_RENAME.*renames no objects; remove"),
        ({"AWS_S3_LOCKING_PROVIDER": "dynamodb"}, "conditional puts; remove"),
        ({"aws_conditional_put": "disabled"}, "conditional puts; remove the option, or set it to 'etag'"),
        ({"CONDITIONAL_PUT": "disabled"}, "conditional puts; remove the option, or set it to 'etag'"),
        ({"allow_http": "true", "AWS_ALLOW_HTTP": "false"}, "'allow_http' is given in two spellings"),
        ({"aws_region": None}, "'aws_region': expected a text, found NoneType"),
        ({"timeout": "soon"}, "'timeout'"),
        ({"endpoint": ""}, "'endpoint': expected a URL such as https://host:9000, found ''"),
        ({"AWS_ENDPOINT_URL": "localhost:9000"}, "'AWS_ENDPOINT_URL': expected a URL .* found 'localhost:9000'"),
        ({"endpoint": "htp://x"}, "'endpoint': expected a URL"),
        ({"endpoint": "http://"}, "'endpoint': expected a URL"),
        ({"endpoint": "ann:secret@host"}, "found a URL with credentials"),
    ],
)
def test_options_that_do_not_fit(options: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidConfigError, match=message):
        open_store("s3://b/t", options)


SECRETS = {
    "aws_secret_access_key": "geheim",
    "aws_session_token": "geheim",
    "AWS_ACCESS_KEY_ID": "geheim",
    "aws_secret_access_ky": "geheim",
    "azure_storage_sas_key": "geheim",
    "no_such": "geheim",
    "proxy_url": "http://user:geheim@proxy",
}


@pytest.mark.parametrize("name", SECRETS)
def test_secrets_do_not_show(name: str) -> None:
    spec = StoreSpec("s3://b/t", ((name, SECRETS[name]), ("aws_region", "eu-west-1")))
    for text in (repr(spec), str(spec), f"{spec}", repr([spec])):
        assert "geheim" not in text
        assert name in text
        assert "eu-west-1" in text
    try:
        found = open_store(spec)
    except InvalidConfigError as error:
        told = "".join(traceback.format_exception(error))
        assert name.lower() in told
    else:
        told = repr(found) + repr(found.spec) + repr(hoodie.Table(found))
    assert "geheim" not in told


def test_secrets_do_not_show_in_what_holds_them() -> None:
    store = StoreSpec("s3://b/t", (("aws_secret_access_key", "geheim"),))
    context = WriteContext(
        store=store, schema=pa.schema([]), merger=RecordMerger(MergeMode.COMMIT_TIME_ORDERING), instant_time="1",
        combine=False, merge_stored=False,
    )  # fmt: skip
    assert "aws_secret_access_key=***" in repr(context)
    assert "geheim" not in repr(context)


def test_values_that_do_not_parse_do_not_show() -> None:
    for name, value in (("azure_storage_account_key", "geheim"), ("google_service_account_key", "geheim")):
        uri = "az://c/t" if name.startswith("azure") else "gs://c/t"
        with pytest.raises(InvalidConfigError, match=name) as caught:
            open_store(uri, {name: value})
        assert "geheim" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize(
    ("uri", "options", "message"),
    [
        ("hdfs://nn/t", None, "hdfs"),
        ("hdfs:/t", None, "no store for 'hdfs'.*mount HDFS"),
        ("dbfs:/t", None, "no store for 'dbfs'.*/dbfs/"),
        ("foo:/bar", None, "no store for 'foo'.*write ./foo:/bar"),
        ("S4://b/t", None, "no store for 'S4'"),
        ("C:\\data\\t", None, "path of Windows"),
        ("c:/data", None, "path of Windows"),
        ("~no_such_user_here/t", None, "no such user"),
        ("", None, "give a path"),
        ("a\0b", None, "give a path"),
        ("file://host/t", None, "another host"),
        ("/t", {"aws_region": "x"}, "accepts no storage options but 'durable'"),
        ("/t", {"durable": "perhaps"}, "true or false expected"),
        ("memory://t", {"durable": "true"}, "accepts no storage options, got"),
        ("s3://b/t", {"no_such_option": "x"}, "no_such_option"),
        ("s3://", {}, "cannot open"),
        ("s3://user:geheim@b/t", {}, "expected s3://bucket/folder without credentials"),
        ("az://c/t?sig=geheim", {}, "expected az://bucket/folder without credentials"),
        ("s3://b/t#1", {}, "without credentials, '\\?' and '#'"),
        ("fault+nobody", None, "not registered"),
    ],
)
def test_what_cannot_be_opened(uri: str, options: dict[str, str] | None, message: str) -> None:
    with pytest.raises(InvalidConfigError, match=message) as caught:
        open_store(uri, options)
    assert "geheim" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_no_folder_is_made_for_what_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for path in ("dbfs:/t", "C:\\t", "~no_such_user_here/t"):
        for call in (hoodie.open, hoodie.exists, lambda path: hoodie.create(path, pa.schema([]), record_key="id")):
            with pytest.raises(InvalidConfigError):
                call(path)
    assert list(tmp_path.iterdir()) == []


def test_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert open_store(tmp_path).spec.uri == str(tmp_path)
    assert open_store("~/t").spec.uri == str(tmp_path / "t")
    assert open_store(Path("~/t")).spec.uri == str(tmp_path / "t")
    assert open_store("./~/t").spec.uri == str(Path.cwd() / "~" / "t")
    assert open_store("./foo:/t").spec.uri == str(Path.cwd() / "foo:" / "t")


def test_crash_errors_are_not_ours_to_catch() -> None:
    assert not issubclass(CrashError, HoodieError)
    assert FaultStore(MemoryStore()).crashed is False
