"""Compactions of the partition `files`: rows that no commit changed are copied, the others are merged."""

from __future__ import annotations

import pyarrow as pa
import pytest

from hoodie.format.metadata_table.metadata_record import (
    FileListRecord,
    RecordType,
    decode_record,
    metadata_schema,
    with_file_name,
)
from hoodie.metadata.folder import MetadataFolder
from hoodie.metadata.instants import visible_instants
from hoodie.metadata.kinds.files import FileList, FilesKind, merge
from hoodie.metadata.slice_content import SliceContent
from hoodie.metadata.slices import SliceReader
from hoodie.table import Table
from tests.support.tables import new_table

_SCHEMA = pa.schema([("id", pa.string()), ("p", pa.string())])


def _rows(*partitions: int) -> pa.Table:
    return pa.table({"id": [f"k{number}" for number in partitions], "p": [f"p{number}" for number in partitions]})


def _content(table: Table) -> SliceContent:
    view = table.view()
    timeline = MetadataFolder(view.store, view.config).existing_timeline()
    [content] = SliceReader(view.store).read(FilesKind(), visible_instants(timeline, view.whole_timeline()))
    return content


def _live(rows: dict[str, FileList]) -> dict[str, FileList]:
    found: dict[str, FileList]
    found = {key: {name: size for name, size in row.items() if size is not None} for key, row in rows.items()}
    return {key: row for key, row in found.items() if row}


@pytest.mark.parametrize("commits", [4, 11], ids=["first base file", "compacted before"])
def test_a_compaction_has_the_rows_that_a_merge_has(commits: int) -> None:
    table = new_table(_SCHEMA, partition_by="p", index="simple")
    table.bulk_insert(_rows(*range(20)))
    for number in range(commits):
        table.upsert(_rows(number, 60 + number))
    table.delete_partitions(["p=p18", "p=p19"])
    table.clean(properties={"hoodie.clean.commits.retained": "1"})
    content = _content(table)
    assert content.base is not None
    assert content.blocks
    keys, values = FilesKind().compact(content, file_name="new.hfile")
    assert keys.cast(pa.binary()).to_pylist() == sorted(keys.cast(pa.binary()).to_pylist())
    found: dict[str, FileList] = {}
    for key, value in zip(keys.cast(pa.string()).to_pylist(), values.to_pylist(), strict=True):
        assert decode_record(value, schema_json=metadata_schema(), path="")["_hoodie_file_name"] == "new.hfile"
        found[key] = dict(FileListRecord.parse(value, schema_json=metadata_schema(), path="").files)
    assert _live(found) == _live(merge(content))


@pytest.mark.parametrize("old", [None, "old.hfile"])
def test_rows_of_a_base_file_get_the_name_of_another_one(old: str | None) -> None:
    records = [
        FileListRecord(RecordType.PARTITION_LIST, {"a": 0, "b": None}),
        FileListRecord(RecordType.FILE_LIST, {"é.parquet": 7}),
    ]
    values = pa.array([record.to_bytes(file_name=old) for record in records], pa.binary())
    copied = with_file_name(values, "old.hfile", "newer.hfile")
    assert copied is not None
    assert copied.to_pylist() == [record.to_bytes(file_name="newer.hfile") for record in records]
    empty = with_file_name(values.slice(0, 0), "old.hfile", "newer.hfile")
    assert empty is not None
    assert len(empty) == 0


def test_rows_of_another_form_are_not_copied() -> None:
    record = FileListRecord(RecordType.FILE_LIST, {"a": 1})
    names = ["old.hfile", "other.hfile"]
    values = pa.array([record.to_bytes(file_name=name) for name in names], pa.binary())
    assert with_file_name(values, "old.hfile", "new.hfile") is None
    without_map = FileListRecord(RecordType.FILE_LIST, {}).to_bytes()[:-6] + b"\0" * 6
    assert with_file_name(pa.array([without_map], pa.binary()), "old.hfile", "new.hfile") is None
