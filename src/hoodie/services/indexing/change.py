"""Switch a table to another index: check that uniqueness survives, then change the table's properties under the lock.

docs/decisions/0017-index-switches.md has the proofs. The check reads the data without the lock. Under the lock
the properties change only if no write completed since the view that was checked. Writes that began under the old index
and could break the new one cannot commit (`index.selection`).
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Final

from hoodie.commit.call import Call
from hoodie.config import indexes, writes
from hoodie.errors import CommitConflictError, InvalidConfigError, UnsupportedError
from hoodie.files.table_properties import update_table_config
from hoodie.format.metadata_table.partition_names import RECORD_INDEX
from hoodie.format.table.call_options import effective_options
from hoodie.format.table.merge_config import MergeMode
from hoodie.format.table.table_config import TableConfig, TableType
from hoodie.index import (
    HBASE,
    PARTITIONED_RECORD,
    RECORD,
    IndexKind,
    breaks_new_index,
    check_index_options,
    index_kind,
    index_of_view,
    partition_follows_columns,
)
from hoodie.index.bucket import NEW_TABLE_BUCKETS, WRITE_KEY_FIELDS, bucket_rule
from hoodie.index.record.file_groups import list_index_files
from hoodie.metadata.kinds.record_index import is_partitioned_record_index
from hoodie.metadata.table import MetadataTable
from hoodie.progress import PhaseTimes
from hoodie.results import ServiceResult
from hoodie.services.indexing.hbase import properties_to_remove
from hoodie.services.indexing.key_check import (
    check_buckets,
    check_one_partition_each,
    check_one_row_each,
    check_partitions_of_columns,
)
from hoodie.services.indexing.life import dead_builds, end_dead_builds, foreign_write, locked_without_dead_writes
from hoodie.services.indexing.record_builds import build_record_index, check_buildable
from hoodie.services.indexing.switch import differing, index_properties, off_properties
from hoodie.timeline import Action
from hoodie.view.table_view import TableView

OPERATION: Final = "switch index"
_ROUNDS_MAX = 3
"""Checks of the data in one call: each commit of another writer meanwhile requires one more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchWish:
    """The index that a table is to have.

    `buckets` and `hash_field` are for the bucket index. `key_keeps_partition`: the caller asserts that no later row
    gives a stored key another partition.
    """

    name: str
    buckets: int | None = None
    hash_field: str | None = None
    key_keeps_partition: bool = False
    dry_run: bool = False


def switch_index(call: Call, wish: SwitchWish) -> ServiceResult:
    """Switch the table to another index. Safe to repeat after a crash.

    Raises:
        RecordKeyError: the new index needs a key in one partition, and some are in several.
        UnsupportedError: the guarantee of the new index is not proved; file groups that do not obey the buckets; a
            table or an index that this release cannot switch.
        InvalidConfigError: an unknown index; arguments that the index does not have.
        CommitConflictError: other writers committed during each check; a write of another engine does not end.
    """
    times = PhaseTimes()
    target = index_kind(wish.name)
    view = call.load()
    current = index_of_view(view)
    _check_switchable(view, target, wish)
    if wish.dry_run:
        _check_begin(view, wish, target)
    notes: tuple[str, ...] = ()
    if target is RECORD and current is not RECORD and not wish.dry_run:
        with times.phase("build"):
            notes = build_record_index(call).notes
    rows = _switch(call, wish, target, times)
    verb = "can be" if wish.dry_run else "is"
    same = f"the index was {target.name!r} already" if current is target else None
    return ServiceResult(
        operation=OPERATION,
        counts={} if rows is None else {"rows_checked": rows},
        seconds=times.seconds(),
        dry_run=wish.dry_run,
        notes=(*notes, same or f"the index {verb} {target.name!r} now; it was {current.name!r}"),
    )


def _switch(call: Call, wish: SwitchWish, target: IndexKind, times: PhaseTimes) -> int | None:
    """Check the data and store the index, again if other writers committed meanwhile; return the rows checked."""
    deadline = time.monotonic() + call.wait.seconds
    rounds = 0
    while True:
        view = TableView.load(call.state)
        with times.phase("check"):
            rows = _checked_rows(call, view, wish, target)
        if wish.dry_run:
            return rows
        rounds += 1
        while True:
            with times.phase("switch"), locked_without_dead_writes(call.state, finishes_update=True) as now:
                if rows is not None and now.completed_writes() != view.completed_writes():
                    break
                changes = _changes(now, wish, target)
                breaks = breaks_new_index(now.config, now.config.with_changes(**changes))
                waits_for = foreign_write(now) if breaks else None
                if waits_for is None:
                    _store(now, changes)
                    return rows
            if time.monotonic() >= deadline:
                raise CommitConflictError(
                    f"{waits_for} of another engine did not end within {call.wait.seconds:.0f} s, and does not know of "
                    "the new index: switch again after it ends"
                )
            call.wait.sleep(call.wait.retry_seconds)
        if rounds >= _ROUNDS_MAX:
            raise CommitConflictError(
                f"other writers committed to {call.state.store.uri('')} during each of {rounds} checks of the data; "
                "the index was not switched: try again while no writer runs"
            )


def _store(now: TableView, changes: dict[str, str | None]) -> None:
    """Change the properties, and delete the files of a record index that the table does not name any more."""
    if differing(now.config, changes):
        end_dead_builds(now, of_records=True)
        update_table_config(now.store, changes)
    now = now.refreshed()
    if RECORD_INDEX not in now.config.metadata_partitions and list_index_files(now.store):
        now.held_lock.ensure_held()
        MetadataTable(now.store, now.config).drop_partitions({RECORD_INDEX})


def _check_switchable(view: TableView, target: IndexKind, wish: SwitchWish) -> None:
    """Refuse tables and indexes that cannot be switched, and arguments of another index."""
    config, where = view.config, view.store.uri("")
    if target.update is not None and index_of_view(view) is not target:
        raise UnsupportedError(
            f"index={target.name!r} is filled before the table is switched to it: call "
            f"t.index.build({target.name!r}, properties={{…}}), which does both"
        )
    if (wish.buckets is not None or wish.hash_field is not None) and not target.places_rows:
        raise InvalidConfigError(f"buckets and hash_field are arguments of index='bucket', not of {target.name!r}")
    if wish.buckets is not None and wish.buckets < 1:
        raise InvalidConfigError(f"buckets={wish.buckets}: a number above 0 expected")
    needed = target.metadata_partition
    if needed is not None and target is not RECORD and not target.exists_in(view):
        raise UnsupportedError(
            f"index={target.name!r}: {where} has no metadata partition for it, and this release cannot build it for a "
            "table; choose it when the table is created"
        )
    is_custom = config.merge_rule.mode is MergeMode.CUSTOM
    if needed is not None and is_custom and config.table_type is TableType.MERGE_ON_READ:
        raise UnsupportedError(
            f"index={target.name!r} with a Python merger on a merge-on-read table: use 'simple' or 'global_simple'"
        )
    if target.places_rows and index_of_view(view) is target:
        check_index_options(config, _bucket_options(view, wish))
    if target.places_rows and any(found.action is Action.CLUSTERING for found in view.timeline.pending()):
        raise UnsupportedError(
            f"{where} has a pending clustering, which would move rows out of their buckets: roll it back or execute it"
        )


def _check_begin(view: TableView, wish: SwitchWish, target: IndexKind) -> None:
    """Raise in a dry run the errors with which the build or the change of the properties would begin."""
    builds = target is RECORD and index_of_view(view) is not RECORD
    if builds:
        check_buildable(view)
    if builds or differing(view.config, _changes(view, wish, target)):
        dead_builds(view, of_records=True)


def _checked_rows(call: Call, view: TableView, wish: SwitchWish, target: IndexKind) -> int | None:
    """Prove from the data what the new index relies on; return the rows that were read, None if nothing is to prove."""
    current = index_of_view(view)
    rows: list[int] = []
    if wish.dry_run and target is RECORD and not RECORD.needs_one_of(view.config.metadata_partitions):
        rows.append(check_one_row_each(view, call.engine_for))  # the build checks it otherwise
    elif view.config.partition_fields:
        if target.is_global and not current.is_global:
            rows.append(check_one_partition_each(view, call.engine_for))
        if current.is_global and not target.is_global:
            _refuse_unless_fixed(view, wish, target)
            rows.append(check_partitions_of_columns(view, call.engine_for))
    if target.places_rows:
        rule = bucket_rule(view, effective_options(view.config, _bucket_options(view, wish)))
        rows.append(check_buckets(view, call.engine_for, rule))
    return max(rows, default=None)


def _refuse_unless_fixed(view: TableView, wish: SwitchWish, target: IndexKind) -> None:
    """Refuse an index of single partitions unless a key determines its partition, or the caller asserts it."""
    config = view.config
    free = [name for name in config.partition_fields if name not in config.record_key_fields]
    if free and not wish.key_keeps_partition:
        raise UnsupportedError(
            f"the index {target.name!r} keeps keys unique in each partition only, and {view.store.uri('')} has each "
            f"key once: a later row with another value of {', '.join(free)} would store its key a second time, which "
            "no check of the stored rows can exclude. It is safe if the partition columns are part of the record key; "
            "if you know that the partition of a key never changes, pass key_keeps_partition=True"
        )


def _bucket_options(view: TableView, wish: SwitchWish) -> dict[str, str]:
    """Return the options of the buckets that the caller gave, and the default number of an empty table."""
    given: dict[str, str] = {}
    if wish.buckets is not None:
        given[indexes.BUCKET_COUNT.key] = str(wish.buckets)
    elif indexes.BUCKET_COUNT.key not in view.config.raw:
        if view.completed_writes():
            raise InvalidConfigError(
                "buckets is missing: pass the number of buckets (hoodie.bucket.index.num.buckets) of the writers that "
                "made the table; its files do not contain it"
            )
        given[indexes.BUCKET_COUNT.key] = str(NEW_TABLE_BUCKETS)
    if wish.hash_field is not None:
        given[indexes.BUCKET_FIELDS.key] = wish.hash_field
    return given


def _changes(now: TableView, wish: SwitchWish, target: IndexKind) -> dict[str, str | None]:
    """Return the properties to change: those of the new index, and None for those of the old index."""
    config, current = now.config, index_of_view(now)
    if current is target:
        # A table of an earlier release lacks the option.
        return {WRITE_KEY_FIELDS: ",".join(config.record_key_fields)} if target.places_rows else {}
    changes: dict[str, str | None] = {option.key: None for option in current.own_options}
    if current is HBASE:
        changes |= properties_to_remove(config.raw)
    if current.moves_option is not None:
        changes[current.moves_option.key] = None
    if target not in (RECORD, PARTITIONED_RECORD) and _has_record_index(config):
        changes |= off_properties(config, is_partitioned=is_partitioned_record_index(now.store))
        changes |= {writes.UPDATE_PARTITION_PATH.key: None, indexes.RECORD_UPDATE_PARTITION_PATH.key: None}
    changes[indexes.INDEX_TYPE_KEY] = None
    given = _bucket_options(now, wish) if target.places_rows else {}
    moves = partition_follows_columns(config) and config.merge_rule.mode is not MergeMode.CUSTOM
    if target is RECORD:
        changes |= index_properties(config)
    changes |= target.stored_properties(effective_options(config, given), record_key=config.record_key_fields)
    if current.places_rows:
        changes[indexes.INDEX_TYPE_KEY] = target.types[0]  # its file groups still look like buckets
    option = target.moves_option
    if option is not None:
        changes[option.key] = str(moves).lower() if target.stores_moves or moves != option.default else None
    follows = bool(config.partition_fields) and partition_follows_columns(config.with_changes(**changes))
    # The check of a switch reads the newest rows; those of earlier states may be elsewhere.
    time = now.clock.next_time(now.timeline)
    if target.places_rows or current.places_rows:
        changes[indexes.BUCKETS_SINCE.key] = time if target.places_rows else None
    if follows and not partition_follows_columns(config):
        changes[indexes.COLUMNS_SINCE.key] = time
    return changes


def _has_record_index(config: TableConfig) -> bool:
    switches = {switch.key for kind in (RECORD, PARTITIONED_RECORD) for switch in kind.switches}
    named = {*config.metadata_partitions, *config.metadata_partitions_inflight}
    return RECORD_INDEX in named or bool(switches & config.raw.keys())
