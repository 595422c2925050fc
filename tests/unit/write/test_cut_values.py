"""Python values that Arrow would cut or change when it infers their type are refused, with column and row."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import hoodie
from hoodie.errors import SchemaMismatchError
from hoodie.format.schema.fit import infer
from tests.support.tables import new_table

FINE = pd.Timestamp("2020-01-01 00:00:00.123456789")
PLAIN = pd.Timestamp("2020-01-01 00:00:00.123456")
AT = pa.timestamp("us")
SCHEMA = pa.schema(
    [
        ("id", AT),
        ("at", AT),
        ("list", pa.list_(AT)),
        ("struct", pa.struct([("at", AT)])),
        ("map", pa.map_(pa.string(), AT)),
        ("deep", pa.list_(pa.struct([("list", pa.list_(AT))]))),
    ]
)


def row_with(value: Any) -> dict[str, Any]:
    """A row with the time in every column."""
    return {
        "id": value,
        "at": value,
        "list": [PLAIN, value],
        "struct": {"at": value},
        "map": {"a": value},
        "deep": [{"list": []}, {"list": [value]}],
    }


FORMS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "dicts": lambda row: [{**row_with(PLAIN), "id": datetime(2019, 1, 1)}, row],
    "columns": lambda row: {name: [row_with(PLAIN)[name], row[name]] for name in row},
    "objects of pandas": lambda row: pd.DataFrame(
        {name: pd.Series([row_with(PLAIN)[name], row[name]], dtype=object) for name in row}
    ),
}
WRITES: dict[str, Callable[[hoodie.Table, Any], Any]] = {
    "upsert": lambda table, data: table.upsert(data),
    "insert": lambda table, data: table.insert(data),
    "bulk_insert": lambda table, data: table.bulk_insert(data),
    "insert_overwrite": lambda table, data: table.insert_overwrite(data),
    "partial upsert": lambda table, data: table.upsert(data, partial=True),
    "merge": lambda table, data: table.merge(data, "t.id = s.id").when_not_matched_insert_all().execute(),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("fine", [FINE, np.datetime64("2020-01-01T00:00:00.123456789")], ids=["pandas", "numpy"])
def test_no_write_cuts_nanoseconds(form: str, fine: Any) -> None:
    table = new_table(SCHEMA)
    for name in SCHEMA.names:
        data = FORMS[form]({**row_with(PLAIN), name: row_with(fine)[name]})
        for write in WRITES.values() if name in ("id", "deep") else (WRITES["upsert"],):
            with pytest.raises(SchemaMismatchError, match=rf"column '{name}[a-z.]*', row 1: "):
                write(table, data)
    assert table.history().num_rows == 0


def test_times_without_nanoseconds_are_taken() -> None:
    table = new_table(SCHEMA)
    for form in FORMS.values():
        table.upsert(form(row_with(PLAIN)))
    found = table.to_arrow(columns=["id", "deep"], where="id = TIMESTAMP '2020-01-01 00:00:00.123456'").to_pylist()
    assert found == [{"id": PLAIN.to_pydatetime(), "deep": row_with(PLAIN.to_pydatetime())["deep"]}]


def test_no_look_up_cuts_nanoseconds() -> None:
    table = new_table(SCHEMA, [row_with(PLAIN)])
    one = [FINE, [FINE], {PLAIN, FINE}, np.array([FINE]), pd.Series([FINE], dtype=object), pd.DatetimeIndex([FINE])]
    one += [np.datetime64(FINE.value, "ns"), pa.scalar(FINE.value, pa.timestamp("ns")), pd.Series([FINE])]
    for keys in (*one, [{"id": FINE}], {"id": [FINE]}, pd.DataFrame({"id": pd.Series([FINE], dtype=object)})):
        for look_up in (table.read_keys, table.record_locations, table.delete):
            with pytest.raises(SchemaMismatchError, match=r"column '(keys|id)'"):
                look_up(keys)
    with pytest.raises(SchemaMismatchError, match="column 'id'"):
        table.filter_exists([{"id": FINE}])
    assert table.read_keys(PLAIN).num_rows == 1


CHANGED: dict[str, list[Any]] = {
    "nanoseconds": [PLAIN, FINE],
    "nanoseconds of durations": [pd.Timedelta(1, "s"), pd.Timedelta(5, "ns")],
    "time of day": [date(2020, 1, 1), datetime(2020, 1, 1, 5)],
    "zone": [datetime(2020, 1, 1), datetime(2020, 1, 1, tzinfo=UTC)],
    "text as bytes": ["a", b"\xff"],
    "surrogate": ["a", "\ud800"],
    "rounded": [0.5, (1 << 53) + 1],
    "too large": [1, 1 << 70],
    "no number": [Decimal(1), Decimal("NaN")],
    "unknown": [1, object()],
}


@pytest.mark.parametrize("case", CHANGED)
def test_values_that_arrow_would_change_are_refused_at_every_depth(case: str) -> None:
    values = CHANGED[case]
    wrapped: list[list[Any]] = [
        values,
        [values],
        [[value] for value in values],
        [{"f": value} for value in values],
        [[{"f": value}, None] for value in values],
        [{"f": {"g": values}}],
    ]
    for column in wrapped:
        with pytest.raises(SchemaMismatchError, match="column 'c'"):
            infer(column, "c")


def test_missing_values_of_pandas_are_no_other_type() -> None:
    assert infer([PLAIN, pd.NaT, None], "c", from_pandas=True).null_count == 2
    assert infer([{"f": PLAIN}, {"f": pd.NaT}], "c", from_pandas=True).null_count == 0
