"""Files of bulk writes of a DataFrame with many tasks and partitions."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hoodie
from hoodie.view.slices import list_slices
from tests.contract.table_lanes import ON_WORKERS, Lane
from tests.support.rows import assert_same_rows

pytestmark = [pytest.mark.spark, pytest.mark.connect]
_ROWS, _TASKS, _PARTS = 240, 8, 3
_ARROW = pa.table({"id": range(_ROWS), "n": range(_ROWS), "p": [number % _PARTS for number in range(_ROWS)]})
_TYPES = "id long, n long, p long"


def _frame(spark: Any, evaluated: Path) -> Any:
    """Rows in eight tasks, of which each leaves a file when it is evaluated."""

    def step(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        (evaluated / uuid.uuid4().hex).touch()
        yield from batches

    evaluated.mkdir()
    frame = spark.range(0, _ROWS, 1, _TASKS).selectExpr("id", "id AS n", f"id % {_PARTS} AS p")
    return frame.mapInArrow(step, _TYPES)


def _files(table: hoodie.Table) -> list[int]:
    """The number of base files of each partition."""
    return sorted(Counter(found.partition_path for found in list_slices(table.view())).values())


def _check(table: hoodie.Table) -> None:
    rows = table.to_arrow(columns=["id", "n", "p", "_hoodie_commit_seqno"])
    assert_same_rows(rows.select(["id", "n", "p"]), _ARROW, key="id")
    assert len(set(rows["_hoodie_commit_seqno"].to_pylist())) == _ROWS
    assert table.verify(full=True).ok


@pytest.mark.parametrize("options", [{}, ON_WORKERS], ids=["driver", "workers"])
def test_rows_of_a_partition_come_together(spark: Any, tmp_path: Path, options: dict[str, str]) -> None:
    evaluated = tmp_path / "evaluated"
    frame = _frame(spark, evaluated)
    table = Lane(spark, tmp_path).create(_ARROW.schema, partition_by="p")
    done = table.bulk_insert(frame, properties=options)
    assert (done.inserted, done.files_created, done.notes) == (_ROWS, _PARTS, ())
    assert _files(table) == [1] * _PARTS
    assert len(list(evaluated.iterdir())) == _TASKS
    _check(table)
    again = table.insert_overwrite(frame, distribution="partition", properties=options)
    assert (again.inserted, again.deleted) == (_ROWS, _ROWS)
    assert _files(table) == [1] * _PARTS
    _check(table)


def test_without_a_distribution_each_task_writes_its_own_files(spark: Any, tmp_path: Path) -> None:
    table = Lane(spark, tmp_path).create(_ARROW.schema, partition_by="p")
    done = table.bulk_insert(_frame(spark, tmp_path / "evaluated"), distribution="none")
    assert _files(table) == [_TASKS] * _PARTS
    [note] = done.notes
    assert note.startswith("24 of 24 new files are small")
    _check(table)


def test_automatic_keys_of_rows_that_come_together(spark: Any, tmp_path: Path) -> None:
    """They are those that the tasks of the data gave."""
    path = tmp_path / "table"
    table = hoodie.create(path, _ARROW.schema, partition_by="p", spark=spark)
    done = table.bulk_insert(_frame(spark, tmp_path / "evaluated"))
    rows = table.to_arrow(columns=["id", "_hoodie_record_key"])
    per_task = _ROWS // _TASKS
    expected = {n: f"{done.instant}_{n // per_task}_{n % per_task}" for n in range(_ROWS)}
    assert dict(zip(*(column.to_pylist() for column in rows.columns), strict=True)) == expected
    assert _files(table) == [1] * _PARTS
