"""A merge-on-read table with a damaged or missing file: every call that needs the file raises, and changes nothing."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import hoodie
from hoodie.table import Table
from tests.support.metadata_limits import DELTA_COMMITS_MAX

SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("city", pa.string())])
DAMAGES: dict[str, Callable[[bytes], bytes | None]] = {
    "half": lambda data: data[: len(data) // 2],
    "nothing": lambda _: b"",
    "appended": lambda data: data + b"appended",
    "gone": lambda _: None,
}


def trips(ts: int, count: int) -> pa.Table:
    return pa.table({"id": [f"k{n}" for n in range(count)], "ts": [ts] * count, "city": ["sf"] * count}, schema=SCHEMA)


@pytest.fixture(scope="module", params=["record", "simple"])
def whole(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("whole") / "trips"
    table = hoodie.create(
        path, SCHEMA, record_key="id", ordering="ts", partition_by="city", type="merge_on_read", index=request.param
    )
    table.upsert(trips(1, 50))
    table.upsert(trips(2, 5))
    return path


def damage(whole: Path, tmp_path: Path, kind: str, pattern: str) -> tuple[Table, Path]:
    """Copy the table, and damage the newest file that matches."""
    path = tmp_path / "trips"
    shutil.copytree(whole, path)
    files = [file for file in path.glob(pattern) if not file.name.endswith(".crc") and file.stat().st_size > 100]
    file = max(files, key=lambda found: found.name.partition("_")[2])
    data = DAMAGES[kind](file.read_bytes())
    if data is None:
        file.unlink()
    else:
        file.write_bytes(data)
    return hoodie.open(path, spark=False), file


def assert_refused(file: Path, kind: str, *calls: Callable[[], object]) -> None:
    error = hoodie.MissingFileError if kind == "gone" else hoodie.CorruptFileError
    for call in calls:
        with pytest.raises(error) as caught:
            call()
        assert file.name in str(caught.value)
        assert "restore the file from a copy" in str(caught.value)


@pytest.mark.parametrize("kind", DAMAGES)
def test_a_log_file(whole: Path, tmp_path: Path, kind: str) -> None:
    table, file = damage(whole, tmp_path, kind, "city=sf/.*.log.*")
    calls: list[Callable[[], object]] = [table.to_arrow, lambda: table.read_keys(["k1"]), lambda: table.changes()]
    if (tmp_path / "trips/.hoodie/metadata/record_index").exists():
        calls.append(table.index.verify)
    else:
        calls.append(lambda: table.upsert(trips(3, 50)))
    assert_refused(file, kind, *calls)
    table.schedule_compaction()
    with pytest.raises(hoodie.CorruptFileError, match="does not exist" if kind == "gone" else file.name):
        table.compact()
    assert len(table.pending_compactions()) == 1
    assert table.to_arrow(view="read_optimized").num_rows == 50


@pytest.mark.parametrize("kind", DAMAGES)
def test_a_log_file_of_the_file_listing(whole: Path, tmp_path: Path, kind: str) -> None:
    table, file = damage(whole, tmp_path, kind, ".hoodie/metadata/files/.*.log.*")
    assert_refused(file, kind, table.to_arrow, lambda: table.upsert(trips(3, 50)), table.schedule_compaction)


@pytest.mark.parametrize("whole", ["record"], indirect=True)
@pytest.mark.parametrize("kind", DAMAGES)
def test_a_log_file_of_the_record_index(whole: Path, tmp_path: Path, kind: str) -> None:
    table, file = damage(whole, tmp_path, kind, ".hoodie/metadata/record_index/.*.log.*")
    assert_refused(file, kind, table.index.verify)
    if kind != "gone":
        assert_refused(file, kind, lambda: table.upsert(trips(3, 50)), lambda: table.record_locations(keys(50)))
    table.index.drop("record")
    table.index.build("record")
    assert table.index.verify().ok
    table.upsert(trips(3, 50))
    assert table.to_arrow().num_rows == 50


@pytest.mark.parametrize("whole", ["record"], indirect=True)
def test_a_compaction_of_the_index_does_not_make_a_loss_final(whole: Path, tmp_path: Path) -> None:
    table, file = damage(whole, tmp_path, "gone", ".hoodie/metadata/record_index/.*.log.*")

    def upsert_until_the_index_is_compacted() -> None:
        for ts in range(DELTA_COMMITS_MAX):
            table.upsert(trips(3 + ts, 1))

    with pytest.raises(hoodie.MissingFileError, match=file.name):
        upsert_until_the_index_is_compacted()
    assert table.to_arrow().num_rows == 50


def keys(count: int) -> pa.Table:
    return pa.table({"id": [f"k{n}" for n in range(count)]})


@pytest.mark.parametrize("whole", ["simple"], indirect=True)
def test_a_compaction_compares_lengths_with_the_commits(whole: Path, tmp_path: Path) -> None:
    path = tmp_path / "trips"
    shutil.copytree(whole, path)
    shutil.rmtree(path / ".hoodie/metadata")
    properties = path / ".hoodie/hoodie.properties"
    lines = properties.read_text().splitlines(keepends=True)
    properties.write_text("".join(line for line in lines if not line.startswith("hoodie.table.metadata.partitions")))
    table = hoodie.open(path, spark=False)
    assert not table.view().config.has_metadata_table
    (file,) = (found for found in path.glob("city=sf/.*.log.*") if not found.name.endswith(".crc"))
    whole_data = file.read_bytes()
    file.write_bytes(whole_data * 2)
    table.schedule_compaction()
    with pytest.raises(hoodie.CorruptFileError, match=f"expected {len(whole_data)} bytes"):
        table.compact()
    file.write_bytes(whole_data)
    assert table.compact().instant is not None
    assert table.to_arrow(view="read_optimized").filter(pc.equal(pc.field("ts"), 2)).num_rows == 5
