"""The table services of a table handle."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING

from hoodie.arguments import check_methods
from hoodie.table.context import TableContext, Text

if TYPE_CHECKING:
    from hoodie.commit.call import Call
    from hoodie.results import Report, ServiceResult
    from hoodie.services.cleaning.clean import CleanResult
    from hoodie.services.clustering.clustering import PendingClusterings
    from hoodie.services.clustering.plan import SmallFiles
    from hoodie.services.compaction.compaction import PendingCompactions
    from hoodie.services.planned.coordination import Coordinator
    from hoodie.services.runner import Compactor, ServiceRunner
    from hoodie.services.ttl import ExpiredResult
    from hoodie.services.versions.move import VersionResult
    from hoodie.view.commit_cache import Savepoint


@check_methods
class TableServices:
    """The methods of `Table` that look after a table."""

    _context: TableContext

    def schedule_compaction(
        self, strategy: str | None = None, extra_metadata: Text | None = None, *, properties: Text | None = None
    ) -> str | None:
        """Plan a compaction now, even if none is due; return its instant, or None if there is nothing to compact.

        `strategy`: `log_file_size` (default: most bytes of log files first), `log_file_num`, `bounded_io`, `day_based`,
        `unbounded`, or the name of Hudi's strategy class. See `hoodie.services.compaction.plan`.

        Raises:
            UnsupportedError: the table is not merge-on-read, or this release does not compact tables of its kind.
            InvalidConfigError: an unknown strategy or option, or extra metadata that is not text.
            LockTimeoutError: another process held the table's lock too long.

        >>> import hoodie
        >>> rows = {"id": ["a"], "x": [1]}
        >>> t = hoodie.create("memory://doc-schedule-compaction", rows, record_key="id", type="mor")
        >>> written = t.bulk_insert(rows)
        >>> written = t.upsert({"id": ["a"], "x": [2]})
        >>> instant = t.schedule_compaction()
        >>> t.compact(instant).instant == instant
        True
        """
        from hoodie.services.compaction.plan import schedule_compaction

        state = self._context.state.for_call(properties)
        return schedule_compaction(state, strategy=strategy, extra_metadata=extra_metadata, properties=properties)

    def schedule_log_compaction(self, blocks_min: int | None = None) -> str | None:
        """Plan to fold many small log blocks into one; see `services.compaction.log_compaction`.

        Raises: as `schedule_compaction`; UnsupportedError for a table of version 6.

        >>> import hoodie
        >>> rows = {"id": ["a"], "x": [1]}
        >>> t = hoodie.create("memory://doc-log-compaction", rows, record_key="id", type="mor")
        >>> written = t.bulk_insert(rows)
        >>> written = t.upsert({"id": ["a"], "x": [2]})
        >>> written = t.upsert({"id": ["a"], "x": [3]})
        >>> instant = t.schedule_log_compaction(blocks_min=2)
        >>> t.compact(instant).operation
        'log compaction'
        """
        from hoodie.services.compaction.log_compaction import schedule_log_compaction

        return schedule_log_compaction(self._context.state, blocks_min=blocks_min)

    def compact(self, instant: str | None = None, *, properties: Text | None = None) -> ServiceResult:
        """Execute a pending (log) compaction; default: the oldest that does not run. See `planned.executor.execute`.

        Raises:
            InstantNotFoundError: no plan of `instant` is pending.
            UnsupportedError: this release does not execute the plan.
            InvalidConfigError: an option that is fixed when the table is created.
            CommitConflictError: another process executes the plan, or claimed it while this call ran.
            CorruptFileError, MissingFileError: a file of the table is damaged or missing.

        >>> import hoodie
        >>> rows = {"id": ["a"], "x": [1]}
        >>> t = hoodie.create("memory://doc-compact", rows, record_key="id", type="mor")
        >>> written = t.bulk_insert(rows)
        >>> written = t.upsert({"id": ["a"], "x": [2]})
        >>> instant = t.schedule_compaction()
        >>> t.compact().counts["file_slices"]
        1
        """
        from hoodie.services.compaction.compaction import COMPACTION
        from hoodie.services.planned.executor import execute

        return execute(COMPACTION, self._context.service(properties), instant)

    def pending_compactions(self) -> PendingCompactions:
        """Return the pending compactions: their instants, file slices and bytes, and the process that executes each.

        Raises: CorruptFileError if a plan does not parse.

        >>> import hoodie
        >>> rows = {"id": ["a"], "x": [1]}
        >>> t = hoodie.create("memory://doc-pending-compactions", rows, record_key="id", type="mor")
        >>> written = t.bulk_insert(rows)
        >>> written = t.upsert({"id": ["a"], "x": [2]})
        >>> instant = t.schedule_compaction()
        >>> instant in str(t.pending_compactions())
        True
        """
        from hoodie.services.compaction.compaction import pending_compactions

        return pending_compactions(self._context.state)

    def cluster(
        self,
        by: str | Sequence[str] | None = None,
        *,
        layout: str | None = None,
        partitions: str | Sequence[str] | None = None,
        instant: str | None = None,
        properties: Text | None = None,
    ) -> ServiceResult:
        """Rewrite small file slices into larger base files, sorted `by` columns if there are any.

        `layout`: `linear` (default), `zorder` or `hilbert`, which keep rows close that are close in all columns.
        Pending plans are executed first; with an `instant` only that plan, which has its own columns, layout and
        partitions. See `services.clustering.clustering`.

        Raises: as `schedule_clustering` and `compact`; InvalidConfigError if `partitions` is empty, and for an
            `instant` with an argument of a new plan; CommitConflictError if a writer changed a rewritten file group.

        >>> import hoodie
        >>> rows = {"id": ["b", "a"], "x": [1, 2]}
        >>> t = hoodie.create("memory://doc-cluster", rows, record_key="id")
        >>> written = t.bulk_insert(rows), t.bulk_insert({"id": ["c"], "x": [3]})
        >>> t.cluster("id").operation
        'clustering'
        """
        from hoodie.services.clustering.clustering import CLUSTERING, cluster
        from hoodie.services.clustering.schedule import Wish

        call = self._context.service(properties)
        if instant is not None:
            from hoodie.errors import InvalidConfigError
            from hoodie.services.planned.executor import execute

            given = {"by": by, "layout": layout, "partitions": partitions}
            if wrong := [name for name, value in given.items() if value]:
                raise InvalidConfigError(
                    f"{', '.join(wrong)} with instant={instant!r}: a pending plan has its own columns, layout and "
                    "partitions; omit the instant, or roll the plan back and plan anew"
                )
            return execute(CLUSTERING, call, instant)
        return cluster(call, Wish(by=by, layout=layout, partitions=partitions, properties=properties or {}))

    def schedule_clustering(
        self,
        by: str | Sequence[str] | None = None,
        *,
        layout: str | None = None,
        partitions: str | Sequence[str] | None = None,
        extra_metadata: Text | None = None,
        properties: Text | None = None,
    ) -> str | None:
        """Plan a clustering and return its instant; None if there is nothing to cluster. Arguments: as `cluster`.

        Until the plan is executed or rolled back, writes that change its file groups are refused.

        Raises:
            UnsupportedError: this release does not cluster tables of this kind.
            InvalidConfigError: an unknown option, columns that the table does not have, empty `partitions`, or extra
                metadata that is not text.
            LockTimeoutError: another process held the table's lock too long.

        >>> import hoodie
        >>> rows = {"id": ["b", "a"], "x": [1, 2]}
        >>> t = hoodie.create("memory://doc-schedule-clustering", rows, record_key="id")
        >>> written = t.bulk_insert(rows), t.bulk_insert({"id": ["c"], "x": [3]})
        >>> instant = t.schedule_clustering("id")
        >>> t.cluster(instant=instant).instant == instant
        True
        """
        from hoodie.services.clustering.schedule import Wish, schedule_clustering

        more, given = extra_metadata or {}, properties or {}
        wish = Wish(by=by, layout=layout, partitions=partitions, extra_metadata=more, properties=given)
        scheduled = schedule_clustering(self._context.state.for_call(properties), wish)
        return None if scheduled is None else scheduled[0]

    def pending_clusterings(self) -> PendingClusterings:
        """Return the pending clusterings: their instants, file slices and bytes, and the process that executes each.

        Raises: CorruptFileError if a plan does not parse.

        >>> import hoodie
        >>> rows = {"id": ["a"], "x": [1]}
        >>> t = hoodie.create("memory://doc-pending-clusterings", rows, record_key="id")
        >>> written = t.upsert(rows)
        >>> len(t.pending_clusterings().plans)
        0
        """
        from hoodie.services.clustering.clustering import pending_clusterings

        return pending_clusterings(self._context.state)

    def clustering_advice(self) -> SmallFiles:
        """Return the small files that a clustering would make fewer; see `services.clustering.plan`.

        Raises: as `Table.to_arrow`.

        >>> import hoodie
        >>> rows = {"id": ["a"], "x": [1]}
        >>> t = hoodie.create("memory://doc-clustering-advice", rows, record_key="id")
        >>> written = t.upsert(rows)
        >>> print(t.clustering_advice())
        no partition has many small files that a clustering would join
        """
        from hoodie.services.clustering.schedule import clustering_advice

        return clustering_advice(self._context.view())

    def archive(self, dry_run: bool = False, *, properties: Text | None = None) -> ServiceResult:
        """Move the oldest instants of the timeline to its archive, if there are more than `hoodie.keep.max.commits`.

        Writes do this by themselves (`hoodie.archive.automatic`). See `hoodie.services.archiving`.

        Raises:
            LockTimeoutError: another writer holds the table's lock.
            CommitConflictError: this process lost the lock.
            CorruptFileError: the archive, or a commit, is damaged.

        >>> import hoodie
        >>> rows = {"id": ["a"], "x": [1]}
        >>> t = hoodie.create("memory://doc-archive", rows, record_key="id")
        >>> written = t.upsert(rows)
        >>> t.archive(dry_run=True).counts
        {}
        """
        from hoodie.services.archiving import archive

        return archive(self._context.service(properties), dry_run=dry_run)

    def rollback(
        self, instant: str, *, chain: bool = False, dry_run: bool = False, properties: Text | None = None
    ) -> ServiceResult:
        """Roll back a pending instant, or a completed commit; see `services.recovery.rollback`.

        A completed commit must be the newest; with `chain` all later ones are rolled back with it. The counts of the
        result are the `instants`, the rows that these had inserted, updated and deleted by their own record
        (`inserted_rows`, `updated_rows`, `deleted_rows`; none of a pending instant), and the files deleted.

        Raises:
            InstantNotFoundError: the timeline has no such instant.
            CommitConflictError: a writer or a service is running.
            UnsupportedError: the instant cannot be rolled back; the message names the cause.

        >>> import hoodie
        >>> rows = {"id": ["a"], "x": [1]}
        >>> t = hoodie.create("memory://doc-rollback", rows, record_key="id")
        >>> written = t.upsert(rows)
        >>> wrong = t.upsert({"id": ["b"], "x": [9]})
        >>> undone = t.rollback(wrong.instant)
        >>> undone.counts["instants"], undone.counts["inserted_rows"], t.count()
        (1, 1, 1)
        """
        from hoodie.services.recovery.rollback import roll_back_instant

        return roll_back_instant(self._context.service(properties), instant, chain=chain, dry_run=dry_run)

    def restore(self, savepoint: str, *, dry_run: bool = False, properties: Text | None = None) -> ServiceResult:
        """Restore the table to a savepoint, or to another completed commit; see `services.recovery.restore`.

        Everything after it is rolled back. A restore to it whose process died is completed.

        Raises:
            InstantNotFoundError: the active timeline has no such completed commit.
            CommitConflictError: a writer or a service is running.
            UnsupportedError: files that the table needs were deleted, later instants are archived, there is a later
                savepoint, or a restore to another commit is pending.

        >>> import hoodie
        >>> rows = {"id": ["a"], "x": [1]}
        >>> t = hoodie.create("memory://doc-restore", rows, record_key="id")
        >>> written = t.upsert(rows)
        >>> saved = t.savepoint().instant
        >>> written = t.upsert({"id": ["b"], "x": [9]}), t.delete(["a"])
        >>> restored = t.restore(saved)
        >>> t.to_arrow("id")["id"].to_pylist()
        ['a']
        """
        from hoodie.services.recovery.restore import restore

        return restore(self._context.service(properties), savepoint, dry_run=dry_run)

    def savepoint(self, instant: str | None = None, *, user: str = "", comment: str = "") -> ServiceResult:
        """Keep the files of a completed commit, the newest by default; see `services.recovery.savepoint`.

        Cleans keep the files until `t.delete_savepoint`; `t.restore` takes the table back to the commit.

        Raises:
            InstantNotFoundError: the active timeline has no such completed commit.
            UnsupportedError: a clean deleted files that the commit needs, or a restore is pending.
            InvalidConfigError: `user` or `comment` is no text that UTF-8 can hold.

        >>> import hoodie
        >>> rows = {"id": ["a"], "x": [1]}
        >>> t = hoodie.create("memory://doc-savepoint", rows, record_key="id")
        >>> written = t.upsert(rows)
        >>> t.savepoint(comment="before the import").instant == written.instant
        True
        """
        from hoodie.services.recovery.savepoint import create_savepoint

        return create_savepoint(self._context.state, instant, user=user, comment=comment)

    def savepoints(self) -> tuple[Savepoint, ...]:
        """Return the savepoints in the order of their commits, with their users, comments and files.

        Raises: CorruptFileError if a savepoint does not parse.

        >>> import hoodie
        >>> rows = {"id": ["a"], "x": [1]}
        >>> t = hoodie.create("memory://doc-savepoints", rows, record_key="id")
        >>> written = t.upsert(rows)
        >>> saved = t.savepoint(comment="before the import")
        >>> [found.comment for found in t.savepoints()]
        ['before the import']
        """
        from hoodie.view.history import savepoints

        return savepoints(self._context.view())

    def delete_savepoint(self, instant: str) -> ServiceResult:
        """Delete a savepoint; its files stay until a clean finds them obsolete.

        Raises: InstantNotFoundError if there is no such savepoint; UnsupportedError if a restore is pending.

        >>> import hoodie
        >>> rows = {"id": ["a"], "x": [1]}
        >>> t = hoodie.create("memory://doc-delete-savepoint", rows, record_key="id")
        >>> written = t.upsert(rows)
        >>> saved = t.savepoint().instant
        >>> deleted = t.delete_savepoint(saved)
        >>> t.savepoints()
        ()
        """
        from hoodie.services.recovery.savepoint import delete_savepoint

        return delete_savepoint(self._context.state, instant)

    def verify(self, full: bool = False) -> Report:
        """Check the table; print the report, or look at its `problems` and `findings`. Writers can run meanwhile.

        Quick: timeline, listing, names and lengths of files, leftovers, overdue services. With `full` also every file,
        every key and the record index. See `hoodie.services.check.verify`, and docs/operations/verify-and-repair.md.

        Raises: TableNotFoundError, UnsupportedError; CorruptFileError if neither the table's properties nor their
            backup are whole. Everything else is a finding of the report.

        >>> import hoodie, pyarrow as pa
        >>> rows = pa.table({"id": ["a", "b"], "x": [1, 2]})
        >>> t = hoodie.create("memory://doc-verify", rows.schema, record_key="id")
        >>> written = t.upsert(rows)
        >>> t.verify(full=True).ok
        True
        """
        from hoodie.services.check.verify import verify

        return verify(self._context.service(), full=full)

    def repair(
        self,
        dry_run: bool = True,
        *,
        full: bool = False,
        min_age_seconds: float = 3600.0,
        accept_loss: str | Sequence[str] | None = None,
    ) -> ServiceResult:
        """Mend what `verify` found and names `repair` for; by default only say what would be done.

        Files that a completed instant names are never deleted. `full`: check rows and the record index too.
        `min_age_seconds`: younger orphaned files are kept, as a running process may write them. See
        `hoodie.services.check.repair`. `accept_loss`: give up these lost files, and their rows, in one commit;
        nothing else is repaired then. See `hoodie.services.check.accept_loss`.

        Raises: as `verify`; with `accept_loss` also
            InvalidConfigError: a file exists, or the newest rows do not need it; `full` or `min_age_seconds`.
            UnsupportedError: a table with an HBase index.
            CommitConflictError: another writer changed one of the file groups, or a pending service is to change it.

        >>> import hoodie
        >>> rows = {"id": ["a"], "x": [1]}
        >>> t = hoodie.create("memory://doc-repair", rows, record_key="id")
        >>> written = t.upsert(rows)
        >>> t.repair().counts
        {}
        """
        from hoodie.services.check.repair import MIN_AGE_SECONDS, repair

        if accept_loss is not None:
            from hoodie.errors import InvalidConfigError
            from hoodie.services.check.accept_loss import accept_loss as give_up

            if full or min_age_seconds != MIN_AGE_SECONDS:
                raise InvalidConfigError(
                    "full and min_age_seconds (--full, --min-age) have no effect with accept_loss: nothing else is "
                    "repaired then; omit them, or repair in a second call"
                )
            files = [accept_loss] if isinstance(accept_loss, str) else accept_loss
            return give_up(self._context.service(), files, dry_run=dry_run)
        return repair(self._context.service(), dry_run=dry_run, full=full, min_age_seconds=min_age_seconds)

    def clean(self, dry_run: bool = False, *, properties: Text | None = None) -> CleanResult:
        """Delete the files that no retained snapshot needs, and finish pending cleans; see `services.cleaning.clean`.

        `properties` say what is retained (default: the files of the ten newest commits). `dry_run`: change nothing, and
        return the files, their bytes, and the oldest instant that stays readable.

        Raises:
            UnsupportedError: a pending restore.
            InvalidConfigError: a wrong option.
            CorruptFileError: a plan, a savepoint or a commit does not parse.
            LockTimeoutError: another process held the table's lock too long.
            StorageError: the disk is so full that the plan cannot be stored.

        >>> import hoodie
        >>> rows = {"id": ["a"], "x": [1]}
        >>> t = hoodie.create("memory://doc-clean", rows, record_key="id")
        >>> written = t.upsert(rows)
        >>> written = t.upsert({"id": ["a"], "x": [2]})
        >>> t.clean(properties={"hoodie.clean.fileversions.retained": "1"}).counts["files_deleted"]
        1
        """
        from hoodie.services.cleaning.clean import clean

        return clean(self._context.service(properties), dry_run=dry_run)

    def expire_partitions(self, dry_run: bool = False, *, properties: Text | None = None) -> ExpiredResult:
        """Delete the partitions whose time to live is over, in one commit; see `services.ttl`.

        `hoodie.partition.ttl.strategy.days.retain` is the time to live in days. `dry_run`: only return them.

        Raises: InvalidConfigError for a wrong option; CommitConflictError if another writer changed an expired
            partition meanwhile. Nothing is deleted then.

        >>> import hoodie
        >>> rows = {"id": ["a"], "city": ["sf"]}
        >>> t = hoodie.create("memory://doc-expire", rows, record_key="id", partition_by="city")
        >>> written = t.upsert(rows)
        >>> t.expire_partitions(properties={"hoodie.partition.ttl.strategy.days.retain": "7"}).partitions
        {}
        """
        from hoodie.services.ttl import expire_partitions

        return expire_partitions(self._context.service(properties), dry_run=dry_run)

    def upgrade(self, to: int = 9, dry_run: bool = True, *, properties: Text | None = None) -> VersionResult:
        """Move the table to a later version, 8 or 9; by default only plan it. docs/table-versions.md.

        Stop the writers of other engines first. A call after a crash goes on. The old timeline is kept until
        `drop_old_timeline` deletes it. The plan reads the log files, which the move compacts: notes name damaged ones.

        Raises: as `hoodie.services.versions.move.move`: UnsupportedError names what is in the way.

        >>> import hoodie
        >>> t = hoodie.create("memory://doc-upgrade", {"id": ["a"]}, record_key="id", table_version=6)
        >>> written = t.upsert({"id": ["a"]})
        >>> t.upgrade(to=9).steps[-1]
        'keep the old timeline until t.drop_old_timeline() deletes it'
        >>> t.upgrade(to=9, dry_run=False).to_version
        9
        """
        from hoodie.services.versions.move import move

        return move(self._context.service(properties), "upgrade", to, dry_run=dry_run)

    def downgrade(self, to: int, dry_run: bool = True, *, properties: Text | None = None) -> VersionResult:
        """Move the table to an earlier version, 8 or 6; by default only plan it. Everything else as `upgrade`.

        Raises: as `upgrade`.

        >>> import hoodie
        >>> t = hoodie.create("memory://doc-downgrade", {"id": ["a"]}, record_key="id")
        >>> t.downgrade(to=8).in_the_way
        ()
        """
        from hoodie.services.versions.move import move

        return move(self._context.service(properties), "downgrade", to, dry_run=dry_run)

    def drop_old_timeline(self, dry_run: bool = True) -> ServiceResult:
        """Delete the timeline that the last upgrade or downgrade kept; by default only count its files.

        Raises: CommitConflictError if a writer of the old version wrote to it after the move.

        >>> import hoodie
        >>> t = hoodie.create("memory://doc-drop-old", {"id": ["a"]}, record_key="id")
        >>> t.drop_old_timeline().notes
        ('no old timeline is kept',)
        """
        from hoodie.services.versions.kept import drop_old_timeline

        return drop_old_timeline(self._context.service(), dry_run=dry_run)

    def services(
        self,
        names: Collection[str] | None = None,
        *,
        interval: float = 60.0,
        schedule: bool = True,
        coordinator: str | Coordinator | None = None,
        properties: Text | None = None,
        report: Callable[[ServiceResult], None] | None = None,
        on_error: Callable[[str, Exception], None] | None = None,
    ) -> ServiceRunner:
        """Create a thread that runs the services that are due, beside writers: `with t.services(interval=60): …`.

        `names`: which services (`compact`, `clean`, `ttl`, …); by default those that are on in the table's properties
        and `properties`. `run_once()` runs one round in the caller's thread. Other arguments as for `compactor`.

        Raises: InvalidConfigError for an unknown service, a wrong coordinator or a wrong option. A service that fails
            raises nothing: its error is in the result of the round.

        >>> import hoodie
        >>> rows = {"id": ["a"], "x": [1]}
        >>> t = hoodie.create("memory://doc-services", rows, record_key="id")
        >>> written = t.upsert(rows)
        >>> print(t.services(["clean", "archive"]).run_once())
        nothing was due
        """
        from hoodie.services.planned.coordination import coordinator_of
        from hoodie.services.registry import all_services
        from hoodie.services.runner import ServiceChoice, ServiceRunner

        choice = ServiceChoice(names=names, services=all_services(coordinator_of(coordinator), schedule=schedule))
        call = self._background_call(properties)
        return ServiceRunner(call, choice, interval_seconds=interval, report=report, on_error=on_error)

    def _background_call(self, properties: Text | None) -> Call:
        """Return the call of a thread. Wrong options are errors here, not in the first round."""
        from hoodie.format.table.call_options import check_call_options

        check_call_options(properties or {}, self._context.state.last_config())
        return self._context.service(properties)

    def compactor(
        self,
        *,
        interval: float = 60.0,
        schedule: bool = True,
        coordinator: str | Coordinator | None = None,
        properties: Text | None = None,
        report: Callable[[ServiceResult], None] | None = None,
        on_error: Callable[[Exception], None] | None = None,
    ) -> Compactor:
        """Create a thread that compacts while writers run: `with t.compactor(interval=10): …`.

        Every `interval` seconds the thread schedules a compaction if one is due (unless `schedule` is false), and
        executes pending compactions. `coordinator`: `zookeeper://host:port/path`, if several machines share the work.
        `report` gets each result, and `on_error` gets the error of a failed round; the next round tries again.

        Raises: InvalidConfigError for a wrong coordinator or option.

        >>> import hoodie
        >>> rows = {"id": ["a"], "x": [1]}
        >>> t = hoodie.create("memory://doc-compactor", rows, record_key="id", type="mor")
        >>> written = t.bulk_insert(rows)
        >>> written = t.upsert({"id": ["a"], "x": [2]})
        >>> with t.compactor(interval=10) as compactor:
        ...     compactor.is_running
        True
        """
        from hoodie.services.planned.coordination import coordinator_of
        from hoodie.services.runner import Compactor

        return Compactor(
            self._background_call(properties),
            coordinator=coordinator_of(coordinator),
            interval_seconds=interval,
            schedule=schedule,
            report=report,
            on_error=on_error,
        )
