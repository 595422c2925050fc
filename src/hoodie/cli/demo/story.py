"""The demo's story: the operations on a table with checks; each chapter returns its result as text.

`Story` is the first part. `LogStory` is the second: the same flights in a merge-on-read table, and a compaction that
blocks no writer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

import hoodie
from hoodie.cli.demo.engines import DemoEngine
from hoodie.cli.demo.flights import KEY, ORDERING, PARTITION, Flights, actuals_file, schedules_folder
from hoodie.errors import HoodieError
from hoodie.records.change import RECORD_KEY
from hoodie.write.result import WriteResult

Chapter = tuple[str, Callable[[], str]]
_KEYS: Final[Mapping[str, Any]] = {"record_key": KEY, "partition_by": PARTITION, "ordering": ORDERING}
_LOGGED_MONTHS = 2
"""Months whose actual times are logged before the compaction is planned; the next month is logged after that."""


class DemoError(HoodieError):
    """A result of the demo is not the expected result, or hudi-rs is not installed."""


@dataclass(kw_only=True)
class _Part:
    """One run of a part of the story, on a table that does not exist yet."""

    engine: DemoEngine
    flights: Flights
    landing: Path
    table_path: Path

    @property
    def table(self) -> hoodie.Table:
        """The table with a new handle, which has no state of earlier chapters."""
        return hoodie.open(self.table_path, spark=self.engine.session)

    def create(self, path: Path, columns: Any, **more: Any) -> hoodie.Table:
        return hoodie.create(path, columns, **_KEYS, **more, spark=self.engine.session)

    def upsert(self, month: int) -> WriteResult:
        """Merge a month's actual times into the schedule."""
        result = self.table.upsert(self.engine.load(actuals_file(self.landing, month)))
        expect(f"flights of month {month} updated", result.updated, self.flights.actuals(month).num_rows)
        return result

    def compare_with_hudi_rs(self) -> str:
        """Compare every value of every row in hudi-rs and hoodie."""
        ours = self.table.to_arrow()
        expect_same_rows("hudi-rs and hoodie", read_with_hudi_rs(self.table_path), ours)
        return f"{ours.num_rows:,} rows of {ours.num_columns} columns are equal"


@dataclass(kw_only=True)
class Story(_Part):
    """The first part, on a copy-on-write table."""

    instants: list[str] = field(default_factory=list)
    """Instants of the monthly upserts."""

    def chapters(self) -> Iterator[Chapter]:
        yield "bulk_insert: the year's schedule", self.insert_schedules
        for month in self.flights.months:
            yield f"upsert: actual times of month {month}", partial(self.upsert_actuals, month)
        yield "delete: cancelled flights", self.delete_cancelled
        yield "upsert: an outdated correction changes nothing", self.upsert_late_correction
        yield f"read: count and sums {self.engine.name}", self.read_snapshot
        yield "read: as of the instant before the deletion", self.read_before_deletion
        yield "read: changes since the second-last upsert", self.read_changes
        if self.engine.has_streams:
            yield "stream: the changes since the second-last upsert, into a second table", self.stream_changes
        yield "ingest: flights of the last month that were late, and on to those that were very late", self.flow_on
        yield "read: three flights by key", self.look_up
        yield "check: hudi-rs reads the same table", self.compare_with_hudi_rs

    def insert_schedules(self) -> str:
        """Create the table and write the schedule in one pass."""
        frame = self.engine.load(schedules_folder(self.landing))
        result = self.create(self.table_path, frame, name="flights").bulk_insert(frame)
        expect("flights inserted", result.inserted, self.flights.rows.num_rows)
        return _wrote(result)

    def upsert_actuals(self, month: int) -> str:
        """Merge a month's actual times into the schedule, which contains all its flights."""
        result = self.upsert(month)
        self.instants.append(result.instant)
        expect(f"flights of month {month} that the schedule does not contain", result.inserted, 0)
        return _wrote(result)

    def delete_cancelled(self) -> str:
        """Delete the flights without a departure time."""
        result = self.table.delete_where("dep_time IS NULL")
        expect("cancelled flights deleted", result.deleted, self.flights.cancelled.num_rows)
        return _wrote(result)

    def upsert_late_correction(self) -> str:
        """Upsert a flight with a smaller ordering value than the stored flight, which must change nothing."""
        result = self.table.upsert(self.engine.load(self.landing / "late-correction.parquet"))
        expect("flights inserted by the late correction", result.inserted, 0)
        outdated = self.flights.late_correction()
        kept = self.table.to_arrow(columns=["dep_delay", ORDERING], where=_condition(outdated)).to_pylist()
        true = self.flights.actuals(self.flights.months[-1]).slice(0, 1)
        expect("the corrected flight", kept, true.select(["dep_delay", ORDERING]).to_pylist())
        return f"dep_delay is still {kept[0]['dep_delay']}, not {outdated['dep_delay'][0]}"

    def read_snapshot(self) -> str:
        """Count the rows and compute sums by month."""
        found = self.engine.read(self.table)
        expect("flights in the table", self.engine.count(found), self.flights.flown.num_rows)
        sums = self.engine.sums_by_month(found)
        expect("delays and distances by month", sums, self.engine.sums_by_month(self.flights.flown))
        return f"{self.flights.flown.num_rows:,} flights; delays and distances of each month are equal to the CSV"

    def read_before_deletion(self) -> str:
        """Read the table as of the last upsert of a month, which still contains the cancelled flights."""
        before = self.instants[-1]
        found = self.engine.count(self.engine.read(self.table, as_of=before))
        expect("flights before the deletion", found, self.flights.rows.num_rows)
        cancelled = self.engine.count(self.engine.read(self.table, as_of=before, where="dep_time IS NULL"))
        expect("cancelled flights before the deletion", cancelled, self.flights.cancelled.num_rows)
        return f"{self.flights.rows.num_rows:,} flights, {cancelled:,} of them cancelled"

    def read_changes(self) -> str:
        """Read the changes since the second-last upsert of a month, which are the flights of the last month."""
        months = self.engine.rows(self._changes())["month"]
        last = self.flights.months[-1] if len(self.instants) > 1 else None
        expected = self.flights.flown if last is None else self.flights.actuals(last)
        expect("flights changed since", len(months), expected.num_rows)
        changed = sorted(pc.unique(months).to_pylist())
        expect("months of the changed flights", changed, sorted(pc.unique(expected["month"]).to_pylist()))
        return f"{expected.num_rows:,} flights of month {last}"

    def stream_changes(self) -> str:
        """Let a stream take the same changes to a second table, and start it again: it has nothing to do."""
        names = [*KEY, ORDERING, "dep_delay"]
        schema = self.table.schema
        columns = pa.schema([schema.field(name) for name in names])
        copy = self.create(self.table_path.with_name("flights_copy"), columns)
        for _ in range(2):
            stream = self.engine.session.readStream.format("hoodie").option("columns", ",".join(names))
            changed = stream.option("since", self._since or "earliest").load(str(self.table_path))
            checkpoint = str(self.landing / "checkpoint")
            copy.stream(changed, checkpoint=checkpoint, trigger={"availableNow": True}).awaitTermination()
        changes = self.engine.rows(self._changes().select(*names))
        expect_same_rows("the copy and the changes", copy.to_arrow(columns=names), changes)
        expect("batches of the stream", len(copy.timeline.completed()), 1)
        return f"{copy.count():,} flights in one batch; started again, the stream wrote nothing"

    def flow_on(self) -> str:
        """Let one flow take changes to a second table, and another flow those of the second table to a third one."""
        late, very_late = (self.table_path.with_name(name) for name in ("flights_late", "flights_very_late"))

        def run() -> list[int]:
            """Run both flows; return how many rows each wrote."""
            found = []
            flows = (self.table_path, self._since or "earliest", late, 60), (late, "snapshot", very_late, 180)
            for source, start, target, minutes in flows:
                result = hoodie.ingest(
                    {"kind": "hudi", "path": str(source), "start": start},
                    str(target),
                    transform=partial(_delayed, minutes=minutes),
                    create=_KEYS,
                    spark=self.engine.session,
                )
                found.append(result.inserted)
            return found

        written = run()
        changes = self.engine.rows(self._changes())
        expected = [changes.filter(pc.field("dep_delay") >= minutes).num_rows for minutes in (60, 180)]
        expect("late flights, and very late ones", written, expected)
        expect("flights of a second run", run(), [0, 0])
        return (
            f"{written[0]:,} flights, {written[1]:,} of them to the third table; started again, the flows wrote nothing"
        )

    def look_up(self) -> str:
        """Read two flights that took place and one deleted flight by key."""
        first, last = self.flights.flown.slice(0, 1), self.flights.flown.slice(self.flights.flown.num_rows - 1)
        wanted = pa.concat_tables([first, last, self.flights.cancelled.slice(0, 1)])
        found = self.engine.rows(self.table.read_keys(wanted.select(KEY))).select([*KEY, "dep_time"])
        rows = sorted(tuple(row.values()) for row in found.to_pylist())
        expected = pa.concat_tables([first, last]).select([*KEY, "dep_time"])
        expect("flights found by key", rows, sorted(tuple(row.values()) for row in expected.to_pylist()))
        return f"{len(rows)} flights found; the deleted flight was not found"

    def compare_with_hudi_rs(self) -> str:
        """Compare every value of every row: hudi-rs with hoodie, and hoodie with the CSV."""
        outcome = super().compare_with_hudi_rs()
        flown = self.flights.flown
        expect_same_rows("hoodie and the CSV", self.table.to_arrow(columns=flown.column_names), flown)
        return outcome

    @property
    def _since(self) -> str | None:
        """The second-last upsert of a month; None for the begin of the table."""
        return self.instants[-2] if len(self.instants) > 1 else None

    def _changes(self) -> Any:
        return self.table.changes(since=self._since)


def expect(what: str, found: object, expected: object) -> None:
    """Check one result. Raises: DemoError if it is not the expected result."""
    if found != expected:
        raise DemoError(f"the demo failed: {what}: expected {expected}, found {found}")


def expect_same_rows(who: str, found: pa.Table, expected: pa.Table) -> None:
    """Check that two tables contain the same rows, in any order.

    Raises: DemoError. The message names the first column that differs, and a flight with a difference.
    """
    expect(f"columns of {who}", found.column_names, expected.column_names)
    expect(f"rows of {who}", found.num_rows, expected.num_rows)
    order = [(name, "ascending") for name in KEY]
    ours, theirs = expected.sort_by(order), found.cast(expected.schema).sort_by(order)
    for name in expected.column_names:
        left, right = theirs[name].combine_chunks(), ours[name].combine_chunks()
        if not left.equals(right):
            number = next(i for i, (a, b) in enumerate(zip(left, right, strict=True)) if a != b)
            flight = ours.select(KEY).slice(number, 1).to_pylist()
            raise DemoError(
                f"the demo failed: {who} have different values of {name!r} for flight {flight}: {left[number]} and "
                f"{right[number]}"
            )


def _wrote(result: WriteResult) -> str:
    counts = {"inserted": result.inserted, "updated": result.updated, "deleted": result.deleted}
    counts |= {"ignored": result.ignored, "duplicates": result.duplicates}
    said = ", ".join(f"{count:,} {what}" for what, count in counts.items() if count)
    return f"{said or 'nothing changed'} · {result.files_created + result.files_updated} files"


def _condition(flight: pa.Table) -> str:
    """Return a Spark SQL condition that selects the only flight of a table."""
    values = flight.select(KEY).to_pylist()[0]
    return " AND ".join(f"{name} = {value!r}" for name, value in values.items())


def read_with_hudi_rs(path: Path) -> pa.Table:
    """Read all rows of a table with hudi-rs, an independent reader.

    Raises: DemoError if hudi-rs is not installed, or returns no rows.
    """
    try:
        from hudi import HudiTableBuilder
    except ImportError as error:
        raise DemoError("hudi-rs, which checks the table, is not installed: pip install 'hoodie[demo]'") from error
    batches = [pa.record_batch(batch) for batch in HudiTableBuilder.from_base_uri(str(path)).build().read()]
    if not batches:
        raise DemoError(f"the demo failed: hudi-rs returned no rows of {path}; expected rows with a {RECORD_KEY}")
    return pa.Table.from_batches(batches)


class LogStory(_Part):
    """The second part, on a merge-on-read table."""

    def chapters(self) -> Iterator[Chapter]:
        yield "merge-on-read: the schedule, and two months in log files", self.write_logs
        yield "read: base files and log files are merged", self.read_merged
        yield "compact: plan, and upsert the next month", self.plan_and_go_on
        yield "compact: execute the plan; the rows are unchanged", self.compact
        yield "check: hudi-rs reads this table too", self.compare_with_hudi_rs

    def write_logs(self) -> str:
        """Write the schedule in one pass, then append the changes of two months to log files."""
        frame = self.engine.load(schedules_folder(self.landing))
        self.create(self.table_path, frame, type="merge_on_read", name="flights_log").bulk_insert(frame)
        appended = 0
        for month in self.flights.months[:_LOGGED_MONTHS]:
            result = self.upsert(month)
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
        self.upsert(self.flights.months[_LOGGED_MONTHS])
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

    def _taken_off(self, months: int) -> int:
        """Count the flights of the first `months` months that took off, in the CSV."""
        flown = self.flights.flown
        return int(pc.sum(pc.is_in(flown["month"], value_set=pa.array(self.flights.months[:months]))).as_py())


def _delayed(rows: Any, minutes: int) -> Any:
    """Return the flights with at least so many minutes of delay: of a DataFrame, or of an Arrow table or reader."""
    if hasattr(rows, "where"):
        return rows.where(f"dep_delay >= {minutes}")
    table = rows if isinstance(rows, pa.Table) else rows.read_all()
    return table.filter(pc.field("dep_delay") >= minutes)
