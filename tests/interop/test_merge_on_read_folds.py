"""Which version of a record counts among a base file and its logs: we and the JVM do the same, and read each other.

Deletes without an ordering value wipe out what is older and leave nothing behind: a late row after one loses to the row
of the base file, which is back then. The JVM has it so, before and after compaction.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

import hoodie
from tests.interop.judges import Jvm, assert_index_is_data, read_with_hudi_rs
from tests.support.rows import assert_same_rows

SCHEMA = pa.schema([("id", pa.string()), ("step", pa.int32()), ("ord", pa.int64()), ("_hoodie_is_deleted", pa.bool_())])
COLUMNS = ["id", "step", "ord"]
PLAIN_JVM = {"hoodie.compact.inline": "false", "hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false"}
STORED = "row 20"
FIRST = ("delete", "gone 10", "gone 20", "gone 30", "row 10", "row 20", "row 30")
THEN = ("", *FIRST)
LAST = ("", "delete", "row 10", "row 20", "gone 20")

Case = tuple[str, ...]
"""What happens to one record after it was stored: `delete`, an upsert of a row, or of one that says it is deleted."""


def cases(*steps: Sequence[str]) -> list[Case]:
    """Every mix of the steps; an empty step is the last one."""
    mixes = itertools.product(*steps)
    return [mix for mix in mixes if not any(a == "" and b for a, b in itertools.pairwise(mix))]


def change(case: Case, step: int) -> dict[str, object]:
    """The row that step `step` of a case writes; step 0 stores it."""
    kind, _, ordering = (STORED if step == 0 else case[step - 1]).partition(" ")
    return {"id": "/".join(case), "step": step, "ord": int(ordering or 0), "_hoodie_is_deleted": kind == "gone"}


def batches(found: Sequence[Case]) -> list[tuple[str, pa.Table]]:
    """Operations and rows: the stored rows first, then an upsert and a delete for every step."""
    written = [("upsert", [change(case, 0) for case in found])]
    for step in range(1, len(found[0]) + 1):
        deletes = [change(case, step) for case in found if case[step - 1] == "delete"]
        upserts = [change(case, step) for case in found if case[step - 1] not in ("", "delete")]
        written += [("upsert", upserts), ("delete", deletes)]
    return [(operation, pa.Table.from_pylist(rows, schema=SCHEMA)) for operation, rows in written if rows]


def write_theirs(jvm: Jvm, path: Path, found: Sequence[Case], ordering: str | None) -> None:
    for operation, rows in batches(found):
        jvm.write(
            rows, path, table_name="cases", key="id", ordering=ordering, operation=operation,
            table_type="MERGE_ON_READ", options=PLAIN_JVM,
        )  # fmt: skip


def write_ours(path: Path, found: Sequence[Case], ordering: str | None, index: str) -> None:
    table = hoodie.create(
        path, SCHEMA, record_key="id", ordering=ordering, type="merge_on_read", index=index, name="cases"
    )
    for operation, rows in batches(found):
        if operation == "delete":
            table.delete(rows.select(["id"]))
        else:
            table.upsert(rows)


def snapshot(jvm: Jvm, path: Path) -> pa.Table:
    """The rows as the JVM reads them, and we and hudi-rs as well, meta columns included."""
    rows = jvm.read(path)
    assert_same_rows(hoodie.open(path).to_arrow(), rows, key="id", meta=True)
    assert_same_rows(read_with_hudi_rs(path), rows, key="id", meta=True)
    return rows.select(COLUMNS)


@pytest.mark.parametrize(
    ("ordering", "found", "some"),
    [
        # A delete leaves nothing behind: the late row meets the stored one. One with an ordering value meets it itself.
        pytest.param(
            "ord",
            cases(FIRST, THEN, LAST),
            {
                "delete/row 10/": 0,
                "delete/row 20/": 2,
                "delete/gone 30/row 20": 3,
                "gone 30/row 20/": None,
                "gone 10/row 20/": 2,
            },
            id="event time",
        ),
        pytest.param(None, cases(FIRST, THEN), {"delete/row 10": 2, "gone 30/row 10": 2}, id="commit time"),
    ],
)
def test_the_same_changes_leave_the_same_rows(
    jvm: Jvm, tmp_path: Path, ordering: str | None, found: list[Case], some: dict[str, int | None]
) -> None:
    """Of our table and the JVM's, and after each engine compacted the logs of the other, ours log-compacted before."""
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    write_theirs(jvm, theirs, found, ordering)
    write_ours(ours, found, ordering, "simple")
    assert list(ours.glob(".*.log.*"))
    rows = snapshot(jvm, theirs)
    steps = dict(zip(rows["id"].to_pylist(), rows["step"].to_pylist(), strict=True))
    assert {key: steps.get(key) for key in some} == some
    assert_same_rows(snapshot(jvm, ours), rows, key="id")
    assert hoodie.open(ours).schedule_log_compaction(blocks_min=2) is not None
    hoodie.open(ours).compact()
    assert_same_rows(snapshot(jvm, ours), rows, key="id")
    jvm.compact(ours)
    assert_same_rows(snapshot(jvm, ours), rows, key="id")
    hoodie.open(theirs).schedule_compaction()
    hoodie.open(theirs).compact()
    assert_same_rows(snapshot(jvm, theirs), rows, key="id")
    assert_same_rows(jvm.read_optimized(theirs, COLUMNS), rows, key="id")


def test_with_a_record_index_what_is_deleted_is_forgotten(jvm: Jvm, tmp_path: Path) -> None:
    """A late row of a record that is gone is a new record, as it is for the JVM's index."""
    path = tmp_path / "cases"
    found = cases(FIRST, THEN, LAST)
    write_ours(path, found, "ord", "record")
    rows = [row for row in map(outcome, found) if row is not None]
    expected = pa.Table.from_pylist(rows, schema=SCHEMA).select(COLUMNS)
    assert_same_rows(snapshot(jvm, path), expected, key="id")
    gone = {"/".join(case) for case in found} - set(expected["id"].to_pylist())
    assert_index_is_data(jvm, path, gone=gone)
    jvm.compact(path)
    assert_same_rows(snapshot(jvm, path), expected, key="id")
    assert_index_is_data(jvm, path, gone=gone)


def outcome(case: Case) -> dict[str, object] | None:
    """The row that must be there after a case, if what is gone is forgotten."""
    stored: dict[str, object] | None = change(case, 0)
    for step, name in enumerate(case, 1):
        new = change(case, step)
        if name == "delete":
            stored = None
        elif name and (stored is None or int(str(new["ord"])) >= int(str(stored["ord"]))):
            stored = None if new["_hoodie_is_deleted"] else new
    return stored


def _day(number: int) -> datetime:
    return datetime(2026, 1, number, tzinfo=UTC)


ORDERINGS: dict[str, tuple[pa.DataType, tuple[object, object, object]]] = {
    "int": (pa.int32(), (-1, 0, 1)),
    "double": (pa.float64(), (-1.5, 0.0, 2.5)),
    "float": (pa.float32(), (-1.5, 0.0, 2.5)),
    "string": (pa.string(), ("", "10", "9")),
    "timestamp": (pa.timestamp("us", "UTC"), (_day(1), _day(2), _day(3))),
    "date": (pa.date32(), (date(1969, 1, 1), date(1971, 1, 1), date(2026, 1, 1))),
    "decimal": (pa.decimal128(10, 2), (Decimal("-9.00"), Decimal("0.00"), Decimal("10.00"))),
    "boolean": (pa.bool_(), (False, False, True)),
}


@pytest.mark.matrix(keep=2)
@pytest.mark.parametrize("name", ORDERINGS)
def test_ordering_columns_of_other_types(jvm: Jvm, tmp_path: Path, name: str) -> None:
    """Rows and deletes with ordering values below, at and above that of the stored row, logged by us."""
    kind, values = ORDERINGS[name]
    schema = SCHEMA.set(SCHEMA.get_field_index("ord"), pa.field("ord", kind))
    table = hoodie.create(
        tmp_path / "cases", schema, record_key="id", ordering="ord", type="merge_on_read", index="simple", name="cases"
    )
    found = list(itertools.product(range(3), (False, True), range(3), (False, True)))

    def write(step: int, place: Callable[[tuple[int, bool, int, bool]], tuple[int, bool]]) -> None:
        rows = []
        for case in found:
            number, is_gone = place(case)
            rows.append({"id": str(case), "step": step, "ord": values[number], "_hoodie_is_deleted": is_gone})
        table.upsert(pa.Table.from_pylist(rows, schema=schema))

    write(0, lambda case: (1, False))
    write(1, lambda case: case[:2])
    write(2, lambda case: case[2:])
    rows = snapshot(jvm, tmp_path / "cases")
    assert 0 < rows.num_rows < len(found)
