"""Procedures that expire, archive, drop, truncate and tidy, and that mend what dead processes left.

`t.repair()` mends more than partition files and plans of cleans.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from hoodie.commit.pending import delete_pending_files
from hoodie.config import retention
from hoodie.errors import CommitConflictError, CorruptFileError, InvalidConfigError
from hoodie.files.markers import delete_markers
from hoodie.files.partition_folder import ensure_partition_metadata
from hoodie.format.filenames import PARTITION_METADATA_NAME
from hoodie.format.instants.service_metadata import CleanerPlan
from hoodie.statements.procedures.procedure import OPTIONS, TABLE, Call, Row, optional, procedure, required, unsupported
from hoodie.timeline import Action, Instant, State, is_live, read_instant
from hoodie.view.listing import list_files
from hoodie.view.table_view import TableView

_VERSIONS: Final = ("ZERO", "ONE", "TWO", "THREE", "FOUR", "FIVE", "SIX", "SEVEN", "EIGHT", "NINE")


@procedure(
    parameters=(required("table"), optional("ttl_policy"), optional("retain_days", kind=int), OPTIONS),
    columns="deleted_partitions string",
)
def run_ttl(call: Call) -> Iterable[Row]:
    """Delete the partitions whose time to live is over."""
    options = call.options(ttl_policy=retention.TTL_STRATEGY.key, retain_days=retention.TTL_DAYS.key)
    result = call.table.expire_partitions(properties=options)
    return ({"deleted_partitions": path} for path in sorted(result.partitions))


@procedure(
    parameters=(
        *TABLE,
        optional("min_commits", 20),
        optional("max_commits", 30),
        optional("retain_commits", 10),
        unsupported("enable_metadata", bool, True),
    ),
    columns="result integer",
)
def archive_commits(call: Call) -> Iterable[Row]:
    """Move the oldest instants of the timeline to its archive."""
    options = call.options(
        min_commits=retention.KEEP_COMMITS_MIN.key,
        max_commits=retention.KEEP_COMMITS_MAX.key,
        retain_commits=retention.CLEAN_COMMITS_RETAINED.key,
    )
    call.table.archive(properties=options)
    return [{"result": 0}]


@procedure(parameters=(required("table"), required("partition")), columns="result string")
def drop_partition(call: Call) -> Iterable[Row]:
    """Delete partitions, named by their paths with commas between them."""
    _delete(call, call.names_in("partition"))
    return [{"result": "Success"}]


def _delete(call: Call, partitions: Sequence[str]) -> None:
    """Delete partitions; those that the table does not have are left out, as in JVM Hudi."""
    table = call.table
    listing = list_files(table.view())
    found = [path for path in partitions if path in listing]
    if found:
        table.delete_partitions(found, properties=call.options())


@procedure(parameters=(required("table"), optional("partitions")), columns="result string, time_cost long")
def truncate_table(call: Call) -> Iterable[Row]:
    """Delete all rows, or those of partitions, named by their paths with commas between them."""
    table = call.table
    if call["partitions"]:
        _delete(call, call.names_in("partitions"))
    else:
        table.insert_overwrite_table(table.schema.empty_table(), properties=call.options())
    return []  # as in Hudi


@procedure(parameters=(required("table"), required("instant_time")), columns="delete_marker_result boolean")
def delete_marker(call: Call) -> Iterable[Row]:
    """Delete the marker files of a write that has ended."""
    view, wanted = call.table.view(), call["instant_time"]
    if is_live(view.store, wanted):
        raise CommitConflictError(f"CALL delete_marker: the writer of {wanted} is running: its rollback needs them")
    delete_markers(view.store, wanted)
    return [{"delete_marker_result": True}]


@procedure(parameters=(required("table"), required("to_version")), columns="result boolean")
def upgrade_table(call: Call) -> Iterable[Row]:
    """Move the table to another version, SIX, EIGHT or NINE."""
    table, wanted = call.table, call["to_version"].upper()
    if wanted not in _VERSIONS:
        raise InvalidConfigError(f"CALL: to_version => {call['to_version']!r}: expected one of {', '.join(_VERSIONS)}")
    to, found = _VERSIONS.index(wanted), table.view().config.version.value
    if to != found:
        (table.upgrade if to > found else table.downgrade)(to, dry_run=False, properties=call.options())
    return [{"result": True}]


@procedure(parameters=upgrade_table.parameters, columns="result boolean")
def downgrade_table(call: Call) -> Iterable[Row]:
    """Move the table to another version, SIX, EIGHT or NINE."""
    return upgrade_table.run(call)


@procedure(
    parameters=(required("table"), optional("dry_run", True)),
    columns="partition_path string, metadata_is_present string, action string",
)
def repair_add_partition_meta(call: Call) -> Iterable[Row]:
    """Write the file that marks a partition where it misses; by default only list these partitions."""
    view = call.table.view()
    newest = view.timeline.writes().completed().latest()
    for path in sorted(list_files(view)):
        names = view.store.names(path)
        is_there = any(name.partition(".parquet")[0] == PARTITION_METADATA_NAME for name in names)
        repairs = not is_there and not call["dry_run"] and newest is not None
        if repairs and newest is not None:
            ensure_partition_metadata(view.store, path, newest.requested_time)
        yield {
            "partition_path": path,
            "metadata_is_present": "Yes" if is_there else "No",
            "action": "Repaired" if repairs else "None",
        }


@procedure(parameters=(required("table"),), columns="result boolean")
def repair_corrupted_clean_files(call: Call) -> Iterable[Row]:
    """Delete pending cleans whose plan is empty or damaged."""
    state = call.table.view().state
    with TableView.locked(state) as view:
        for clean in view.timeline.pending():
            # Without a plan a clean has deleted no file.
            if clean.action is Action.CLEAN and not _is_planned(view, clean):
                delete_pending_files(view, clean.requested_time, clean.action)
    return [{"result": True}]


def _is_planned(view: TableView, clean: Instant) -> bool:
    content = read_instant(view.store, view.layout, clean, State.REQUESTED)
    try:
        return bool(content) and CleanerPlan.parse(content, path=str(clean)) is not None
    except CorruptFileError:
        return False
