"""Sum up a committed write for its caller."""

from __future__ import annotations

from collections.abc import Sequence

from hoodie.format.commit_metadata import WriteStat
from hoodie.index import LookUpCost
from hoodie.index.record import WrittenEntries
from hoodie.write.result import Stopwatch, WriteResult
from hoodie.write.transaction import Transaction


def result_of(
    write: Transaction,
    stats: Sequence[WriteStat],
    watch: Stopwatch,
    *,
    moves: int = 0,
    look_up: LookUpCost | None = None,
    index: WrittenEntries | None = None,
) -> WriteResult:
    """The result of a write; `moves` rows were deleted in one partition and inserted in another: they are updates."""
    notes = [
        f"rolled back {done.instant_time}, whose writer had died ({done.files_deleted} files)"
        for done in write.rolled_back
    ]
    if index is not None and index.duplicates:
        notes.append(
            f"{index.duplicates:,} rows were inserted with a key that another row of the batch has: the record index "
            "knows one row of each key"
        )
    return WriteResult(
        instant=write.instant_time,
        action=write.instant.action.value,
        operation=write.operation.value.lower(),
        inserted=sum(stat.num_inserts for stat in stats) - moves,
        updated=sum(stat.num_update_writes for stat in stats) + moves,
        deleted=sum(stat.num_deletes for stat in stats) - moves,
        files_created=sum(stat.is_new_file_group for stat in stats),
        files_updated=sum(not stat.is_new_file_group for stat in stats),
        bytes_written=sum(stat.total_write_bytes for stat in stats),
        seconds=watch.seconds(),
        look_up=look_up,
        notes=tuple(notes),
    )
