"""Kinds of metadata partitions are found by name, and each of them makes its rows of a commit."""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import pyarrow as pa
import pytest

from hoodie.errors import CommitConflictError, UnsupportedError
from hoodie.files.table_properties import update_table_config
from hoodie.format.instants.commit_metadata import WriteStat
from hoodie.format.table import table_keys as keys
from hoodie.metadata.changes import MetadataChanges
from hoodie.metadata.data_table import DataTable
from hoodie.metadata.delta_commit import FileGroupDelta
from hoodie.metadata.kinds.files import FilesKind
from hoodie.metadata.kinds.partition_kind import InitialRows, PartitionKind
from hoodie.metadata.kinds.record_index import RecordIndexKind
from hoodie.metadata.kinds.registry import KINDS, KindRegistry
from hoodie.metadata.paths import file_id_of, partition_folder
from hoodie.metadata.slices import SliceReader
from hoodie.metadata.table import MetadataTable
from hoodie.timeline import Timeline
from tests.support.fake_commits import FakeTable
from tests.support.metadata_limits import DELTA_COMMITS_MAX


@dataclass(frozen=True, slots=True)
class NameIndexKind(PartitionKind):
    """A kind with the key = file name, for the names with one ending."""

    name: str
    file_id_prefix = "name-index-"

    def file_groups(self, properties: Mapping[str, str]) -> int:
        return 2

    def initialise(self, table: DataTable, file_ids: Sequence[str]) -> Sequence[InitialRows]:
        names = [name for names in table.list_files().values() for name in names]
        return (InitialRows(file_ids[1], *self._columns(names)),)

    def rows_of(self, changes: MetadataChanges, table: DataTable, visible: Timeline) -> Sequence[FileGroupDelta]:
        names = [name for names in changes.files_added.values() for name in names]
        deleted = pa.array(sorted(name for names in changes.files_deleted.values() for name in names), pa.string())
        return (FileGroupDelta(self.name, file_id_of(self.file_id_prefix, 0), *self._columns(names), deleted),)

    def _columns(self, names: Sequence[str]) -> tuple[pa.Array, pa.Array]:
        ending = self.name.rpartition("_")[2]
        found = sorted(name for name in names if name.endswith(f".{ending}"))
        return pa.array(found, pa.string()), pa.array([b"here"] * len(found), pa.binary())


PARQUET, LOG = NameIndexKind("name_index_parquet"), NameIndexKind("name_index_log")
REGISTRY = KindRegistry(required=(FilesKind(),), named=(RecordIndexKind(), PARQUET, LOG))


def keys_of(table: FakeTable, kind: PartitionKind) -> set[str]:
    """Keys of all file groups, merged by the kind."""
    contents = SliceReader(table.store).read(kind, table.metadata_timeline)
    return {key for content in contents for key in kind.compact(content, file_name="x")[0].to_pylist()}


def test_kinds_are_found_by_their_exact_name() -> None:
    assert KINDS.find("files") == FilesKind()
    assert KINDS.find("record_index") == RecordIndexKind()
    assert [KINDS.find(name) for name in ("record_index_2", "file", "name_index_log")] == [None] * 3
    assert {kind.name for kind in KINDS.required} == {"files"}
    assert REGISTRY.find("name_index_parquet") == PARQUET
    assert REGISTRY.find("name_index_log") == LOG
    assert REGISTRY.find("name_index_") is None


def test_unknown_partitions_are_left_out_or_refused() -> None:
    names = {"files", "record_index", "expr_index_a", "name_index_log"}
    assert list(KINDS.maintained(names)) == ["files", "record_index"]
    assert list(REGISTRY.maintained(names)) == ["files", "name_index_log", "record_index"]
    with pytest.raises(UnsupportedError, match="cannot maintain: expr_index_a, name_index_log"):
        KINDS.all_of(names)
    assert KINDS.all_of(["record_index", "files"]) == {"files": FilesKind(), "record_index": RecordIndexKind()}


@pytest.mark.parametrize("kind", [*KINDS.required, *KINDS.named], ids=lambda kind: kind.name)
def test_kinds_go_to_tasks(kind: PartitionKind) -> None:
    assert pickle.loads(pickle.dumps(kind)) == kind


def test_the_metadata_table_asks_every_kind_of_its_partitions(table: FakeTable) -> None:
    ours = MetadataTable(table.store, table.config, kinds=REGISTRY)
    kinds = [PARQUET, LOG]
    for kind in kinds:
        ours.add_partitions((kind,), table.locked)
    update_table_config(table.store, {keys.METADATA_PARTITIONS: "files,name_index_log,name_index_parquet"})
    at_first = {name for names in table.storage_listing().values() for name in names}
    assert keys_of(table, kinds[0]) == at_first
    assert keys_of(table, kinds[1]) == set()

    table.change(ours, MetadataChanges(files_added={"city=sf": {"a.parquet": 1, "a.log": 2}}))
    added = {"city=sf": {"b.log": 1}}
    table.change(ours, MetadataChanges(files_deleted={"city=sf": ["a.parquet"]}, files_added=added))
    for _ in range(DELTA_COMMITS_MAX):
        table.change(ours, MetadataChanges())
    assert keys_of(table, kinds[0]) == at_first
    assert keys_of(table, kinds[1]) == {"a.log", "b.log"}
    folders = [table.store.list(partition_folder(kind.name)) for kind in kinds]
    assert all(any(info.name.endswith(".hfile") for info in infos) for infos in folders), "compacted"
    assert set(ours.listing(table.timeline)["city=sf"]) >= {"a.log", "b.log"}

    update_table_config(table.store, {keys.METADATA_PARTITIONS: "files,name_index_parquet"})
    ours.drop_partitions({"name_index_log"})
    assert table.store.list(partition_folder("name_index_log")) == []
    assert keys_of(table, kinds[0]) == at_first


def test_log_files_of_a_partition_that_is_gone_stop_a_commit(table: FakeTable) -> None:
    before = table.metadata_timeline
    stat = WriteStat(file_id="record-index-0000-0", path="record_index/x", partition_path="record_index")
    changes = MetadataChanges(written_logs=(stat,))
    with pytest.raises(CommitConflictError, match="no partition record_index"):
        table.change(table.metadata_table(), changes)
    assert table.metadata_timeline == before


def test_a_partition_that_is_added_again_begins_anew(table: FakeTable) -> None:
    ours = MetadataTable(table.store, table.config, kinds=REGISTRY)
    kind = LOG
    table.store.create(f"{partition_folder(kind.name)}/leftover", datetime.now(UTC).isoformat().encode())
    for _ in range(2):
        ours.add_partitions((kind,), table.locked)
    names = [info.name for info in table.store.list(partition_folder(kind.name))]
    assert "leftover" not in names
    assert len([name for name in names if name.startswith(".name-index-")]) == 2
