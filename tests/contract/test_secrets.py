"""Credentials stay in memory: no file of a table, log record, error, printed object or temporary file has them."""

from __future__ import annotations

import logging
import tempfile
from pathlib import Path

import pyarrow as pa
import pytest

import hoodie
from hoodie.storage import open_store

SECRET = "geheim-7f3a9c"
ROWS = pa.table({"id": ["a", "b"], "x": [1, 2]})


def test_no_trace_of_credentials(
    s3_options: dict[str, str],
    s3_bucket: str,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    caplog.set_level(logging.DEBUG)
    options = {**s3_options, "aws_secret_access_key": SECRET, "aws_session_token": SECRET}
    uri = f"s3://{s3_bucket}/secrets"
    table = hoodie.create(uri, ROWS.schema, record_key="id", type="merge_on_read", storage_options=options, spark=False)
    told: list[object] = [table.upsert(ROWS), table.upsert(ROWS), table.schedule_compaction(), table.compact()]
    told += [table.verify(full=True), table.repair(dry_run=False), table.index.rebuild(), table.inspect]
    told += [table, table.view(), table.view().state, table.timeline, table.inspect.files(), table.history()]
    told += [open_store(uri, options), open_store(uri, options).spec]
    store = open_store(uri, options)
    store.delete(next(info.path for info in store.list("", recursive=True) if info.path.endswith(".parquet")))
    for call in (table.to_arrow, lambda: table.upsert(pa.table({"id": [None]})), lambda: table.verify(full=True)):
        try:
            told.append(call())
        except hoodie.HoodieError as error:
            told += [error, repr(error), error.__cause__]
    with pytest.raises(hoodie.HoodieError) as refused:
        hoodie.open(f"s3://{s3_bucket}/secrets", storage_options={**options, "aws_regoin": SECRET})
    told.append(refused.value)
    assert not [text for text in map(str, told) if SECRET in text]
    assert not [text for text in map(repr, told) if SECRET in text]
    assert SECRET not in caplog.text
    stored = {info.path: store.read(info.path) for info in store.list("", recursive=True)}
    assert len(stored) > 20
    assert not [path for path, content in stored.items() if SECRET.encode() in content or SECRET in path]
    left = [file for file in tmp_path.rglob("*") if file.is_file() and SECRET.encode() in file.read_bytes()]
    assert left == []


@pytest.mark.parametrize("name", ["hoodie.aws.secret.key", "fs.s3a.secret.key", "aws_session_token"])
def test_credentials_as_properties_are_refused_and_not_shown(name: str) -> None:
    for call in (
        lambda: hoodie.create(f"memory://secret-{name}", ROWS.schema, record_key="id", properties={name: SECRET}),
        lambda: hoodie.create(f"memory://other-{name}", ROWS.schema, record_key="id").upsert(
            ROWS, properties={name: SECRET}
        ),
    ):
        with pytest.raises(hoodie.InvalidConfigError) as refused:
            call()
        assert SECRET not in str(refused.value)


def test_a_password_of_the_jvm_that_has_no_effect_is_not_shown_or_stored() -> None:
    properties = {"hoodie.datasource.hive_sync.password": SECRET}
    with pytest.warns(hoodie.HoodieWarning, match=r"without effect here.*hive_sync\.password") as warned:
        table = hoodie.create("memory://secret-of-the-jvm", ROWS.schema, record_key="id", properties=properties)
    result = table.upsert(ROWS, properties=properties)
    assert any("hive_sync.password" in note for note in result.notes)
    store = table.view().store
    stored = [store.read(info.path) for info in store.list("", recursive=True)]
    assert len(stored) > 5
    assert not [text for text in (str(warned[0].message), str(result), *map(str, stored)) if SECRET in text]


@pytest.mark.parametrize(
    "uri", [f"https://me:{SECRET}@host/t", f"ftp://{SECRET}@host/t", f"http://host/t?sig={SECRET}"]
)
@pytest.mark.parametrize("options", [{}, {"aws_region": "x"}])
def test_credentials_in_a_uri_are_not_shown(uri: str, options: dict[str, str]) -> None:
    with pytest.raises(hoodie.InvalidConfigError) as refused:
        hoodie.open(uri, storage_options=options)
    assert SECRET not in str(refused.value)
