"""The work of each operation grows with the number of columns, not with its square.

Calls are counted, not timed: the verdict is the same on a busy machine. `tests/tidy/test_look_ups.py` finds look-ups
that no call shows.
"""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType

import pyarrow as pa
import pytest

import hoodie
from tests.support.samples import sample_of

FEW, MANY = 12, 48
# Each call of these visits all columns.
OF_ALL_COLUMNS = {
    "pyarrow/parquet/core.py:schema_arrow",
    "pyarrow/parquet/core.py:_build_nested_paths",
    "hoodie/files/base_rows.py:has_types",
    "hoodie/format/avro/schema.py:avro_to_arrow",
    "hoodie/format/schema/conform.py:conform",
    "hoodie/format/schema/table_schema.py:with_meta_fields",
    "hoodie/format/schema/table_schema.py:without_meta_fields",
    "hoodie/records/change.py:change_schema",
    "hoodie/records/sql/translate.py:__post_init__",
    "list.index",
    "list.count",
}
SLACK = 20
"""Calls that differ between two runs, such as the beats of a lock."""


@contextmanager
def counted_calls() -> Iterator[Counter[str]]:
    """Count the calls of each function, in all threads that start meanwhile."""
    found: Counter[str] = Counter()
    codes: Counter[CodeType] = Counter()

    def note(frame: FrameType, event: str, function: object) -> None:
        if event == "call":
            codes[frame.f_code] += 1
        elif event == "c_call":
            found[str(getattr(function, "__qualname__", function))] += 1

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        yield found
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
        for code, count in codes.items():
            path = code.co_filename.rpartition("/src/")[2].rpartition("/site-packages/")[2]
            found[f"{path}:{code.co_name}"] += count


def rows(columns: int, *keys: str, value: int = 0) -> pa.Table:
    """Rows of the keys, with columns of integers, texts and doubles."""
    kinds = (pa.array([value] * len(keys)), pa.array([str(value)] * len(keys)), pa.array([value / 2] * len(keys)))
    given = {f"c{number:04}": kinds[number % 3] for number in range(columns)}
    return pa.table({"id": pa.array(keys), "ts": pa.array([value] * len(keys)), **given})


def operations(path: Path, table_type: str, columns: int) -> Iterator[tuple[str, Callable[[], object]]]:
    """The life of a table with so many columns, as named steps; each opens the table anew."""
    first = rows(columns, "a", "b")
    names = {"id", "ts"}
    computed = {
        name: f"{name} || 'x'" if name in first.column_names[3::3] else f"{name} + 1" for name in first.column_names
    }
    sums = {name: text for name, text in computed.items() if name not in names}

    def table() -> hoodie.Table:
        return hoodie.open(path, spark=False)

    def merge() -> object:
        merger = table().merge(rows(columns, "b", "d", value=5), on="t.id = s.id")
        merger = merger.when_matched_update({name: f"s.{text}" for name, text in sums.items()}, "s.ts > 0")
        return merger.when_not_matched_insert({name: f"s.{name}" for name in first.column_names}).execute()

    yield (
        "create",
        lambda: hoodie.create(path, first.schema, record_key="id", ordering="ts", type=table_type, spark=False),
    )
    yield "bulk_insert", lambda: table().bulk_insert(first)
    yield "upsert", lambda: table().upsert(rows(columns, "b", "c", value=1))
    yield "partial upsert", lambda: table().upsert(rows(columns, "b", value=2).drop_columns(["c0001"]), partial=True)
    yield "update", lambda: table().update(sums, where="c0000 >= 0")
    yield "merge", merge
    yield "delete", lambda: table().delete(["a"])
    yield "read", lambda: table().to_arrow()
    yield "read of some", lambda: table().to_arrow(first.column_names, where="c0000 > 0 AND c0001 <> ''")
    yield "read of keys", lambda: table().read_keys(["b"])
    yield "changes", lambda: table().changes()
    if table_type == "merge_on_read":
        yield "compaction", lambda: table().compact()
    yield "new column", lambda: table().upsert(rows(columns + 1, "b", value=9))
    yield "clustering", lambda: table().cluster()
    yield "verify", lambda: table().verify(full=True)


def calls_by_operation(path: Path, table_type: str, columns: int) -> dict[str, Counter[str]]:
    found = {}
    for name, call in operations(path, table_type, columns):
        with counted_calls() as found[name]:
            call()
    return found


@pytest.mark.later
@pytest.mark.parametrize("table_type", sample_of(["copy_on_write", "merge_on_read"], 1, "wide tables"))
def test_the_work_grows_with_the_number_of_columns(tmp_path: Path, table_type: str) -> None:
    for _, call in operations(tmp_path / "first", table_type, 3):  # What is imported and cached for a process.
        call()
    few = calls_by_operation(tmp_path / "few", table_type, FEW)
    many = calls_by_operation(tmp_path / "many", table_type, MANY)
    wrong = [
        f"{operation}: {function} {few[operation][function]} -> {calls}"
        for operation, found in many.items()
        for function, calls in found.items()
        if calls > few[operation][function] * (1 if function in OF_ALL_COLUMNS else MANY / FEW) + SLACK
    ]
    assert not wrong
    assert many["read"]["hoodie/files/base_file.py:stored_rows"]
    assert many["update"]["hoodie/format/schema/conform.py:conform"]
