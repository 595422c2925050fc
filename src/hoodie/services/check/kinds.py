"""Every kind of finding of `t.verify()`: its severity, what it means, and the command that mends it.

The names are stable: scripts compare them. `docs/operations/verify-and-repair.md` has the same table.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from hoodie.display import command_text
from hoodie.results import Severity

REPAIR: Final = "hoodie repair TABLE --execute"
_REPAIR_FULL: Final = "hoodie repair TABLE --full --execute"
_OR_LOSS: Final = "restore the file from a copy; without a copy, give it up: hoodie repair TABLE --accept-loss FILE"
_BY_HAND: Final = "no command: see the page"


@dataclass(frozen=True, slots=True)
class FindingKind:
    """One kind of finding.

    `remedy` is a command of the shell for TABLE, and for the FILE or INSTANT that is the key of the finding; or a
    sentence if no command mends it.
    """

    name: str
    severity: Severity
    meaning: str
    remedy: str

    def remedy_for(self, table: str, key: str | None = None) -> str:
        """Return the remedy with the path or URI of a table, and with the key of a finding."""
        return command_text(self.remedy, table, **({} if key is None else {"FILE": key, "INSTANT": key}))

    @property
    def is_repaired(self) -> bool:
        """Whether `repair` mends it."""
        return self.remedy in (REPAIR, _REPAIR_FULL)


def _error(name: str, meaning: str, remedy: str) -> FindingKind:
    return FindingKind(name, Severity.ERROR, meaning, remedy)


def _warning(name: str, meaning: str, remedy: str) -> FindingKind:
    return FindingKind(name, Severity.WARNING, meaning, remedy)


PROPERTIES_DAMAGED: Final = _error(
    "properties-damaged", "hoodie.properties is missing or damaged; its backup is whole", REPAIR
)
PROPERTIES_BACKUP: Final = _warning(
    "properties-backup", "a change of hoodie.properties was not finished: its backup is left", REPAIR
)

INSTANT_EMPTY: Final = _error(
    "instant-empty",
    "the completed file of the newest write has 0 bytes, or one of a clean or rollback is damaged: it is done again",
    REPAIR,
)
INSTANT_DAMAGED: Final = _error(
    "instant-damaged",
    "the file of a savepoint does not parse, or the file of a commit cannot be read",
    "restore the file from a copy; a savepoint without a copy is given up: hoodie savepoint delete TABLE INSTANT",
)
INSTANT_DOUBLED: Final = _error(
    "instant-doubled", "two actions, or two completed files, have the same requested time", _BY_HAND
)
INSTANT_LOST: Final = _error(
    "instant-lost", "the metadata table has a commit that the timeline and its archive have not", _OR_LOSS
)
COMPLETION_LOST: Final = _error(
    "completion-lost",
    "the completed file of a write is lost, and what was done later proves that the write completed; or it is damaged",
    REPAIR,
)
OLD_TIMELINE_WRITTEN: Final = _error(
    "old-timeline-written",
    "a writer of the old version wrote after an upgrade or downgrade: its rows are not in the table",
    "stop the writer, write its rows again, and delete its instant files",
)
INSTANT_NOT_REQUESTED: Final = _warning(
    "instant-not-requested", "a completed instant has no requested file", "none needed; the archive drops it"
)
INSTANT_BEFORE_REQUEST: Final = _warning(
    "instant-before-request",
    "an instant completed before it was requested: clocks differ",
    "set the clocks of the writers",
)
PLAN_EMPTY: Final = _error(
    "plan-empty", "the plan of a pending service has 0 bytes: its scheduler died; nothing was executed", REPAIR
)
PLAN_DAMAGED: Final = _error("plan-damaged", "the plan of a pending service does not parse", REPAIR)
ROLLBACK_PENDING: Final = _warning("rollback-pending", "a rollback was not finished", REPAIR)
RESTORE_PENDING: Final = _error(
    "restore-pending",
    "a restore was not finished; nothing can be written until it is; `hoodie restore TABLE COMMIT` finishes it too",
    REPAIR,
)
CLEAN_PENDING: Final = _warning("clean-pending", "a clean was not finished; the next clean finishes it too", REPAIR)
SAVEPOINT_PENDING: Final = _warning(
    "savepoint-pending",
    "a savepoint was not finished: it keeps no files, and holds archiving and moves to other table versions back",
    "finish it: hoodie savepoint create TABLE INSTANT; or give it up: hoodie savepoint delete TABLE INSTANT",
)
WRITE_DEAD: Final = _warning(
    "write-dead", "a write is pending and its writer has no heartbeat; the next write rolls it back too", REPAIR
)
ARCHIVE_DAMAGED: Final = _error(
    "archive-damaged", "the archived timeline, or a file of it, is damaged or missing", _OR_LOSS
)

FILE_MISSING: Final = _error(
    "file-missing",
    "a file that the newest rows need does not exist",
    _OR_LOSS,
)
HISTORY_FILE_MISSING: Final = _warning(
    "history-file-missing",
    "a file that earlier states need does not exist: reads of them are refused, and going back to them too",
    "restore the file from a copy; without a copy, the finding ends when a clean passes these states",
)
SAVEPOINT_FILE_MISSING: Final = _error(
    "savepoint-file-missing",
    "a file that a savepoint names does not exist: no restore goes back to the savepoint",
    "restore the file from a copy; a savepoint without a copy is given up: hoodie savepoint delete TABLE INSTANT",
)
FILE_LENGTH: Final = _error("file-length", "a data file does not have the length that its commit recorded", _OR_LOSS)
FILE_ORPHANED: Final = _error(
    "file-orphaned", "no completed instant names the data file; readers that list folders may count its rows", REPAIR
)
FILE_UNKNOWN: Final = _warning(
    "file-unknown", "the instant of a data file is older than the timeline and not in its archive; it is kept", _BY_HAND
)
PARTITION_FILE_MISSING: Final = _error(
    "partition-file-missing", "a folder with data has no .hoodie_partition_metadata; listings skip it", REPAIR
)

METADATA_MISSING: Final = _error(
    "metadata-missing", "the metadata table that the properties name does not exist", REPAIR
)
METADATA_DAMAGED: Final = _error("metadata-damaged", "a file of the metadata table is damaged or missing", REPAIR)
METADATA_BEHIND: Final = _error("metadata-behind", "a completed commit is not in the metadata table", REPAIR)
LISTING_STALE: Final = _error(
    "listing-stale", "the metadata table lists a file that does not exist and is not needed", REPAIR
)
LISTING_LACKS: Final = _error(
    "listing-lacks", "the metadata table does not list a committed file: its rows are not read", REPAIR
)
LISTING_LENGTH: Final = _error(
    "listing-length", "the metadata table lists another length than the file and its commit have", REPAIR
)
INDEX_MISSING: Final = _warning(
    "index-missing", "the properties enable a record index, but it is missing; keys are looked up in the data", REPAIR
)
INDEX_DIFFERS: Final = _error(
    "index-differs", "the record index, or the bloom filters in the metadata table, differ from the data", _REPAIR_FULL
)
HBASE_DIFFERS: Final = _error(
    "hbase-differs",
    "the HBase index lacks keys, has other locations than the data, or belongs to another table",
    "hoodie index build TABLE hbase",
)
STATISTICS_MISSING: Final = _warning(
    "statistics-missing",
    "the properties enable column statistics, or bloom filters in the metadata table, but they are missing",
    REPAIR,
)
STATISTICS_DIFFER: Final = _error(
    "statistics-differ",
    "the column statistics differ from the data: queries may skip files that they need",
    _REPAIR_FULL,
)
INDEX_BUILD_ABANDONED: Final = _warning(
    "index-build-abandoned", "files of an index build that does not run are left", REPAIR
)

FILE_DAMAGED: Final = _error(
    "file-damaged", "a base or log file cannot be read, or does not have the rows that its commit recorded", _OR_LOSS
)
KEY_DOUBLED: Final = _error(
    "key-doubled", "several rows have a key that is unique by the index", "delete and upsert the keys, see the page"
)
BUCKET_WRONG: Final = _error(
    "bucket-wrong",
    "a file has keys of other buckets: reads by key and writes do not find them",
    "write all rows anew, see the page",
)

LEFTOVER_MARKERS: Final = _warning("leftover-markers", "markers of an instant that is not pending", REPAIR)
LEFTOVER_STAGE: Final = _warning("leftover-stage", "staged rows of a write that does not run", REPAIR)
LEFTOVER_HEARTBEAT: Final = _warning("leftover-heartbeat", "a heartbeat of an instant that is not pending", REPAIR)
LEFTOVER_LOCK: Final = _warning("leftover-lock", "a lock file of a writer that does not run", REPAIR)
LOCK_DAMAGED: Final = _error(
    "lock-damaged",
    "the file of the storage-based lock is no lock: no writer that uses this lock can write",
    "delete the file while no writer runs",
)
LEFTOVER_INDEX_FILES: Final = _warning(
    "leftover-index-files", "files of a build of an index or of statistics that was not completed", REPAIR
)
LEFTOVER_TEMPORARY: Final = _warning("leftover-temporary", "a half-written temporary file", REPAIR)

COMPACTION_OVERDUE: Final = _warning(
    "compaction-overdue", "file slices have many log files: reads get slower", "hoodie compact TABLE"
)
PLAN_WAITING: Final = _warning(
    "plan-waiting", "a planned compaction waits for a day or longer", "hoodie services run TABLE --once --compact"
)
CLUSTERING_WAITING: Final = _warning(
    "clustering-waiting", "a planned clustering waits for a day or longer", "hoodie cluster TABLE --run"
)
CLEANING_OVERDUE: Final = _warning(
    "cleaning-overdue", "file groups keep many more versions than are retained", "hoodie clean TABLE"
)
ARCHIVING_OVERDUE: Final = _warning(
    "archiving-overdue", "the active timeline is long: every read and write lists it", "hoodie archive TABLE"
)
SMALL_FILES: Final = _warning("small-files", "many file groups of a partition are small", "hoodie cluster TABLE")
SKEW: Final = _warning("skew", "one file group is many times larger than the others", "hoodie cluster TABLE")
INDEX_SKEW: Final = _warning(
    "index-skew", "the file groups of the record index are too large", "hoodie index build TABLE --buckets N"
)

KINDS: Final = MappingProxyType({kind.name: kind for kind in list(globals().values()) if isinstance(kind, FindingKind)})
"""All kinds by name, in the order of the page."""
