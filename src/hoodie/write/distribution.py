"""How the rows of a bulk write come to files: as the tasks of the data have them, or the rows of a partition together.

A task of the data that has rows of many partition paths makes a small file for each. So tasks stage their rows in runs
of one partition path, and a second step writes runs of several tasks to one file of the wanted size. No rows are
counted or shuffled, and the caller's data is evaluated once.
"""

from __future__ import annotations

import math
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

import pyarrow as pa

from hoodie.engine.packing import cuts
from hoodie.errors import InvalidConfigError
from hoodie.files.base_file import BaseFileWriter
from hoodie.files.staging.staged import StagedRun, StageReader
from hoodie.files.stamping import COMMIT_TIME, FILE_NAME, SequenceNumbers, Stamper
from hoodie.format.schema.table_schema import with_meta_fields
from hoodie.records.change import PARTITION_PATH
from hoodie.storage import MemoryStore, Store
from hoodie.write.files.bulk_task import Piece
from hoodie.write.files.context import WriteContext

_FILL: Final = 0.9
"""Planned share of a full file: with an estimate that is 10% low, a piece still makes one file."""
_SAMPLE_ROWS: Final = 50_000
_SAMPLES: Final = "record-size-samples"
TASKS_PER_CORE: Final = 4
"""Maximum number of tasks for each core: enough to balance them, and no task for each of thousands of small files."""


class Distribution(Enum):
    """How rows come to the tasks that write files."""

    NONE = "none"
    """Each task of the data writes its rows: a file for each partition path that it has, or several."""
    PARTITION = "partition"
    """The rows of a partition path come together, in files of the wanted size."""
    AUTO = "auto"
    """As `PARTITION`, without the tasks whose rows make no small files."""

    @classmethod
    def of(cls, name: str) -> Distribution:
        """Return the distribution with this name. Raises: InvalidConfigError."""
        try:
            return cls(name)
        except ValueError:
            names = ", ".join(found.value for found in cls)
            raise InvalidConfigError(f"distribution={name!r}: expected one of {names}") from None


@dataclass(frozen=True, slots=True)
class PiecePlanner:
    """Divides staged runs into pieces; each piece becomes a file.

    `record_bytes`: the known size of a record in a base file; None to measure it with a sample of the rows, if a
    partition needs more than one file. `tasks`: the number of files that are worth writing at once; above 0, partitions
    get more files for it, as long as these are not small.
    """

    context: WriteContext
    store: Store
    record_bytes: float | None
    tasks: int = 0

    def pieces(self, runs: Sequence[StagedRun]) -> list[Piece]:
        """Return the pieces; runs of a partition path keep their order. Memory: a sample of 50,000 rows."""
        by_path: dict[str, list[StagedRun]] = {}
        for run in runs:
            by_path.setdefault(run.partition_path, []).append(run)
        # Bytes from which a file may be made for the sake of another task.
        least = self.context.sizing.max_file_bytes / 2
        if max((_arrow_bytes(found) for found in by_path.values()), default=0) <= min(least, self._full_bytes):
            return [tuple(found) for found in by_path.values()]
        record_bytes = self.record_bytes or self._measured(max(by_path.values(), key=_arrow_bytes))
        total = record_bytes * sum(run.rows for run in runs)
        found = []
        for own in by_path.values():
            size = record_bytes * sum(run.rows for run in own)
            at_once = min(math.ceil(self.tasks * size / total), int(size / least))
            count = max(math.ceil(size / self._full_bytes), at_once)
            found += [tuple(own[start:end]) for start, end in cuts([run.rows for run in own], count)]
        return found

    @property
    def _full_bytes(self) -> float:
        return self.context.sizing.max_file_bytes * _FILL

    def _measured(self, runs: Sequence[StagedRun]) -> float:
        """Write the first rows to a file in memory, and return its bytes for each of them."""
        store, path = MemoryStore(_SAMPLES), f"{uuid.uuid4()}.parquet"
        numbers, rows = SequenceNumbers(self.context.instant_time, 0), 0
        stamper = Stamper(self.context.schema, numbers, {})
        same = {COMMIT_TIME: self.context.instant_time, PARTITION_PATH: runs[0].partition_path, FILE_NAME: path}
        parquet = replace(self.context.parquet, bloom=None, range_columns=None)
        try:
            with (
                StageReader(self.store) as reader,
                BaseFileWriter(store, path, with_meta_fields(self.context.schema), parquet, same) as writer,
            ):
                for run in runs:
                    if rows >= _SAMPLE_ROWS:
                        break
                    batch = reader.read(run).slice(0, _SAMPLE_ROWS - rows)
                    rows += batch.num_rows
                    writer.write(stamper.new_rows(pa.Table.from_batches([batch])))
            return max(writer.size_bytes / rows, 1.0)
        finally:
            store.delete(path)


def tasks_of(pieces: Sequence[Piece], count: int) -> list[tuple[Piece, ...]]:
    """Divide the pieces into at most `count` tasks of about the same size; their order stays."""
    return [tuple(pieces[start:end]) for start, end in cuts([_arrow_bytes(piece) for piece in pieces], count)]


def _arrow_bytes(runs: Sequence[StagedRun]) -> int:
    return sum(run.size_bytes for run in runs)
