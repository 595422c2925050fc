"""The second part of the demo: the same flights in a merge-on-read table, and a compaction that blocks no writer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

import hoodie
from hoodie.cli.demo.engines import DemoEngine
from hoodie.cli.demo.flights import KEY, ORDERING, PARTITION, Flights, actuals_file, schedules_folder
from hoodie.cli.demo.story import Chapter, expect, expect_same_rows, read_with_hudi_rs

_LOGGED_MONTHS = 2
"""Months whose actual times are logged before the compaction is planned; the next month is logged after that."""


@dataclass(slots=True, kw_only=True)
class LogStory:
    """One run of this part, on a table that does not exist yet."""

    engine: DemoEngine
    flights: Flights
    landing: Path
    table_path: Path
    planned: list[str] = field(default_factory=list)

    def chapters(self) -> Iterator[Chapter]:
        """Return the title and the function of each chapter, in order."""
        yield "merge-on-read: the schedule, and two months in log files", self.write_logs
        yield "read: base files and log files are merged", self.read_merged
        yield "compact: plan, and upsert the next month", self.plan_and_go_on
        yield "compact: execute the plan; the rows are unchanged", self.compact
        yield "check: hudi-rs reads this table too", self.compare_with_hudi_rs

    def write_logs(self) -> str:
        """Write the schedule in one pass, then append the changes of two months to log files."""
        frame = self.engine.load(schedules_folder(self.landing))
        hoodie.create(
            self.table_path,
            frame,
            record_key=KEY,
            partition_by=PARTITION,
            ordering=ORDERING,
            type="merge_on_read",
            name="flights_log",
            spark=self.engine.session,
        ).bulk_insert(frame)
        appended = 0
        for month in self.flights.months[:_LOGGED_MONTHS]:
            result = self._upsert(month)
            expect(f"files rewritten for month {month}", result.files_updated + result.files_created, 0)
            appended += result.log_files_appended
        return f"{appended} log files, {result.backlog:.1f} not compacted per file slice; no base file was rewritten"

    def read_merged(self) -> str:
        """Count the flights that took off; only the log files contain their departure times."""
        flown = self.engine.count(self.engine.read(self.table, where="dep_time IS NOT NULL"))
        expect("flights that took off, with log files", flown, self._taken_off(_LOGGED_MONTHS))
        stale = self.table.to_arrow(columns=["dep_time"], view="read_optimized")
        expect("flights that took off, without log files", len(stale) - stale["dep_time"].null_count, 0)
        return f"{flown:,} flights took off with log files, 0 without"

    def plan_and_go_on(self) -> str:
        """Plan a compaction of the log files so far, then write; the writer does not wait for the compaction."""
        instant = self.table.schedule_compaction()
        expect("pending plans", self.table.pending_compactions().instants, [instant])
        self._upsert(self.flights.months[_LOGGED_MONTHS])
        flown = self.engine.count(self.engine.read(self.table, where="dep_time IS NOT NULL"))
        expect("flights that took off", flown, self._taken_off(_LOGGED_MONTHS + 1))
        return f"{flown:,} flights took off; the compaction is pending"

    def compact(self) -> str:
        """Merge the log files of the plan with their base files; the newest month stays in log files."""
        before = self.table.to_arrow(columns=self.flights.flown.column_names)
        result = self.table.compact()
        expect("pending plans", self.table.pending_compactions().instants, [])
        expect_same_rows(
            "the table after and before", self.table.to_arrow(columns=self.flights.flown.column_names), before
        )
        return f"{result.counts['log_files']} log files of {result.counts['file_slices']} file slices were compacted"

    def compare_with_hudi_rs(self) -> str:
        """Compare every value of every row in hudi-rs and hoodie."""
        ours = self.table.to_arrow()
        expect_same_rows("hudi-rs and hoodie", read_with_hudi_rs(self.table_path), ours)
        return f"{ours.num_rows:,} rows of {ours.num_columns} columns are equal"

    @property
    def table(self) -> hoodie.Table:
        """The table with a new handle, which has no state of earlier chapters."""
        return hoodie.open(self.table_path, spark=self.engine.session)

    def _upsert(self, month: int) -> Any:
        result = self.table.upsert(self.engine.load(actuals_file(self.landing, month)))
        expect(f"flights of month {month} updated", result.updated, self.flights.actuals(month).num_rows)
        return result

    def _taken_off(self, months: int) -> int:
        """Count the flights of the first `months` months that took off, in the CSV."""
        flown = self.flights.flown
        return int(pc.sum(pc.is_in(flown["month"], value_set=pa.array(self.flights.months[:months]))).as_py())
