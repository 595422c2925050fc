"""Folders and lists of Parquet files become tables: what is found, counted, refused and written."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import hoodie
from hoodie.errors import (
    HoodieError,
    InvalidConfigError,
    RecordKeyError,
    SchemaMismatchError,
    TableExistsError,
    UnsupportedError,
)
from hoodie.storage import open_store
from hoodie.write.adopting import key_scan
from hoodie.write.adopting.source_files import find_in_folder, read_footers
from hoodie.write.adopting.source_rows import SourceRows, unified
from tests.support.rows import assert_same_rows
from tests.support.tables import TYPES
from tests.unit.write.adopted import adopt, rows_of, values_of, write

ROWS = pa.table(
    {
        "id": ["a", "b", "c", "d"],
        "fare": [1.0, 2.5, None, 4.0],
        "at": pa.array([datetime(2026, 1, day) for day in (1, 2, 3, 4)], pa.timestamp("us")),
        "city": ["sf", "sf", "nyc", None],
        "day": pa.array([1, 1, 2, 3], pa.int32()),
    }
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """`ROWS` in folders of city and day, as Hive and Spark write them."""
    source = tmp_path / "raw"
    ds.write_dataset(ROWS, source, format="parquet", partitioning=["city", "day"], partitioning_flavor="hive")
    (source / "_SUCCESS").touch()
    return source


def test_a_folder_of_hive_style(folder: Path, tmp_path: Path) -> None:
    plan = hoodie.adopt(folder, record_key="id", ordering="at")
    assert (plan.files, plan.rows, plan.duplicates, plan.refused, plan.write) == (3, 4, 0, (), None)
    assert plan.ok
    assert plan.size_bytes == sum(file.stat().st_size for file in folder.rglob("*.parquet"))
    assert plan.schema is not None
    assert plan.schema.equals(ROWS.schema)
    assert plan.partitions == {"city=__HIVE_DEFAULT_PARTITION__/day=3": 1, "city=nyc/day=2": 1, "city=sf/day=1": 2}
    assert not (tmp_path / "t").exists()
    done = adopt(folder, ordering="at")
    assert done.write is not None
    assert done.write.inserted == 4
    assert_same_rows(rows_of(tmp_path / "t"), ROWS)
    table = hoodie.open(tmp_path / "t", spark=False)
    assert table.verify(full=True).ok
    assert table.read_keys(["c"])["day"].to_pylist() == [2]
    assert sorted(table.inspect.partitions()["partition_path"].to_pylist()) == sorted(plan.partitions)


def test_another_partitioning_than_that_of_the_folders(folder: Path, tmp_path: Path) -> None:
    adopt(folder, partition_by=[])
    assert hoodie.open(tmp_path / "t", spark=False).view().config.partition_fields == ()
    assert_same_rows(rows_of(tmp_path / "t"), ROWS)
    plan = hoodie.adopt(folder, record_key="id", partition_by="day")
    assert plan.partitions == {"day=1": 2, "day=2": 1, "day=3": 1}


def test_types_of_texts_in_folders(tmp_path: Path) -> None:
    source = tmp_path / "raw"
    folders = ("n=1/code=01/on=2026-01-31/big=1", "n=20/code=2/on=2026-02-01/big=3000000000")
    for number, path in enumerate(folders):
        write(source / path / "x.parquet", {"id": [number]})
    plan = hoodie.adopt(source, record_key="id")
    assert plan.schema == pa.schema(
        [("id", pa.int64()), ("n", pa.int32()), ("code", pa.string()), ("on", pa.date32()), ("big", pa.int64())]
    )
    adopt(source)
    (first, *_) = values_of(tmp_path / "t")
    assert first == {"id": 0, "n": 1, "code": "01", "on": date(2026, 1, 31), "big": 1}


def test_escaped_texts_in_folders(tmp_path: Path) -> None:
    write(tmp_path / "raw" / "city=S%C3%A3o Paulo%2FBR" / "x.parquet", {"id": [1]})
    options = {"hoodie.datasource.write.partitionpath.urlencode": "true"}
    adopt(tmp_path / "raw", properties=options)
    assert rows_of(tmp_path / "t")["city"].to_pylist() == ["São Paulo/BR"]


def test_files_of_several_schemas(tmp_path: Path) -> None:
    source = tmp_path / "raw"
    write(source / "1.parquet", {"id": ["a"], "n": pa.array([1], pa.int32()), "x": pa.array([0.5], pa.float32())})
    write(source / "2.parquet", {"id": pa.array(["b"]).dictionary_encode(), "n": [2**40], "tip": [0.1]})
    write(source / "3.parquet", {"tip": [1], "x": [0.25], "id": pa.array(["c"], pa.large_string())})
    adopt(source)
    found = values_of(tmp_path / "t")
    assert found == [
        {"id": "a", "n": 1, "x": 0.5, "tip": None},
        {"id": "b", "n": 2**40, "x": None, "tip": 0.1},
        {"id": "c", "n": None, "x": 0.25, "tip": 1.0},
    ]


@pytest.mark.parametrize(
    ("second", "words"),
    [({"id": ["b"], "n": ["x"]}, "'n'"), ({"id": ["b", None], "n": [1, 1]}, "null")],
    ids=["no common schema", "a row without a key"],
)
def test_what_is_refused_is_told_with_its_file(tmp_path: Path, second: dict[str, Any], words: str) -> None:
    source = tmp_path / "raw"
    write(source / "1.parquet", {"id": ["a"], "n": [1]})
    write(source / "2.parquet", second)
    plan = hoodie.adopt(source, record_key="id")
    assert not plan.ok
    assert (plan.schema is None) == (words == "'n'")
    (reason,) = plan.refused
    assert "2.parquet" in reason
    assert words in reason
    with pytest.raises(InvalidConfigError, match=r"2\.parquet"):
        adopt(source)
    assert not (tmp_path / "t").exists()


def test_integers_that_a_double_cannot_hold_are_an_error(tmp_path: Path) -> None:
    source = tmp_path / "raw"
    write(source / "1.parquet", {"id": ["a"], "n": [0.5]})
    write(source / "2.parquet", {"id": ["b"], "n": [2**53 + 1]})
    with pytest.raises(SchemaMismatchError, match=r"2\.parquet"):
        adopt(source)
    assert list(hoodie.open(tmp_path / "t").timeline.completed()) == []


@pytest.mark.parametrize("at_once", [1, 1000])
def test_duplicates_are_counted_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    monkeypatch.setattr(key_scan, "_HASHES_AT_ONCE", at_once)
    monkeypatch.setattr(key_scan, "_KEYS_AT_ONCE", at_once)
    source = tmp_path / "raw"
    # "Aa" and "BB" have one hash.
    write(source / "p=1" / "x.parquet", {"id": ["Aa", "b", "c", "c"]})
    write(source / "p=2" / "x.parquet", {"id": ["BB", "b", "c"]})
    plan = hoodie.adopt(source, record_key="id")
    assert (plan.duplicates, plan.duplicate_keys, plan.ok) == (3, ("b", "c"), False)
    plan = hoodie.adopt(source, record_key="id", index="simple")
    assert (plan.duplicates, plan.duplicate_keys) == (1, ("p=1 c",))
    assert hoodie.adopt(source).duplicates is None
    with pytest.raises(RecordKeyError, match="3 rows have the key of an earlier row"):
        adopt(source)
    assert not (tmp_path / "t").exists()


INDEXES = ["record", "partitioned_record", "simple", "bloom", "bucket"]
KINDS = [
    (ordering, index, TYPES[(row + column) % 2])
    for row, ordering in enumerate([None, "at"])
    for column, index in enumerate(INDEXES)
]
"""Each index with and without an ordering column, and each of both in each type of table."""


@pytest.mark.parametrize(("ordering", "index", "kind"), KINDS)
def test_duplicates_are_merged(tmp_path: Path, ordering: str | None, index: str, kind: str) -> None:
    """The greatest ordering value wins, without ordering the last row in the order of the files."""
    write(tmp_path / "raw" / "p=1" / "1.parquet", {"id": ["a", "b", "b"], "at": [9, 1, 2], "v": [1, 2, 3]})
    write(tmp_path / "raw" / "p=1" / "2.parquet", {"id": ["a", "c"], "at": [3, 1], "v": [4, 5]})
    write(tmp_path / "raw" / "p=2" / "1.parquet", {"id": ["c"], "at": [7], "v": [6]})
    wanted: dict[str, Any] = {"record_key": "id", "ordering": ordering, "index": index, "type": kind}
    plan = hoodie.adopt(tmp_path / "raw", duplicates="merge", **wanted)
    assert plan.ok
    assert plan.merges_duplicates
    assert "rows of one key become one row" in str(plan)
    done = adopt(tmp_path / "raw", duplicates="merge", **wanted)
    assert done.write is not None
    winner = {"a": 1 if ordering else 4, "b": 3}
    both = {"c": 6} if index == "record" else {"c": 5, "c in p=2": 6}
    found = rows_of(tmp_path / "t").to_pylist()
    assert sorted(row["v"] for row in found) == sorted([*winner.values(), *both.values()])
    assert (done.write.inserted, done.write.duplicates) == (len(found), 6 - len(found))
    assert done.duplicates == done.write.duplicates
    assert adopt(tmp_path / "raw", duplicates="merge", **wanted).write is None
    table = hoodie.open(tmp_path / "t", spark=False)
    assert table.upsert(table.to_arrow(where="id = 'b'")).inserted == 0
    assert table.verify(full=True).ok


def test_many_duplicates_are_merged_in_the_order_of_the_files(tmp_path: Path) -> None:
    for number in range(5):
        ids = [f"k{key}" for key in range(0, 3000, number + 1)]
        write(tmp_path / "raw" / f"{number}.parquet", {"id": ids, "v": [number] * len(ids), "p": [1] * len(ids)})
    wanted: dict[str, Any] = {"record_key": "id", "partition_by": "p", "duplicates": "merge"}
    done = adopt(tmp_path / "raw", **wanted)
    assert done.write is not None
    assert done.write.duplicates == done.rows - 3000
    last = {f"k{key}": max(n for n in range(5) if key % (n + 1) == 0) for key in range(3000)}
    assert dict(zip(*(rows_of(tmp_path / "t")[name].to_pylist() for name in ("id", "v")), strict=True)) == last


def test_duplicates_that_cannot_be_merged_are_refused(folder: Path) -> None:
    refused: tuple[dict[str, Any], ...] = (
        {"mode": "metadata_only"},
        {"mode": {"p=1": "metadata_only"}},
        {"record_key": None},
        {"index": "global_simple"},
        {"merge_mode": lambda older, newer: newer},
        {"duplicates": "drop"},
    )
    for wanted in refused:
        with pytest.raises((InvalidConfigError, UnsupportedError), match="duplicates="):
            hoodie.adopt(folder, **{"record_key": "id", "duplicates": "merge", **wanted})


@pytest.mark.parametrize("mode", ["rewrite", "metadata_only"])
@pytest.mark.parametrize("version", [6, 8, 9])
def test_each_table_version(folder: Path, tmp_path: Path, version: int, mode: str) -> None:
    wanted: dict[str, Any] = {"record_key": ["id", "day"], "mode": mode, "table_version": version}
    adopt(folder, **wanted)
    table = hoodie.open(tmp_path / "t", spark=False)
    assert table.view().config.version.value == version
    assert_same_rows(rows_of(tmp_path / "t"), ROWS)
    assert table.verify(full=True).ok
    assert adopt(folder, **wanted).write is None
    with pytest.raises(InvalidConfigError, match=r"table_version|index=simple"):
        adopt(folder, **{**wanted, "table_version": 9 if version < 9 else 8})


def test_files_that_are_no_parquet_are_refused_and_hidden_ones_skipped(tmp_path: Path) -> None:
    source = tmp_path / "raw"
    write(source / "1.parquet", {"id": ["a"]})
    write(source / "_temporary" / "2.parquet", {"id": ["b"]})
    write(source / ".3.parquet", {"id": ["c"]})
    (source / "notes.txt").write_text("no rows")
    (source / "empty.parquet").touch()
    plan = hoodie.adopt(source, record_key="id")
    assert plan.files == 1
    assert [reason.partition(": ")[0].rpartition("/")[2] for reason in plan.refused] == ["empty.parquet", "notes.txt"]


def test_folders_of_tables_are_refused(tmp_path: Path, folder: Path) -> None:
    for number, path in enumerate(["_delta_log/0.json", "metadata/v1.metadata.json", ".hoodie/hoodie.properties"]):
        write(tmp_path / str(number) / "1.parquet", {"id": ["a"]})
        write(tmp_path / str(number) / path, {"id": ["a"]})
        with pytest.raises(InvalidConfigError, match="table"):
            hoodie.adopt(tmp_path / str(number), record_key="id")
    for target in (folder, folder / "t", folder.parent):
        with pytest.raises(InvalidConfigError, match="expected a folder apart from"):
            hoodie.adopt(folder, target, record_key="id")


def test_listed_files(folder: Path, tmp_path: Path) -> None:
    files = [str(file) for file in sorted(folder.rglob("*.parquet"))]
    others = write(folder / "city=sf" / "day=1" / "removed.parquet", {"id": ["a"]})
    plan = hoodie.adopt(files=[f"file://{file}" for file in files], record_key="id")
    assert plan.rows == 4
    assert plan.schema == hoodie.adopt(files=files, record_key="id").schema
    hoodie.adopt(files=files, target=tmp_path / "t", record_key="id", dry_run=False)
    assert_same_rows(rows_of(tmp_path / "t"), ROWS)
    values = {files[0]: {"month": 1}, files[1]: {"month": 2}, files[2]: {"month": None}}
    plan = hoodie.adopt(files=files, partition_values=values, record_key="id")
    assert plan.partitions == {"month=1": 1, "month=2": 1, "month=__HIVE_DEFAULT_PARTITION__": 2}
    plan = hoodie.adopt(files=files, partition_values={}, record_key="id")
    assert plan.schema is not None
    assert plan.schema.names == ["id", "fare", "at"]
    assert plan.partitions == {"": 4}
    with pytest.raises(InvalidConfigError, match=r"removed\.parquet"):
        hoodie.adopt(files=files, partition_values={others: {}}, record_key="id")


def test_columns_that_folders_have_too_are_noted(tmp_path: Path) -> None:
    write(tmp_path / "raw" / "city=sf" / "x.parquet", {"id": ["a"], "city": ["SF"], "_hoodie_record_key": ["a"]})
    done = adopt(tmp_path / "raw")
    (note,) = done.notes
    assert "columns _hoodie_record_key, city of the files are not read" in note
    assert rows_of(tmp_path / "t")["city"].to_pylist() == ["sf"]


def test_the_same_call_again_does_nothing(folder: Path, tmp_path: Path) -> None:
    done = adopt(folder)
    assert done.write is not None
    with pytest.raises(InvalidConfigError, match="exists with name="):
        adopt(folder, name="another")
    again = adopt(folder)
    assert again.write is None
    assert again.notes == (
        f"the target has the rows of these files already, from {done.write.instant}; nothing was written",
    )
    write(folder / "city=la" / "day=9" / "x.parquet", {"id": ["z"], "fare": [1.0], "at": [datetime(2026, 1, 9)]})
    with pytest.raises(TableExistsError, match="none adopted these files"):
        adopt(folder)
    assert rows_of(tmp_path / "t").num_rows == 4


@pytest.mark.parametrize("cores", [2, 8])
def test_small_files_become_one_file_of_each_partition(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cores: int
) -> None:
    monkeypatch.setattr("hoodie.write.adopting.adoption._CORES_MAX", 0 if cores == 8 else 1024)
    for number in range(8):
        write(tmp_path / "raw" / f"{number}.parquet", {"id": [2 * number, 2 * number + 1], "p": [0, 1]})
    adopt(tmp_path / "raw", partition_by="p")
    table = hoodie.open(tmp_path / "t", spark=False)
    assert table.count() == 16
    assert len(list((tmp_path / "t").glob("p=*/*.parquet"))) == 2


@pytest.mark.parametrize("mode", ["rewrite", "metadata_only"])
def test_times_of_int96_are_points_in_time_of_all_years(tmp_path: Path, mode: str) -> None:
    (tmp_path / "raw").mkdir()
    old = datetime(1500, 1, 1)
    kind = pa.timestamp("us")
    rows = pa.table({"id": ["a"], "at": pa.array([old], kind), "l": pa.array([[old]], pa.list_(kind))})
    pq.write_table(rows, tmp_path / "raw" / "x.parquet", use_deprecated_int96_timestamps=True)
    adopt(tmp_path / "raw", mode=mode)
    found = rows_of(tmp_path / "t")
    assert found.schema.field("at").type == pa.timestamp("us", "UTC")
    point = old.replace(tzinfo=UTC)
    assert found.to_pylist() == [{"id": "a", "at": point, "l": [point]}]


def test_a_file_that_changes_between_plan_and_write_is_an_error(folder: Path, tmp_path: Path) -> None:
    found = find_in_folder(open_store(folder))
    files, _ = read_footers(found)
    rows = SourceRows(found.store.spec, files, unified(files, "raw"))
    write(next(folder.rglob("*.parquet")), {"id": ["z"] * 1000})
    with pytest.raises(HoodieError, match="another program replaced it"):
        [batch for part in rows.parts(2) for batch in part]


def test_texts_and_html(folder: Path) -> None:
    write(folder / "city=sf" / "day=1" / "y.parquet", {"id": ["a"], "fare": [1.0], "at": [datetime(2026, 1, 9)]})
    plan = hoodie.adopt(folder, record_key="id")
    assert "4 files, 5 rows" in str(plan)
    assert "duplicates of keys: 1, e.g. ['id:a']" in str(plan)
    assert "dry run: nothing was written" in repr(plan)
    assert "city=sf/day=1 3 rows" in plan._repr_html_()
    assert plan.to_dict()["schema"]["day"] == "int32"
