"""Is the record index the data? Everything of both is read and compared: slow, and independent of the look-up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from hoodie.files.merged_slice import read_file_slice
from hoodie.format.filenames import LogFileName
from hoodie.format.hashes.java_hash import file_group_index
from hoodie.format.metadata_table.metadata_record import metadata_schema
from hoodie.format.metadata_table.record_location import LocationColumn
from hoodie.index.record.file_groups import RecordIndexState, read_file_group
from hoodie.index.record.state import partitioned_index, record_index
from hoodie.metadata.folder import MetadataFolder
from hoodie.metadata.kinds.record_index import RecordIndexKind
from hoodie.storage import Store
from hoodie.view.slices import list_slices
from hoodie.view.table_view import TableView

Locations = dict[str, tuple[str, str]]
"""Record key -> partition path and file id."""


def indexed(store: Store, state: RecordIndexState) -> Locations:
    """Every entry of the index; each in the bucket of its key, and in no other."""
    found: Locations = {}
    for bucket in state.file_groups:
        keys, values = RecordIndexKind().compact(read_file_group(store, bucket), file_name="")
        assert (file_group_index(keys, len(state.file_groups)) == bucket.number).all()
        column = LocationColumn.parse(values, schema_json=metadata_schema(), path=bucket.file_slice.file_id)
        for key, code in zip(keys.to_pylist(), column.codes.tolist(), strict=True):
            assert key not in found
            location = column.locations[code]
            found[key] = (location.partition_path, location.file_id)
    return found


def stored(view: TableView, partition_path: str | None = None) -> Locations:
    """Where the data files hold each key; a key that two rows have lies where the index may find either."""
    found: Locations = {}
    read = replace(view.slice_read(), columns=("_hoodie_record_key",))
    for file_slice in list_slices(view, None if partition_path is None else [partition_path]):
        for rows in read_file_slice(view.store, file_slice, read):
            here = (file_slice.partition_path, file_slice.file_id)
            found |= dict.fromkeys(rows["_hoodie_record_key"].to_pylist(), here)
    return found


def check_index(view: TableView) -> None:
    """The index holds every key of the data where it lies, and no other; no log file of a dead writer is left."""
    partitioned = partitioned_index(view)
    state = record_index(view)
    assert (state is None) != (partitioned is None), "the table has no record index"
    if state is not None:
        assert _differences(indexed(view.store, state), stored(view)) == {}
    for path, own in (partitioned or {}).items():
        assert _differences(indexed(view.store, own), stored(view, path)) == {}
    if partitioned is not None:
        assert {found.partition_path for found in list_slices(view)} <= partitioned.keys()
    timeline = MetadataFolder(view.store, view.config).timeline()
    logs = [info.name for info in view.store.list(".hoodie/metadata/record_index") if LogFileName.parse(info.name)]
    # A table service whose process died is executed again, and writes its files anew.
    pending = {found.requested_time for found in view.timeline.pending()}
    orphans = [name for name in logs if not timeline.contains_or_before_start(_instant_of(name))]
    orphans = [name for name in orphans if _instant_of(name) not in pending]
    assert orphans == [], f"log files of instants that did not complete: {orphans}"


def _instant_of(name: str) -> str:
    parsed = LogFileName.parse(name)
    assert parsed is not None
    return parsed.instant_time


def _differences(some: Mapping[str, object], others: Mapping[str, object]) -> dict[str, tuple[object, object]]:
    keys = some.keys() | others.keys()
    return {key: (some.get(key), others.get(key)) for key in sorted(keys) if some.get(key) != others.get(key)}
