"""Check whether a write can still be committed after other writers committed while it ran.

Implements docs/format/table.md §10.4 and docs/operations/concurrency.md. It is stricter than the JVM, which allows two
writers to insert the same new key. Each check raises CommitConflictError.

`refuse_marked` detects conflicts before a write writes its files, by the markers of other running writes: a write that
gives up early has wasted no work on files. Two writes that look before either has written a marker find nothing; the
check at the commit finds them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from hoodie.commit.pending import executor_text, inflight_content
from hoodie.config.writes import INSERT_DUP_POLICY
from hoodie.errors import CommitConflictError, InvalidConfigError, MissingFileError
from hoodie.files.markers import TEMP_FOLDER, read_markers
from hoodie.format.filenames import LogFileName, bucket_of_file_id, name_of, parse_data_file
from hoodie.format.instants.commit_metadata import CommitMetadata, WriteOperation
from hoodie.index import breaks_new_index
from hoodie.index.api import IndexUpdate
from hoodie.timeline import Action, Instant, State, is_live
from hoodie.timeline.owner import Owner
from hoodie.view.columns import visible_schemas
from hoodie.view.history import may_delete_before
from hoodie.view.pending_plans import FileGroup, compactions_by_group, groups_being_clustered
from hoodie.view.table_view import TableView

_KEYS_STAY_UNIQUE = frozenset(
    {
        WriteOperation.UPSERT,
        WriteOperation.UPSERT_PREPPED,
        WriteOperation.INSERT_OVERWRITE,
        WriteOperation.INSERT_OVERWRITE_TABLE,
    }
)
"""Operations that keep keys unique in a partition in which they are unique; see `_inserting_partitions` for inserts."""

_DELETING = frozenset({Action.CLEAN, Action.ROLLBACK, Action.RESTORE})
"""Actions that delete data files."""

_COMPACTIONS = frozenset({WriteOperation.COMPACT, WriteOperation.LOG_COMPACT})
"""Operations that change no record. Log files appended while they run belong to the file slice that they create."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnWrite:
    """The changes of the write that is about to commit.

    `is_global`: keys are unique in the whole table. `appends_meet`: two writes that only append rows to the log files
    of one file group do not conflict. `refuses_clustered`: file groups that a pending clustering will replace must not
    change; else the clustering leaves them out. `is_bucketed`: the bucket in a file id decides which keys the file
    group may have, so that two new file groups of one bucket conflict.
    """

    metadata: CommitMetadata
    index: IndexUpdate
    is_global: bool = False
    appends_meet: bool = False
    refuses_clustered: bool = True
    is_bucketed: bool = False


def conflict(cause: str) -> CommitConflictError:
    """Return the error of a conflict after which the same rows can be written again to the table as it is now."""
    return CommitConflictError(f"{cause}; nothing was committed, try again", retry_cause=cause)


def raise_if_deleted_since(view: TableView, error: MissingFileError) -> None:
    """Raise a conflict if an action that deletes files completed since `view`, whose file is missing.

    A clean deletes the file slices that newer ones replaced, so other writes changed the same file groups.
    """
    since: list[Instant] = []
    with contextlib.suppress(Exception):
        known = {found.requested_time for found in view.timeline.completed()}
        since = [found for found in view.refreshed().timeline.completed() if found.requested_time not in known]
    if any(found.action in _DELETING for found in since):
        raise conflict(
            f"{', '.join(map(str, since[:3]))} completed while this write ran, and a file that it reads was deleted "
            f"({error})"
        ) from error


def refuse_clustered(view: TableView, touched: AbstractSet[FileGroup], clustered: Mapping[FileGroup, Instant]) -> None:
    """Raise CommitConflictError if the write touches file groups that are being clustered.

    A clustering that runs, or ended since `view`, lets a retry succeed. A clustering that is only planned, or whose
    process is dead, may never end; the timeline is loaded again to judge that.
    """
    shared = sorted(touched & clustered.keys())
    if not shared:
        return
    instants = {clustered[group] for group in shared}
    cause = f"file groups {_names(shared)} are being clustered ({', '.join(sorted(map(str, instants)))})"
    now = view.refreshed()
    if all(_may_end(now, instant) for instant in instants):
        raise CommitConflictError(
            f"{cause}; nothing was committed, try again when the clustering is completed", retry_cause=cause
        )
    raise CommitConflictError(
        f"{cause}, and no process executes the plan; nothing was committed. Execute the plan (t.cluster()), or roll it "
        "back (t.rollback(instant)), then write again"
    )


def _may_end(view: TableView, planned: Instant) -> bool:
    """Return whether the clustering ended, or a process may execute it: it has a live heartbeat, or is of a JVM."""
    clustering = view.timeline.get(planned.requested_time, planned.action)
    if clustering is None or clustering.is_completed:
        return True
    if clustering.state is not State.INFLIGHT:
        return False
    content = inflight_content(view, clustering)
    is_foreign = content is not None and Owner.parse(executor_text(content)) is None
    return is_foreign or is_live(view.store, clustering.requested_time)


def check_conflicts(baseline: TableView, now: TableView, own: OwnWrite) -> None:
    """Refuse to commit if a write that completed after `baseline` conflicts with this write.

    `baseline` is the view from which this write was prepared. Two writes conflict:
    - if they changed the same file group (with `appends_meet`: unless both only appended rows to it, and none deletes);
    - if both inserted the same new key into one partition (with a global index: into any partition). Neither write
      finds the key of the other; `own.index` detects common keys;
    - if a location that the other write stored in the record index would override a location of this write.
    A write also conflicts with a change of the table's schema, with a switch of its index, with the rollback of a
    completed write, and with a restore.
    """
    if known_schema(baseline) != known_schema(now):
        raise CommitConflictError(
            f"another writer changed the schema of {now.store.uri('')} while this write ran; nothing was committed, "
            "try again"
        )
    if breaks_new_index(baseline.config, now.config):
        raise CommitConflictError(
            f"the index of {now.store.uri('')} was switched while this write ran; nothing was committed, try again"
        )
    touched = _touched(own.metadata)
    if own.refuses_clustered:
        refuse_clustered(now, touched, groups_being_clustered(now))
    for instant in completed_since(baseline, now):
        _check_against(_Pair(now, own, touched, instant, now.commit_metadata(instant)))
    if now.config.version.log_name_has_base_instant and _appended(own.metadata):
        _refuse_compacted(own, compactions_by_group(now))


def refuse_changed(baseline: TableView, now: TableView, planned: Mapping[FileGroup, bool]) -> None:
    """Refuse a write whose planned file groups another write changed after `baseline`.

    `planned` maps each file group to whether the write only appends to its log files. Raises: CommitConflictError.
    """
    for instant in completed_since(baseline, now):
        theirs = now.commit_metadata(instant)
        is_compaction = theirs.operation_type in _COMPACTIONS
        ours = {group for group, appends in planned.items() if not (appends and is_compaction)}
        shared = sorted(ours & _touched(theirs))
        if shared:
            raise conflict(f"{instant} completed while this write ran and changed the file groups {_names(shared)}")


def completed_since(baseline: TableView, now: TableView) -> list[Instant]:
    """Return the writes that completed since `baseline`.

    Raises: CommitConflictError if a write that `baseline` counts was taken back, or if some of the writes that
        completed since may be archived already, or if a clean deleted files of `baseline`.
    """
    before = {instant.requested_time for instant in baseline.timeline.writes().completed().instants}
    writes = now.completed_writes()
    _refuse_taken_back(baseline, now, before - {instant.requested_time for instant in writes})
    start = now.timeline.start or ""
    unknown = [
        instant.requested_time
        for instant in baseline.timeline.writes().pending().instants
        if instant.requested_time < start and now.timeline.get(instant.requested_time) is None
    ]
    newest = max(before, default=None)
    is_passed = now.has_archived_instants() if newest is None and writes else newest is not None and newest < start
    if is_passed and newest is not None and now.timeline.get(newest) is not None:
        # A savepoint keeps the newest write on the active timeline, also when later ones are archived.
        is_passed = now.archive().newest_time() > newest
    if unknown or is_passed:
        raise conflict(
            f"so many writes of {now.store.uri('')} completed while this write ran that some may be archived, and "
            "cannot be compared with it"
        )
    since = [instant for instant in writes if instant.requested_time not in before]
    if newest is not None:
        _refuse_cleaned(baseline, now, since)
    return since


def _refuse_cleaned(baseline: TableView, now: TableView, since: list[Instant]) -> None:
    """Refuse if a clean since `baseline` may have deleted files that one of the writes `since` superseded.

    Cleaners go by the requested times of writes. A write that was requested long ago and completed after `baseline`
    superseded file slices of its snapshot, which the next clean may delete although this write is pending; a clean that
    keeps file versions does not look at pending writes at all. File groups of `baseline` whose files are gone look like
    file groups that do not exist, so that their keys were not found. A pending clean counts: it may have deleted its
    files.
    """
    if not since:
        return
    first = min(found.requested_time for found in since)
    known = {found.requested_time for found in baseline.timeline.completed().instants}
    for clean in now.timeline:
        if clean.action is Action.CLEAN and clean.requested_time not in known and may_delete_before(now, clean, first):
            raise conflict(
                f"{clean} deleted files that other writes replaced while this write ran, and that this write may need"
            )


def _refuse_taken_back(baseline: TableView, now: TableView, missing: AbstractSet[str]) -> None:
    """Refuse if a completed write of `baseline` was rolled back, or the table restored.

    `missing` are the completed writes of `baseline` that are not on the active timeline any more. Those before its
    start are archived, unless a rollback or a restore completed too. Raises: CommitConflictError.
    """
    known = {found.requested_time for found in baseline.timeline.completed().instants}
    since = [found for found in now.timeline.completed() if found.requested_time not in known]
    restores = [found for found in since if found.action is Action.RESTORE]
    rollbacks = [found for found in since if found.action is Action.ROLLBACK]
    start = now.timeline.start
    gone = sorted(time for time in missing if rollbacks or start is None or time >= start)
    if restores or gone:
        what = f"{restores[0]} changed the table back" if restores else f"the write {gone[0]} was rolled back"
        raise conflict(f"{what} while this write ran")


def refuse_hidden_columns(now: TableView, instant_time: str, schema: str) -> None:
    """Refuse a write of version 6 that changes the schema, if a write began later.

    There commits are ordered by their requested times: the table would have the schema of the later write, without the
    new columns. Table services and deletions of partitions do not set it; a pending replace commit may be any of them.
    """
    if not now.config.version.has_completion_time_in_name and schema != known_schema(now)[0]:
        for instant in _later_writes(now, instant_time):
            sets_no_schema = instant.is_completed and not now.commit_facts(instant).changes_schema
            if not (instant.action.is_planned or sets_no_schema):
                raise conflict(f"{instant} began while the columns changed")


def refuse_later_writes(now: TableView, instant_time: str) -> None:
    """Refuse to change the schema if a write began later: readers would read its files by the new schema."""
    for instant in _later_writes(now, instant_time):
        raise conflict(f"{instant} began while the columns changed")


def _later_writes(now: TableView, instant_time: str) -> list[Instant]:
    return [found for found in now.timeline if found.action.writes_data and found.requested_time > instant_time]


def known_schema(view: TableView) -> tuple[str | None, int]:
    """Return the schema that the newest commit or the table's creation stored, and the version of its columns' ids.

    The schema is None if neither stored one; the version is 0 without ids.
    """
    visible = visible_schemas(view)
    version = visible[-1].version if visible else 0
    try:
        return view.schema().avro, version
    except InvalidConfigError:
        return None, version


@dataclass(frozen=True, slots=True)
class _Pair:
    """The write that is about to commit, the file groups that it changes, and a write that completed before it."""

    now: TableView
    own: OwnWrite
    touched: AbstractSet[FileGroup]
    instant: Instant
    theirs: CommitMetadata

    @property
    def shared(self) -> set[FileGroup]:
        """Return the file groups in which the two writes conflict."""
        appended: set[FileGroup] = set()
        if self.own.appends_meet:
            appended = _plain_appends(self.own.metadata) & _plain_appends(self.theirs)
        ours, theirs = self.touched - appended, _touched(self.theirs) - appended
        if not self.own.is_bucketed:
            return {*ours} & theirs
        buckets = set(map(_bucket, theirs))
        return {group for group in ours if _bucket(group) in buckets}


def _check_against(pair: _Pair) -> None:
    if pair.theirs.operation_type in _COMPACTIONS:
        _check_against_compaction(pair)
        return
    own, instant, shared = pair.own, pair.instant, pair.shared
    our_inserts, their_inserts = _inserting_partitions(own.metadata), _inserting_partitions(pair.theirs)
    partitions = their_inserts if own.is_global and our_inserts else our_inserts & their_inserts
    if own.is_bucketed:
        partitions = set()  # a key that both inserted would be in a bucket of both
    if partitions and not shared and not own.index.shares_keys_with(pair.now, instant):
        return
    if shared or partitions:
        where = _names(shared) if shared else sorted(partitions)[:3]
        raise conflict(
            f"{instant} completed while this write ran and changed the same file groups or inserted into the same "
            f"partitions: {where}"
        )
    if own.index.would_lose_to(pair.now, instant):
        raise conflict(f"{instant} completed while this write ran and may have changed records with the same keys")


def _check_against_compaction(pair: _Pair) -> None:
    """Refuse if this write rewrote a compacted file group.

    Its new base file was made from the base file before the compaction, and would hide the log records that the
    compaction merged. In version 6 a write that appended to the slice before the compaction is refused too.
    """
    stats = pair.own.metadata.write_stats()
    rewritten = {stat.group for stat in stats if not (stat.is_log_append or stat.is_new_file_group)}
    compacted = _touched(pair.theirs)
    shared = rewritten & compacted
    if shared:
        raise conflict(
            f"{pair.instant} compacted file groups {_names(shared)}, which this write rewrote at the same time"
        )
    if pair.now.config.version.log_name_has_base_instant:
        _refuse_compacted(pair.own, dict.fromkeys(compacted, pair.instant.requested_time))


def _refuse_compacted(own: OwnWrite, compacted: Mapping[FileGroup, str]) -> None:
    """Refuse a write of version 6 if a compaction of a file group to which it appended was planned meanwhile.

    Its log file has the name of the file slice before that compaction, whose base file would hide it. `compacted` maps
    file groups to the instants of compactions. Raises: CommitConflictError.
    """
    appended = _appended(own.metadata)
    hidden = {group for group in appended.keys() & compacted.keys() if appended[group] < compacted[group]}
    if hidden:
        raise conflict(
            f"the compaction {max(compacted[group] for group in hidden)} of the file groups {_names(hidden)} was "
            "planned while this write appended to them"
        )


def _appended(metadata: CommitMetadata) -> dict[FileGroup, str]:
    """Return the file groups to whose log files the write appended, and the instants in the names of these files."""
    appends = (stat for stat in metadata.write_stats() if stat.is_log_append)
    names = ((stat.group, LogFileName.parse(name_of(stat.path or ""))) for stat in appends)
    return {group: name.instant_time for group, name in names if name is not None}


def _bucket(group: FileGroup) -> tuple[str, int | str]:
    """Return the partition path and the bucket of a file group; its file id if that has no bucket."""
    path, file_id = group
    bucket = bucket_of_file_id(file_id)
    return path, file_id if bucket is None else bucket


def _touched(metadata: CommitMetadata) -> set[FileGroup]:
    return {stat.group for stat in metadata.write_stats()} | metadata.replaced_groups()


def _plain_appends(metadata: CommitMetadata) -> set[FileGroup]:
    """Return the file groups to which the write only appended rows.

    An appended delete conflicts with rows of another write: the index would lack a key whose row wins in the log.
    """
    stats = [*metadata.write_stats()]
    other = {stat.group for stat in stats if not stat.is_log_append or stat.num_deletes}
    return {stat.group for stat in stats} - other - metadata.replaced_groups()


def _inserting_partitions(metadata: CommitMetadata) -> set[str]:
    """Return the partitions into which the write inserted new keys and in which keys must be unique."""
    policy = metadata.extra_metadata.get(INSERT_DUP_POLICY.key, "none")
    looks_up = metadata.operation_type == WriteOperation.INSERT and policy != "none"
    if metadata.operation_type not in _KEYS_STAY_UNIQUE and not looks_up:
        return set()
    return {stat.partition_path or "" for stat in metadata.write_stats() if stat.num_inserts}


def policy_metadata(operation: WriteOperation, policy: str) -> dict[str, str]:
    """Return the extra metadata of an insert whose policy ignores or refuses known keys; nothing for other writes.

    Only the option distinguishes such an insert from an insert without look-ups, and other writers do not see options.
    """
    return {INSERT_DUP_POLICY.key: policy} if operation is WriteOperation.INSERT and policy != "none" else {}


def _names(groups: AbstractSet[FileGroup] | list[FileGroup]) -> list[str]:
    """Return the names of a few file groups, for messages."""
    return [f"{path}/{file_id}" if path else file_id for path, file_id in sorted(groups)[:3]]


def refuse_marked(view: TableView, instant_time: str, groups: AbstractSet[FileGroup]) -> None:
    """Refuse a write to file groups for which another running write has markers.

    `view` is the table when the write `instant_time` began. Costs a listing of the folders of markers and one of each
    other write's, one read for each marker file of a JVM timeline server, and a look at the heartbeat of each write
    that has markers of the same file groups. Table services are left out, as in the JVM: their plans name the file
    groups.
    """
    for folder in view.store.folders(TEMP_FOLDER):
        other = name_of(folder)
        found = view.timeline.get(other)
        is_service = found is not None and found.action.is_planned
        # Folders of other names have the staged rows of writes.
        if not other.isdigit() or other == instant_time or is_service:
            continue
        paths = [marker.path for marker in read_markers(view.store, other) or ()]
        parsed = ((path.rpartition("/")[0], parse_data_file(path)) for path in paths)
        marked = {(partition, name.file_id) for partition, name in parsed if name is not None}
        shared = groups & marked
        if shared and is_live(view.store, other):
            raise conflict(f"the write {other} is running and has markers of the same file groups: {_names(shared)}")
