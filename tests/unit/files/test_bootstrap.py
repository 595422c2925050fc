"""Skeleton files of a bootstrapped table are read beside their source files, and nothing else outside the table is."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hoodie.errors import CorruptFileError, MissingFileError
from hoodie.files.base_file import open_base_file
from hoodie.files.bootstrap import BootstrapSource, beside
from hoodie.files.slices import BaseFile
from hoodie.files.stored_columns import StoredColumns
from hoodie.format.avro.file import RecordSchema, record_to_bytes
from hoodie.format.hfile import hfile_to_bytes
from hoodie.format.table.key_generator import KeyGeneratorType
from hoodie.format.table.versions import TableVersion
from hoodie.storage import LocalStore, StoreSpec
from tests.support.key_generators import key_generator_for

_INDEX = ".hoodie/.aux/.bootstrap/.fileids/00000000-0000-0000-0000-000000000000-0_1-0-1_00000000000001.hfile"
_ENTRY = """{"type": "record", "name": "HoodieBootstrapFilePartitionInfo", "fields": [
    {"name": "bootstrapFileStatus", "type": {"type": "record", "name": "HoodieFileStatus", "fields": [
        {"name": "path", "type": {"type": "record", "name": "HoodiePath", "fields": [
            {"name": "uri", "type": "string"}]}},
        {"name": "length", "type": "long"}]}}]}"""
_META = pa.schema([("_hoodie_commit_time", pa.string()), ("_hoodie_record_key", pa.string())])
_SCHEMA = pa.schema([*_META, ("id", pa.string()), ("x", pa.int64()), ("p", pa.int32()), ("new", pa.string())])
_ROWS = 1000


class _Bootstrapped:
    """A table with one skeleton of 1,000 rows, and its source file with other row groups."""

    def __init__(self, folder: Path) -> None:
        self.source = folder / "source" / "p=7" / "part-0.parquet"
        self.source.parent.mkdir(parents=True)
        numbers = list(range(_ROWS))
        rows = pa.table({"id": [f"k{n}" for n in numbers], "x": pa.array(numbers, pa.int32())})
        pq.write_table(rows, self.source, row_group_size=300)
        self.store = LocalStore(str(folder / "t"))
        skeleton = folder / "t" / "p=7" / "f_0-1-2_00000000000001.parquet"
        skeleton.parent.mkdir(parents=True)
        meta = pa.table([["1"] * _ROWS, [f"k{n}" for n in numbers]], schema=_META)
        pq.write_table(meta, skeleton, row_group_size=450)
        self.file = BaseFile("p=7", skeleton.name, "f", "00000000000001", skeleton.stat().st_size)
        self.point_to(f"file:{self.source}")
        self.columns = StoredColumns(
            source=BootstrapSource(StoreSpec(str(folder / "source"))),
            source_path_columns=(pa.field("p", pa.int32()),),
            key_generator=key_generator_for(
                kind=KeyGeneratorType.SIMPLE,
                record_key_fields=["id"],
                partition_fields=["p"],
                hive_style=True,
                table_version=TableVersion.NINE,
            ),
        )

    def point_to(self, uri: str, key: str = "part=p=7;fileid=f") -> None:
        """Write the index: one entry, which names this source file."""
        status = {"path": {"uri": uri}, "length": self.source.stat().st_size}
        value = record_to_bytes(RecordSchema.of(_ENTRY), {"bootstrapFileStatus": status})
        keys, values = pa.array([key.encode()], pa.binary()), pa.array([value], pa.binary())
        self.store.replace(_INDEX, hfile_to_bytes(keys, values, schema_json="{}"))

    def read(self, names: Sequence[str]) -> pa.Table:
        """The columns of all rows."""
        schema = pa.schema([_SCHEMA.field(name) for name in names])
        with open_base_file(self.store, self.file) as (parquet, _):
            return pa.concat_tables(self.columns.base_rows(self.store, parquet, schema, self.file))


@pytest.fixture
def table(tmp_path: Path) -> _Bootstrapped:
    return _Bootstrapped(tmp_path)


def test_rows_are_joined_by_position(table: _Bootstrapped) -> None:
    rows = table.read(_SCHEMA.names)
    assert rows.schema == _SCHEMA
    expected = [
        {"_hoodie_commit_time": "1", "_hoodie_record_key": f"k{n}", "id": f"k{n}", "x": n, "p": 7, "new": None}
        for n in range(_ROWS)
    ]
    assert rows.to_pylist() == expected


@pytest.mark.parametrize("names", [["p"], ["_hoodie_record_key"], ["x"], ["new", "p"], ["x", "_hoodie_record_key"]])
def test_some_columns(table: _Bootstrapped, names: list[str]) -> None:
    rows = table.read(names)
    assert rows.num_rows == _ROWS
    assert rows == table.read(_SCHEMA.names).select(names)


def test_only_the_first_instant_has_skeletons(table: _Bootstrapped) -> None:
    later = BaseFile("p=7", "f_0-1-2_20260101000000000.parquet", "f", "20260101000000000", 1)
    assert (table.columns.are_in(table.file), table.columns.are_in(later)) == (False, True)


@pytest.mark.parametrize("where", ["elsewhere/x.parquet", "source2/x.parquet", "source/../x.parquet", "source"])
def test_files_outside_the_folder_are_refused(table: _Bootstrapped, tmp_path: Path, where: str) -> None:
    table.point_to(f"file:{tmp_path}/{where}")
    with pytest.raises(CorruptFileError, match=r"inside hoodie\.bootstrap\.base\.path"):
        table.read(["x"])


def test_what_does_not_fit_is_an_error(table: _Bootstrapped) -> None:
    table.point_to(f"file:{table.source}", key="part=p=7;fileid=other")
    with pytest.raises(CorruptFileError, match=r"entry for the skeleton.*restore"):
        table.read(["x"])
    pq.write_table(pq.read_table(table.source).slice(1), table.source)
    table.point_to(f"file:{table.source}")
    with pytest.raises(CorruptFileError, match=r"\(999\) expected, found 1000; restore"):
        table.read(["x"])
    table.source.unlink()
    with pytest.raises(MissingFileError, match="part-0"):
        table.read(["x"])


def test_streams_of_other_pieces_are_cut_alike() -> None:
    def pieces(*sizes: int) -> list[pa.Table]:
        numbers: list[Any] = list(range(sum(sizes)))
        starts = [sum(sizes[:place]) for place in range(len(sizes))]
        return [pa.table({"n": numbers[start : start + size]}) for start, size in zip(starts, sizes, strict=True)]

    pairs = list(beside(iter(pieces(3, 0, 4)), iter(pieces(0, 2, 4, 1))))
    assert [left.num_rows for left, _ in pairs] == [2, 1, 3, 1]
    assert all(left == right for left, right in pairs)
