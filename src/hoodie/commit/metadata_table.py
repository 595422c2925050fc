"""What a commit changes in the metadata table, the partitions that it adds to it, and the properties that name them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress

from hoodie.engine import EngineFor
from hoodie.errors import CommitConflictError, CorruptFileError, MetadataTableMissingError
from hoodie.files.table_properties import update_table_config
from hoodie.format.filenames import LogFileName, name_of
from hoodie.format.instants.commit_metadata import CommitMetadata, WriteOperation, WriteStat
from hoodie.format.instants.service_metadata import RollbackMetadata
from hoodie.format.instants.write_stat import by_partition
from hoodie.format.metadata_table.partition_names import RECORD_INDEX
from hoodie.format.table import table_keys as keys
from hoodie.format.table.table_config import TableConfig
from hoodie.index import PARTITIONED_RECORD, RECORD, stored_index, wants_record_index
from hoodie.index.record.file_groups import list_index_files
from hoodie.index.selection import partitions_to_add
from hoodie.metadata.changes import MetadataChanges
from hoodie.metadata.folder import MetadataFolder
from hoodie.metadata.instants import visible_instants
from hoodie.metadata.kinds.record_index import is_partitioned_record_index
from hoodie.metadata.kinds.registry import KINDS, Collect
from hoodie.metadata.paths import INDEX_DEFINITIONS
from hoodie.metadata.slices import slices_of
from hoodie.metadata.table import MetadataTable
from hoodie.storage import forget_answers
from hoodie.timeline import Action, read_instant
from hoodie.view.ahead import ask_for_partitions
from hoodie.view.slices import data_table, list_slices
from hoodie.view.table_view import TableView


def commit_metadata(
    stats: Iterable[WriteStat],
    operation: WriteOperation,
    extra_metadata: Mapping[str, str],
    replaced: Mapping[str, Sequence[str]] | None = None,
    *,
    compacted: bool = False,
) -> CommitMetadata:
    """Return the commit metadata of a write; `replaced` are the file ids that it replaces, by partition path."""
    return CommitMetadata(
        partition_to_write_stats=by_partition(stats),
        compacted=compacted,
        operation_type=operation.value,
        extra_metadata=extra_metadata,
        partition_to_replace_file_ids=(
            None if replaced is None else {path: tuple(file_ids) for path, file_ids in replaced.items()}
        ),
    )


def commit_to_metadata_table(
    now: TableView,
    instant_time: str,
    metadata: CommitMetadata,
    written_logs: Sequence[WriteStat],
    engine_for: EngineFor,
    collect: Collect,
) -> None:
    """Write the delta commit of the metadata table, before the write itself completes. Call it under the table's lock.

    `now` was loaded under that lock. `written_logs` are the log files of metadata partitions that tasks have written.
    `collect` reads what the metadata partitions need and what was not read before (`kinds.registry.collected`).

    Raises: as `MetadataTable.commit`.
    """
    table = data_table(now, engine_for)
    changes = MetadataChanges(files_added=_sizes(metadata), written_logs=tuple(written_logs), collected=collect(table))
    with now.state.lock:
        open_metadata_table(now).commit(instant_time, changes, table)


def open_metadata_table(now: TableView) -> MetadataTable:
    """Return the metadata table's object; all views of the table share one object.

    Raises: CommitConflictError if another process removed the metadata table.
    """
    table = now.state.metadata_table or MetadataTable.open(now.store, now.config)
    if table is None:
        raise CommitConflictError(
            f"the metadata table of {now.store.uri('')} was removed while this write ran; nothing was "
            "committed, try again"
        )
    now.state.metadata_table = table
    return table


def _sizes(metadata: CommitMetadata) -> dict[str, dict[str, int]]:
    """Return the size in bytes of each written file, CDC log files too, by partition path and file name."""
    added: dict[str, dict[str, int]] = {}
    for stat in metadata.write_stats():
        sizes = added.setdefault(stat.partition_path or "", {})
        for path, size_bytes in stat.sizes.items():
            sizes[name_of(path)] = size_bytes
    return added


def ensure_metadata_partitions(
    view: TableView, properties: Mapping[str, str] | None = None, reads: Collection[str] = ()
) -> TableView:
    """Add missing metadata partitions and drop unmaintained ones; call it under the table's lock, before a write.

    `properties` are the options of the call, which can ask for column statistics with the first write of a table.
    `reads` as for `begin_write`.

    This release drops the metadata partitions of other writers that it does not maintain: readers that used an outdated
    partition would miss rows. The next JVM writer builds them again. Returns the view after these changes.
    """
    config = view.config
    kept = KINDS.maintained(config.metadata_partitions) if config.has_metadata_table else {}
    table = data_table(view)
    outdated = KINDS.outdated(table)
    if outdated:
        view.state.warn(_dropped_note(view, outdated))
    kept = {name: kind for name, kind in kept.items() if name not in outdated}
    added = {kind.name: kind for kind in (*partitions_to_add(view), *KINDS.wanted(table, properties or {}))}
    wanted = {kind.name for kind in KINDS.required} | kept.keys() | added.keys()
    if wanted == set(config.metadata_partitions) and not config.metadata_partitions_inflight:
        return view
    if config.has_metadata_table:
        metadata_table = MetadataTable(view.store, config)
        metadata_table.add_partitions(tuple(added.values()), table)
    else:
        metadata_table = MetadataTable.create(table, tuple(added.values()))
    changed = _name_partitions(view, wanted, has_completed=bool(added) or not config.has_metadata_table)
    gone = {*config.metadata_partitions, *config.metadata_partitions_inflight} - wanted
    if foreign := gone.intersection(config.metadata_partitions).difference(outdated):
        view.state.warn(
            f"the metadata partitions {', '.join(sorted(foreign))} were dropped: this release does not maintain them, "
            "and readers would miss rows by them; JVM Hudi builds them again, if its options ask for them"
        )
    if gone:
        metadata_table.drop_partitions(gone)
    view.state.metadata_table = None
    forget_answers()
    now = view.with_stored(changed)
    ask_for_partitions(now, reads)
    return now


def _dropped_note(view: TableView, outdated: Collection[str]) -> str:
    dropped = f"the metadata partitions {', '.join(sorted(outdated))} were dropped: "
    version = view.config.version
    if not all(kind.is_written_in(version) for kind in KINDS.named if kind.name in outdated):
        return (
            f"{dropped}this release does not write them in tables of version {version.value}, and readers would miss "
            "rows by them; JVM Hudi builds them again, if its options ask for them"
        )
    return (
        f"{dropped}this release cannot keep them up to date, or they lack rows that a rollback brought back; build "
        'them again with t.index.build("column_stats")'
    )


def ensure_metadata_table(view: TableView) -> TableView:
    """Create the metadata table, with the partitions that are always required, if the data table has none.

    It is created too if the properties name it and it is missing. Call it under the table's lock. Returns the view
    after this change.
    """
    if view.config.has_metadata_table:
        try:
            MetadataFolder(view.store, view.config).existing_timeline()
        except MetadataTableMissingError:
            return build_metadata_table_anew(view)
        return view
    MetadataTable.create(data_table(view))
    _name_partitions(view, {kind.name for kind in KINDS.required}, has_completed=True)
    return _reloaded(view)


def build_metadata_table_anew(view: TableView) -> TableView:
    """Delete the metadata table and create it with the required partitions; call it under the table's lock.

    Nothing is lost: the metadata table is derived from the data table. From the first step on readers list the storage,
    even if the process dies; then the next write creates the metadata table. A record index is not built here. The
    properties that ask for it are stored, so that the next write, or an index build, builds it.
    """
    return ensure_metadata_table(drop_metadata_table(view))


def lost_partitions(view: TableView) -> frozenset[str]:
    """Return the metadata partitions that are named and hold no file group of a completed instant.

    A partition of that kind has lost all rows of earlier writes. The partition `files` is not among them: without file
    groups it is damage. A partitioned record index has no file group before the first rows: it is lost if the table has
    rows. Costs one listing of the metadata timeline, and one of each partition's folder; for a partitioned record index
    without a file group, also the listing of the table.

    Raises: MetadataTableMissingError.
    """
    kinds = KINDS.maintained(view.config.metadata_partitions) if view.config.has_metadata_table else {}
    required = {kind.name for kind in KINDS.required}
    found = [kind for kind in kinds.values() if kind.name not in required]
    if not found:
        return frozenset()
    timeline = visible_instants(MetadataFolder(view.store, view.config).existing_timeline(), view.whole_timeline())
    lost = {kind.name for kind in found if not slices_of(view.store, kind, timeline, version=view.config.version)}
    if RECORD_INDEX in lost and not _has_global_index(view) and not list_slices(view):
        lost.remove(RECORD_INDEX)
    return frozenset(lost)


def drop_lost_partitions(view: TableView) -> tuple[TableView, tuple[str, ...]]:
    """Drop the metadata partitions that `lost_partitions` finds, and those that follow one of them.

    Call it under the table's lock. Properties that ask for a record index stay, or are stored, so that the next write
    builds the index again. Returns the view after this change, and notes.
    """
    lost = KINDS.with_followers(lost_partitions(view)) & {*view.config.metadata_partitions}
    if not lost:
        return view, ()
    drop_partitions(view, lost, _index_switches(view) if RECORD_INDEX in lost else {})
    notes = tuple(f"the metadata partition {name} held no file group and was dropped" for name in sorted(lost))
    return _reloaded(view), notes


def without_partitions(view: TableView, names: Collection[str]) -> dict[str, str | None]:
    """Return the property that names the table's metadata partitions, without these."""
    return {keys.METADATA_PARTITIONS: ",".join(sorted({*view.config.metadata_partitions} - {*names}))}


def drop_partitions(view: TableView, names: Collection[str], changes: Mapping[str, str] | None = None) -> None:
    """Drop metadata partitions: from the properties first, which readers go by, then their files and definitions.

    `changes`: further properties to change in the same step. Call it under the table's lock.
    """
    update_table_config(view.store, {**(changes or {}), **without_partitions(view, names)})
    view.held_lock.ensure_held()
    MetadataTable(view.store, view.config).drop_partitions(names)


def drop_metadata_table(view: TableView) -> TableView:
    """Delete the metadata table; properties that ask for its indexes stay, or are stored if the table had them.

    Call it under the table's lock. Returns the view after this change.
    """
    changes: dict[str, str | None] = {keys.METADATA_PARTITIONS: "", keys.METADATA_PARTITIONS_INFLIGHT: ""}
    if RECORD_INDEX in view.config.metadata_partitions:
        changes |= _index_switches(view)
    for kind in KINDS.built:
        if kind.switch is not None and kind.name in view.config.metadata_partitions:
            changes[kind.switch.key] = "true"
    update_table_config(view.store, changes)
    named = {*view.config.metadata_partitions, *view.config.metadata_partitions_inflight}
    view.held_lock.ensure_held()
    MetadataTable(view.store, view.config).drop_partitions({*named, *(kind.name for kind in KINDS.required)})
    return _reloaded(view)


def _index_switches(view: TableView) -> dict[str, str]:
    """Return the properties that ask for the table's record index, if it covers the table and they are not stored."""
    if wants_record_index(view.config) or not _has_global_index(view):
        return {}
    return dict.fromkeys((switch.key for switch in RECORD.switches), "true")


def _has_global_index(view: TableView) -> bool:
    return stored_index(view.config) is not PARTITIONED_RECORD and not is_partitioned_record_index(view.store)


def _name_partitions(view: TableView, names: AbstractSet[str], *, has_completed: bool) -> TableConfig:
    """Store the names of the metadata partitions that readers may use; return the properties.

    `has_completed`: an instant of the metadata table was completed under the lock since the view was loaded.
    """
    changes: dict[str, str | None] = {
        keys.METADATA_PARTITIONS: ",".join(sorted(names)),
        keys.METADATA_PARTITIONS_INFLIGHT: "",
    }
    is_defined = any(kind.readers_need_definition for kind in KINDS.maintained(names).values())
    if is_defined and view.config.index_definitions_path is None:
        changes[keys.INDEX_DEFINITIONS_PATH] = INDEX_DEFINITIONS
    return update_table_config(view.store, changes, view.config if has_completed else None)


def _reloaded(view: TableView) -> TableView:
    view.state.metadata_table = None
    return view.refreshed()


def remove_unknown_index_logs(view: TableView) -> None:
    """Delete log files of the record index whose write another engine rolled back before its delta commit began.

    JVM Hudi does not know of them. They would count as committed once the metadata table's timeline starts later. They
    are looked for once after each rollback. In version 6 their names have other instants.
    """
    rollbacks = (found for found in view.timeline.completed() if found.action is Action.ROLLBACK)
    new = [found for found in rollbacks if found.requested_time not in view.state.rollbacks_seen]
    if not new or RECORD_INDEX not in view.config.metadata_partitions:
        return
    if not view.config.version.log_name_has_base_instant:
        gone: set[str] = set()
        for rollback in new:
            with suppress(CorruptFileError):  # `t.verify` names it
                content = read_instant(view.store, view.layout, rollback)
                gone.update(RollbackMetadata.parse(content, path=str(rollback)).commits_rollback)
        known = MetadataFolder(view.store, view.config).timeline()
        for path in list_index_files(view.store):
            log = LogFileName.parse(name_of(path))
            if log is not None and log.instant_time in gone and known.get(log.instant_time) is None:
                view.held_lock.ensure_held()
                view.store.delete(path)
    view.state.rollbacks_seen |= {found.requested_time for found in new}


def take_back_metadata(view: TableView, instant_time: str) -> None:
    """Delete what attempts at a pending plan wrote to the metadata table. Call it under the table's lock.

    An attempt writes the log files of the record index before its delta commit, and they would count when a later
    attempt completes. Costs a listing of the metadata table.
    """
    metadata_table = MetadataTable.open(view.store, view.config)
    if metadata_table is not None:
        metadata_table.take_back(instant_time)
        metadata_table.discard(instant_time)
