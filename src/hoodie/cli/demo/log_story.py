"""The demo's second part: the same flights in a merge-on-read table, and a compaction that no writer waits for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

import hoodie
from hoodie.cli.demo.flights import KEY, ORDERING, PARTITION, Flights, actuals_file, schedules_folder
from hoodie.cli.demo.story import Chapter, expect, expect_same_rows, read_with_hudi_rs

_LOGGED_MONTHS = 2
"""Months whose actual times are logged before the compaction is planned; the next one comes after it."""


@dataclass(slots=True, kw_only=True)
class LogStory:
    """One run of this part, through a Spark session, on a table that does not exist yet."""

    spark: Any
    flights: Flights
    landing: Path
    table_path: Path
    planned: list[str] = field(default_factory=list)

    def chapters(self) -> Iterator[Chapter]:
        """What happens, in order; the title of each chapter and the function that runs it."""
        yield "merge-on-read: the schedule, and two months in logs", self.write_logs
        yield "read: base files and logs are merged", self.read_merged
        yield "compact: planned, and the next month is upserted", self.plan_and_go_on
        yield "compact: carried out, and nothing has changed", self.compact
        yield "judge: hudi-rs reads this table too", self.compare_with_hudi_rs

    def write_logs(self) -> str:
        """Fill the table in one pass, then append what changed."""
        frame = self.spark.read.parquet(str(schedules_folder(self.landing)))
        hoodie.create(
            self.table_path,
            frame,
            record_key=KEY,
            partition_by=PARTITION,
            ordering=ORDERING,
            type="merge_on_read",
            name="flights_log",
            spark=self.spark,
        ).bulk_insert(frame)
        appended = 0
        for month in self.flights.months[:_LOGGED_MONTHS]:
            result = self._upsert(month)
            expect(f"files rewritten for month {month}", result.files_updated + result.files_created, 0)
            appended += result.log_files_appended
        return f"{appended} log files, {result.backlog:.1f} waiting per file slice; no base file was rewritten"

    def read_merged(self) -> str:
        """Count what took off: the schedule does not know of it, the logs do."""
        flown = self.table.read(where="dep_time IS NOT NULL").count()
        expect("flights that took off, by the logs", flown, self._taken_off(_LOGGED_MONTHS))
        stale = self.table.to_arrow(columns=["dep_time"], view="read_optimized")
        expect("flights that took off, without the logs", len(stale) - stale["dep_time"].null_count, 0)
        return f"{flown:,} flights took off; without the logs none did"

    def plan_and_go_on(self) -> str:
        """The plan names what is logged so far; the writer does not wait for anybody to carry it out."""
        instant = self.table.schedule_compaction()
        expect("plans that wait", self.table.pending_compactions().instants, [instant])
        self._upsert(self.flights.months[_LOGGED_MONTHS])
        flown = self.table.read(where="dep_time IS NOT NULL").count()
        expect("flights that took off", flown, self._taken_off(_LOGGED_MONTHS + 1))
        return f"{flown:,} flights took off while the compaction waits"

    def compact(self) -> str:
        """Fold the logs of the plan into base files; the newest month stays in logs."""
        before = self.table.to_arrow(columns=self.flights.flown.column_names)
        result = self.table.compact()
        expect("plans that wait", self.table.pending_compactions().instants, [])
        expect_same_rows(
            "the table after and before", self.table.to_arrow(columns=self.flights.flown.column_names), before
        )
        return (
            f"{result.counts['log_files']} log files of {result.counts['file_slices']} file slices are base files now"
        )

    def compare_with_hudi_rs(self) -> str:
        """Compare every value of every row."""
        ours = self.table.to_arrow()
        expect_same_rows("hudi-rs and hoodie", read_with_hudi_rs(self.table_path), ours)
        return f"{ours.num_rows:,} rows of {ours.num_columns} columns are equal"

    @property
    def table(self) -> hoodie.Table:
        """The table, opened anew: nothing is remembered from the chapter before."""
        return hoodie.open(self.table_path, spark=self.spark)

    def _upsert(self, month: int) -> Any:
        result = self.table.upsert(self.spark.read.parquet(str(actuals_file(self.landing, month))))
        expect(f"flights of month {month} updated", result.updated, self.flights.actuals(month).num_rows)
        return result

    def _taken_off(self, months: int) -> int:
        """Flights of the first months that took off, as the CSV has it."""
        flown = self.flights.flown
        return int(pc.sum(pc.is_in(flown["month"], value_set=pa.array(self.flights.months[:months]))).as_py())
