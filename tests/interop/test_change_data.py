"""Change data: what we compute from file slices is what the JVM reads, from its tables and from ours, in each mode."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hoodie
from hoodie.read.cdc_plan import logged_rows, plan_cdc
from tests.interop.judges import HIVE, Jvm, create_trips, to_arrow
from tests.support.mixing_tables import MODEL, PARTIAL, Row, create, rows_of
from tests.support.tables import table_of

SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("fare", pa.float64()), ("city", pa.string())])
CDC = {"hoodie.datasource.query.type": "incremental", "hoodie.datasource.query.incremental.format": "cdc"}
MODES = ("OP_KEY_ONLY", "DATA_BEFORE", "DATA_BEFORE_AFTER")
trips = partial(table_of, SCHEMA)


def jvm_changes(jvm: Jvm, path: Path, since: str, names: Sequence[str] = SCHEMA.names) -> Counter[str]:
    """The events that the JVM's change data query returns after a completion time."""
    options = {**CDC, "hoodie.datasource.read.begin.instanttime": since}
    found = to_arrow(jvm.spark.read.format("hudi").options(**options).load(str(path))).to_pylist()
    images = [[_image(row[side], names) for side in ("before", "after")] for row in found]
    return Counter(_event(row["op"], row["ts_ms"], *pair) for row, pair in zip(found, images, strict=True))


def our_changes(path: Path, since: str | None) -> Counter[str]:
    found = hoodie.open(path, spark=False).changes(since=since, mode="cdc").to_pylist()
    return Counter(_event(row["op"], row["ts_ms"], row["before"], row["after"]) for row in found)


def _event(op: str, ts_ms: str, before: dict[str, Any] | None, after: dict[str, Any] | None) -> str:
    return json.dumps([op, ts_ms, before, after], sort_keys=True)


def _image(text: str | None, names: Sequence[str]) -> dict[str, Any] | None:
    """An image of the JVM: JSON text, `null` too; null columns may be missing."""
    values = None if text is None else json.loads(text)
    if values is None:
        return None
    return dict.fromkeys(names) | {k: v for k, v in values.items() if k in names}


@pytest.mark.matrix(keep=2)
@pytest.mark.parametrize(
    ("table_type", "mode"),
    [
        *(("COPY_ON_WRITE", mode) for mode in MODES),
        ("MERGE_ON_READ", "DATA_BEFORE"),
        ("MERGE_ON_READ", "DATA_BEFORE_AFTER"),
    ],
)
def test_the_changes_of_a_table_of_the_jvm_are_what_the_jvm_reads(
    jvm: Jvm, tmp_path: Path, table_type: str, mode: str
) -> None:
    path = tmp_path / "trips"
    logs = {
        "hoodie.table.cdc.enabled": "true",
        "hoodie.table.cdc.supplemental.logging.mode": mode,
        "hoodie.compact.inline": "false",
    }

    def write(rows: pa.Table, operation: str = "upsert") -> None:
        jvm.write_trips(rows, path, operation=operation, table_type=table_type, options=logs)

    write(trips(("a", 1, 1.0, "sf"), ("b", 1, 2.0, "sf"), ("c", 1, None, "sf"), ("d", 1, 4.0, "la")))
    write(trips(("a", 2, 1.5, "sf"), ("e", 2, 5.0, "sf"), ("d", 0, 9.0, "la")))
    write(trips(("b", 2, None, "sf")), "delete")
    if table_type == "MERGE_ON_READ":
        assert jvm.compact(path)
    write(trips(("c", 3, 3.0, "sf"), ("f", 3, 6.0, "nyc")))
    write(trips(("g", 4, 7.0, "la")), "insert_overwrite")
    done = [found.completion_time or "" for found in hoodie.open(path).timeline.completed().instants]
    assert our_changes(path, None) == jvm_changes(jvm, path, "000")
    assert our_changes(path, done[1]) == jvm_changes(jvm, path, done[1])
    # Logs with both images are read, the changes of other modes are computed.
    plan = plan_cdc(hoodie.open(path, spark=False).view(), None, None)
    read = [change.logged for change in plan.changes if change.logged]
    assert bool(read) == (mode == "DATA_BEFORE_AFTER")
    assert all(logged_rows(plan.view.store, files, list(plan.schema)) is not None for files in read)


@pytest.mark.matrix(keep=2)
@pytest.mark.parametrize(
    ("table_type", "mode"), [*(("copy_on_write", mode) for mode in MODES), ("merge_on_read", "DATA_BEFORE_AFTER")]
)
def test_the_jvm_reads_the_changes_that_we_log_and_continues_the_table(
    jvm: Jvm, tmp_path: Path, table_type: str, mode: str
) -> None:
    path = tmp_path / "trips"
    cdc = {"hoodie.table.cdc.enabled": "true", "hoodie.table.cdc.supplemental.logging.mode": mode}
    table = create_trips(path, SCHEMA, type=table_type, properties=cdc, spark=False)
    table.upsert(trips(("a", 1, 1.0, "sf"), ("b", 1, 2.0, "sf"), ("c", 1, None, "sf"), ("d", 1, 4.0, "la")))
    table.upsert(trips(("a", 2, 1.5, "sf"), ("e", 2, 5.0, "sf"), ("d", 0, 9.0, "la")))
    table.delete(["b", "d"])
    if table_type == "merge_on_read":
        table.compact()
    else:
        table.cluster(by="fare")
    table.upsert(trips(("c", 3, 3.0, "nyc"), ("f", 3, 6.0, "nyc"), ("a", 3, None, "sf")))
    table.insert_overwrite(trips(("g", 4, 7.0, "la")))
    assert our_changes(path, None) == jvm_changes(jvm, path, "000")
    done = [found.completion_time or "" for found in table.timeline.completed().instants]
    jvm.write_trips(
        trips(("c", 4, 8.0, "nyc"), ("h", 1, 1.0, "nyc")),
        path,
        table_type=table_type.upper(),
        options={"hoodie.compact.inline": "false", **HIVE},
    )
    table.upsert(trips(("c", 5, 9.0, "nyc"), ("h", 5, None, "nyc")))
    assert our_changes(path, done[-1]) == jvm_changes(jvm, path, done[-1])
    assert sorted(our_changes(path, done[-1]).elements())[0].startswith('["i"')
    assert not table.verify(full=True).problems


def test_rows_that_a_late_row_fills_are_changes_for_both(jvm: Jvm, tmp_path: Path) -> None:
    """A late row that fills nothing is none, whether we or the JVM wrote it."""
    path = tmp_path / "mixed"
    cdc = {"hoodie.table.cdc.enabled": "true", "hoodie.compact.inline": "false"}
    table = create(path, PARTIAL, 9, index="simple", type="merge_on_read", name="mixed", properties=cdc)

    def by_jvm(*rows: Row) -> None:
        options = {
            "hoodie.datasource.write.payload.class": MODEL + PARTIAL,
            "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
            "hoodie.compact.inline": "false",
        }
        jvm.write(
            rows_of(rows, PARTIAL), path, table_name="mixed", key="id", ordering="ord", table_type="MERGE_ON_READ",
            options=options,
        )  # fmt: skip

    table.upsert(rows_of([("k", 9, None, "b", 1, None), ("m", 9, None, None, 1, None)], PARTIAL))
    table.upsert(rows_of([("k", 3, "late", "no", 2, None), ("m", 9, None, None, 2, None)], PARTIAL))
    by_jvm(("k", 2, "no", "no", 3, None), ("m", 5, "late", None, 3, None))
    table.upsert(rows_of([("k", 1, "no", None, 4, None), ("m", 4, "no", "later", 4, None)], PARTIAL))
    by_jvm(("k", 9, None, "new", 5, None))
    since = table.timeline.completed().instants[0].completion_time or ""
    found = our_changes(path, since)
    assert [json.loads(event)[0] for event in found.elements()] == ["u"] * 5
    assert found == jvm_changes(jvm, path, since, table.schema.names)
