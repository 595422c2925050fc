"""Parquet files in an object store become tables, in the same store or in another one."""

from __future__ import annotations

import io
import urllib.request
import uuid
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hoodie
from hoodie.storage import open_store


@pytest.fixture
def options(request: pytest.FixtureRequest) -> dict[str, str]:
    found: dict[str, str] = request.getfixturevalue("s3_options")
    return found


@pytest.fixture
def bucket(options: dict[str, str]) -> str:
    """A bucket with two files in folders of cities."""
    name = f"b{uuid.uuid4().hex}"
    urllib.request.urlopen(urllib.request.Request(f"{options['aws_endpoint']}/{name}", method="PUT")).close()
    store = open_store(f"s3://{name}/raw", options)
    for city, key in (("sf", "a"), ("new york", "b")):
        sink = io.BytesIO()
        pq.write_table(pa.table({"id": [key], "at": [1]}), sink)
        store.create(f"city={city}/x.parquet", sink.getvalue())
    return f"s3://{name}"


@pytest.mark.parametrize("mode", ["rewrite", "metadata_only"])
def test_files_and_table_in_one_bucket(bucket: str, options: dict[str, str], mode: str) -> None:
    done = hoodie.adopt(
        f"{bucket}/raw", f"{bucket}/t", record_key="id", mode=mode, dry_run=False, storage_options=options
    )
    assert done.write is not None
    table = hoodie.open(f"{bucket}/t", storage_options=options, spark=False)
    assert table.read_keys(["b"])["city"].to_pylist() == ["new york"]
    assert sorted(table.to_arrow(["id", "city"]).to_pylist(), key=lambda row: str(row["id"])) == [
        {"id": "a", "city": "sf"},
        {"id": "b", "city": "new york"},
    ]


def test_listed_files_in_a_bucket_and_a_local_table(bucket: str, options: dict[str, str], tmp_path: Path) -> None:
    files = [f"{bucket}/raw/city=sf/x.parquet", f"{bucket}/raw/city=new york/x.parquet"]
    hoodie.adopt(files=files, target=tmp_path / "t", record_key="id", dry_run=False, source_storage_options=options)
    assert hoodie.open(tmp_path / "t", spark=False).count("city = 'sf'") == 1
    with pytest.raises(hoodie.InvalidConfigError, match="expected files of one store"):
        hoodie.adopt(files=[*files, str(tmp_path / "x.parquet")], record_key="id", source_storage_options=options)
