"""Files that are adopted where they are: skeleton files beside them, and what is refused."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import hoodie
from hoodie.commit.steps import Step
from hoodie.errors import CommitConflictError, CorruptFileError, InvalidConfigError, MissingFileError
from hoodie.format.avro.schema import META_FIELDS
from tests.support.rows import assert_same_rows
from tests.support.steps import once_at
from tests.support.tables import TYPES
from tests.unit.write.adopted import adopt, rows_of, values_of, write

ROWS = pa.table(
    {
        "id": ["a", "b", "c", "d"],
        "at": pa.array([datetime(2026, 1, day) for day in (1, 2, 3, 4)], pa.timestamp("us")),
        "s": [{"x": 1}, {"x": 2}, None, {"x": 4}],
        "city": ["sf", "sf", "nyc", None],
    }
)
IN_PLACE: dict[str, Any] = {"mode": "metadata_only"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    ds.write_dataset(ROWS, tmp_path / "raw", format="parquet", partitioning=["city"], partitioning_flavor="hive")
    return tmp_path / "raw"


@pytest.mark.parametrize("table_type", TYPES)
@pytest.mark.parametrize("index", [None, "global_simple", "bloom"])
def test_rows_stay_where_they_are(folder: Path, tmp_path: Path, index: str | None, table_type: str) -> None:
    before = {path: path.read_bytes() for path in folder.rglob("*.parquet")}
    plan = hoodie.adopt(folder, tmp_path / "t", record_key="id", index=index, type=table_type, **IN_PLACE)
    assert plan.ok
    assert "6 files for the whole table" in plan.notes[0]
    assert not (tmp_path / "t").exists()
    done = adopt(folder, index=index, type=table_type, **IN_PLACE)
    assert done.write is not None
    assert (done.write.operation, done.write.instant, done.write.inserted) == ("bootstrap", "00000000000001", 4)
    assert {path: path.read_bytes() for path in folder.rglob("*.parquet")} == before
    table = hoodie.open(tmp_path / "t", spark=False)
    assert_same_rows(rows_of(tmp_path / "t"), ROWS)
    assert table.verify(full=True).ok
    assert table.to_arrow(["id"], where="city = 'sf' and s.x = 2")["id"].to_pylist() == ["b"]
    assert table.read_keys(["c"])["city"].to_pylist() == ["nyc"]
    for skeleton in (tmp_path / "t").glob("city=*/*.parquet"):
        assert pq.ParquetFile(skeleton).schema_arrow.names == list(META_FIELDS)
    again = adopt(folder, index=index, type=table_type, **IN_PLACE)
    assert again.write is None
    assert "nothing was written" in str(again)


def test_a_folder_without_partitions_and_files_of_other_columns(tmp_path: Path) -> None:
    (tmp_path / "raw").mkdir()
    pq.write_table(pa.table({"id": [1, 2], "x": [0.5, 1.5]}), tmp_path / "raw" / "1.parquet", row_group_size=1)
    pq.write_table(pa.table({"y": ["new"], "id": [3]}), tmp_path / "raw" / "2.parquet")
    pq.write_table(pa.table({"id": pa.array([], pa.int64())}), tmp_path / "raw" / "empty.parquet")
    done = adopt(tmp_path / "raw", **IN_PLACE)
    assert done.write is not None
    assert done.write.files_created == 2
    assert values_of(tmp_path / "t") == [
        {"id": 1, "x": 0.5, "y": None},
        {"id": 2, "x": 1.5, "y": None},
        {"id": 3, "x": None, "y": "new"},
    ]


def test_source_files_that_change_or_go_are_errors(folder: Path, tmp_path: Path) -> None:
    adopt(folder, **IN_PLACE)
    (file,) = (folder / "city=nyc").glob("*.parquet")
    pq.write_table(ROWS.drop_columns("city"), file)
    with pytest.raises(CorruptFileError, match=r"city=nyc"):
        rows_of(tmp_path / "t")
    file.unlink()
    with pytest.raises(MissingFileError, match=r"city=nyc"):
        rows_of(tmp_path / "t")


REFUSED: tuple[tuple[dict[str, Any], str], ...] = (
    ({"index": "record"}, "index='record'"),
    ({"record_key": None}, "requires record_key"),
    ({"partition_by": []}, "expected the folder of its partition path, ''"),
    ({"partition_by": ["id"]}, "expected a folder id="),
    ({"properties": {"hoodie.metadata.index.column.stats.enable": "true"}}, "column.stats"),
    ({"mode": "copy"}, "expected 'rewrite' or 'metadata_only'"),
)


def test_refused_options(folder: Path, tmp_path: Path) -> None:
    for options, reason in REFUSED:
        with pytest.raises(InvalidConfigError, match=reason):
            adopt(folder, **{**IN_PLACE, **options})
        assert not (tmp_path / "t").exists()


def test_files_that_readers_would_read_otherwise_are_refused(tmp_path: Path) -> None:
    for path, columns in {
        "city=sf/1.parquet": {"id": [1], "x": pa.array([1], pa.int32())},
        "city=sf/2.parquet": {"id": [2], "x": [1]},
        "city=sf/3.parquet": {"id": [3], "x": [1], "city": ["SF"]},
        "city=s%66/4.parquet": {"id": [4], "x": [1]},
        "city=sf/more/5.parquet": {"id": [5], "x": [1]},
    }.items():
        write(tmp_path / "raw" / path, columns)
    plan = hoodie.adopt(tmp_path / "raw", record_key="id", **IN_PLACE)
    found = {reason.partition(": ")[0].rpartition("/")[2]: reason for reason in plan.refused}
    assert sorted(found) == ["1.parquet", "3.parquet", "4.parquet", "5.parquet"]
    assert "column 'x' is int32, in the table int64" in found["1.parquet"]
    assert "rewrite the files" in found["3.parquet"]
    assert "found 'city=s%66'" in found["4.parquet"]
    assert "found 'city=sf/more'" in found["5.parquet"]


def test_dates_in_folders_stay_text(tmp_path: Path) -> None:
    write(tmp_path / "raw" / "day=2026-01-31" / "x.parquet", {"id": [1]})
    adopt(tmp_path / "raw", **IN_PLACE)
    assert rows_of(tmp_path / "t")["day"].to_pylist() == ["2026-01-31"]


def test_a_table_of_the_other_mode_is_refused(folder: Path, tmp_path: Path) -> None:
    adopt(folder, **IN_PLACE)
    with pytest.raises(InvalidConfigError, match="bootstrap folder"):
        adopt(folder, index="simple")


def columns_of(path: Path) -> dict[str, int]:
    """How many columns the file of each partition has."""
    return {file.parent.name: len(pq.ParquetFile(file).schema_arrow.names) for file in path.glob("city=*/*.parquet")}


@pytest.mark.parametrize("table_type", TYPES)
def test_some_partitions_stay_and_others_are_rewritten(folder: Path, tmp_path: Path, table_type: str) -> None:
    choice = {**IN_PLACE, "mode": {"city=sf": "metadata_only"}, "type": table_type}
    assert hoodie.adopt(folder, tmp_path / "t", record_key="id", **choice).mode == {"city=sf": "metadata_only"}
    done = adopt(folder, **choice)
    assert done.write is not None
    assert (done.write.operation, done.write.inserted, done.write.files_created) == ("bulk_insert", 4, 3)
    assert done.write.notes == ("bootstrap at 00000000000001: 2 inserted",)
    assert_same_rows(rows_of(tmp_path / "t"), ROWS)
    table = hoodie.open(tmp_path / "t", spark=False)
    assert table.verify(full=True).ok
    assert columns_of(tmp_path / "t") == {"city=sf": 5, "city=nyc": 9, "city=__HIVE_DEFAULT_PARTITION__": 9}
    assert adopt(folder, **choice).write is None


def test_the_mode_of_all_other_partitions(folder: Path, tmp_path: Path) -> None:
    mode = {"city=sf": "rewrite", "*": "metadata_only"}
    adopt(folder, mode=mode)
    assert columns_of(tmp_path / "t") == {"city=sf": 9, "city=nyc": 5, "city=__HIVE_DEFAULT_PARTITION__": 5}
    with pytest.raises(InvalidConfigError, match="no files in the folder 'city=oslo'"):
        hoodie.adopt(folder, record_key="id", mode={"city=oslo": "rewrite"})


@pytest.mark.parametrize("mode", ["rewrite", "metadata_only"])
def test_two_adoptions_of_the_same_files_at_once(folder: Path, tmp_path: Path, mode: str) -> None:
    step = Step.LOCATED if mode == "rewrite" else Step.PREPARED
    with pytest.raises(CommitConflictError), once_at(step, lambda: adopt(folder, index="simple", mode=mode)):
        adopt(folder, index="simple", mode=mode)
    assert_same_rows(rows_of(tmp_path / "t"), ROWS)
    assert hoodie.open(tmp_path / "t", spark=False).verify(full=True).ok
