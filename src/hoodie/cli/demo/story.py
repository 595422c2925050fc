"""The first part of the demo: the operations on a table, with checks. Each chapter returns its result as text."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

import hoodie
from hoodie.cli.demo.engines import DemoEngine, arrow_sums_by_month
from hoodie.cli.demo.flights import KEY, ORDERING, PARTITION, Flights, actuals_file, schedules_folder
from hoodie.errors import HoodieError
from hoodie.records.change import RECORD_KEY
from hoodie.write.result import WriteResult

Chapter = tuple[str, Callable[[], str]]


class DemoError(HoodieError):
    """A result of the demo is not the expected result, or hudi-rs is not installed."""


@dataclass(slots=True, kw_only=True)
class Story:
    """One run of this part, on a table that does not exist yet."""

    engine: DemoEngine
    flights: Flights
    landing: Path
    table_path: Path
    instants: list[str] = field(default_factory=list)
    """Instants of the monthly upserts."""

    def chapters(self) -> Iterator[Chapter]:
        """Return the title and the function of each chapter, in order."""
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
        yield "read: three flights by key", self.look_up
        yield "check: hudi-rs reads the same table", self.compare_with_hudi_rs

    def insert_schedules(self) -> str:
        """Create the table and write the schedule in one pass."""
        frame = self._arrived(schedules_folder(self.landing))
        table = hoodie.create(
            self.table_path,
            frame,
            record_key=KEY,
            partition_by=PARTITION,
            ordering=ORDERING,
            name="flights",
            spark=self.engine.session,
        )
        result = table.bulk_insert(frame)
        expect("flights inserted", result.inserted, self.flights.rows.num_rows)
        return _wrote(result)

    def upsert_actuals(self, month: int) -> str:
        """Merge a month's actual times into the schedule."""
        result = self.table.upsert(self._arrived(actuals_file(self.landing, month)))
        self.instants.append(result.instant)
        expect(f"flights of month {month} updated", result.updated, self.flights.actuals(month).num_rows)
        expect(f"flights of month {month} that the schedule does not contain", result.inserted, 0)
        return _wrote(result)

    def delete_cancelled(self) -> str:
        """Delete the flights without a departure time."""
        result = self.table.delete_where("dep_time IS NULL")
        expect("cancelled flights deleted", result.deleted, self.flights.cancelled.num_rows)
        return _wrote(result)

    def upsert_late_correction(self) -> str:
        """Upsert a flight with a smaller ordering value than the stored flight, which must change nothing."""
        result = self.table.upsert(self._arrived(self.landing / "late-correction.parquet"))
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
        expect("delays and distances by month", sums, arrow_sums_by_month(self.flights.flown))
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
        changes = self.table.changes(since=self.instants[-2] if len(self.instants) > 1 else None)
        months = self.engine.rows(changes)["month"]
        last = self.flights.months[-1] if len(self.instants) > 1 else None
        expected = self.flights.flown if last is None else self.flights.actuals(last)
        expect("flights changed since", len(months), expected.num_rows)
        changed = sorted(pc.unique(months).to_pylist())
        expect("months of the changed flights", changed, sorted(pc.unique(expected["month"]).to_pylist()))
        return f"{expected.num_rows:,} flights of month {last}"

    def stream_changes(self) -> str:
        """Let a stream take the same changes to a second table, and start it again: it has nothing to do."""
        since = self.instants[-2] if len(self.instants) > 1 else "earliest"
        names = [*KEY, ORDERING, "dep_delay"]
        schema = self.table.schema
        copy = hoodie.create(
            self.table_path.with_name("flights_copy"),
            pa.schema([schema.field(name) for name in names]),
            record_key=KEY,
            partition_by=PARTITION,
            ordering=ORDERING,
            spark=self.engine.session,
        )
        for _ in range(2):
            stream = self.engine.session.readStream.format("hoodie").option("columns", ",".join(names))
            changed = stream.option("since", since).load(str(self.table_path))
            checkpoint = str(self.landing / "checkpoint")
            copy.stream(changed, checkpoint=checkpoint, trigger={"availableNow": True}).awaitTermination()
        changes = self.table.changes(since=None if since == "earliest" else since).select(*names)
        expect_same_rows("the copy and the changes", copy.to_arrow(columns=names), self.engine.rows(changes))
        expect("batches of the stream", len(copy.timeline.completed()), 1)
        return f"{copy.count():,} flights in one batch; started again, the stream wrote nothing"

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
        ours = self.table.to_arrow()
        theirs = read_with_hudi_rs(self.table_path)
        expect_same_rows("hudi-rs and hoodie", theirs, ours)
        expect_same_rows("hoodie and the CSV", ours.select(self.flights.flown.column_names), self.flights.flown)
        return f"{ours.num_rows:,} rows of {ours.num_columns} columns are equal"

    @property
    def table(self) -> hoodie.Table:
        """The table with a new handle, which has no state of earlier chapters."""
        return hoodie.open(self.table_path, spark=self.engine.session)

    def _arrived(self, file: Path) -> Any:
        return self.engine.load(file)


def expect(what: str, found: object, expected: object) -> None:
    """Check one result.

    Raises: DemoError if it is not the expected result.
    """
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
