"""Base files with copied row groups: JVM Hudi, Spark and hudi-rs read them, and the JVM continues them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tests.interop.judges import Jvm, create_trips
from tests.interop.shared_trips import FEW_BUCKETS, SCHEMA, STATISTICS, check_both, jvm_write, newest_of, trips
from tests.support.row_groups import small_row_groups


@pytest.mark.parametrize("index", ["record", "bloom"])
@pytest.mark.parametrize("properties", [{}, STATISTICS], ids=["plain", "statistics"])
def test_copied_row_groups_are_read_and_continued(
    jvm: Jvm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, properties: dict[str, str], index: str
) -> None:
    copied = small_row_groups(monkeypatch, 2500)
    path = tmp_path / "trips"
    table = create_trips(path, SCHEMA, index=index, spark=False, properties={**FEW_BUCKETS, **properties})
    table.bulk_insert(trips(range(400), 1))
    changes = {1: range(400), 2: range(100, 104), 3: range(395, 420)}
    table.upsert(trips(changes[2], 2))
    table.upsert(trips(changes[3], 3))
    assert len(copied) > 10
    has_index = index == "record"
    expected = newest_of(changes)
    check_both(jvm, path, expected, has_index=has_index)

    # Row groups are skipped by the bounds of copied and of new ones.
    frame = jvm.spark.read.format("hudi").load(str(path))
    for condition, count in (("id = 'k250'", 1), ("id = 'k101'", 1), ("fare > 390", 30), ("fare = 101.25", 1)):
        assert frame.where(condition).count() == count, condition

    copied.clear()
    assert table.update({"fare": "fare + 1000"}, where="id >= 'k150' AND id < 'k160'").updated == 10
    assert ("_hoodie_commit_time", "_hoodie_commit_seqno", "fare") in copied
    in_range = pa.array(["k150" <= key < "k160" for key in expected["id"].to_pylist()])
    fares = pc.if_else(in_range, pc.add(expected["fare"], 1000.0), expected["fare"])
    expected = expected.set_column(expected.schema.get_field_index("fare"), expected.schema.field("fare"), fares)
    check_both(jvm, path, expected, has_index=has_index)
    assert jvm.spark.read.format("hudi").load(str(path)).where("fare > 1000").count() == 10

    gone = pa.array([key in ("k007", "k250") for key in expected["id"].to_pylist()])
    table.delete(expected.filter(gone).select(["id", "city"]))
    kept = expected.filter(pc.invert(gone))
    check_both(jvm, path, kept, has_index=has_index)
    jvm_write(
        jvm,
        path,
        "copy_on_write",
        trips(range(300, 310), 4),
        options={**properties, "hoodie.index.type": "RECORD_INDEX" if has_index else "BLOOM"},
    )
    known = pa.concat_tables([kept.filter(pa.array([not "k300" <= key < "k310" for key in kept["id"].to_pylist()])),
                              trips(range(300, 310), 4)])  # fmt: skip
    check_both(jvm, path, known, has_index=has_index)
    copied.clear()
    table.upsert(trips(range(50, 52), 5))  # the JVM's files are encoded anew once
    table.upsert(trips(range(52, 54), 5))
    assert copied
    last = pa.concat_tables([known.filter(pa.array([not "k050" <= key < "k054" for key in known["id"].to_pylist()])),
                             trips(range(50, 54), 5)])  # fmt: skip
    check_both(jvm, path, last, has_index=has_index)
    assert table.verify(full=True).ok


@pytest.mark.parametrize("properties", [{}, STATISTICS], ids=["plain", "statistics"])
def test_compactions_that_copy_row_groups(
    jvm: Jvm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, properties: dict[str, str]
) -> None:
    copied = small_row_groups(monkeypatch, 2500)
    path = tmp_path / "trips"
    options = {**FEW_BUCKETS, **properties}
    table = create_trips(path, SCHEMA, type="mor", index="record", spark=False, properties=options)
    table.bulk_insert(trips(range(400), 1))
    changes = {1: range(400), 2: range(100, 104), 3: range(395, 420)}
    for number in (2, 3):
        table.upsert(trips(changes[number], number))
    table.schedule_compaction()
    table.compact()
    assert len(copied) > 10
    check_both(jvm, path, newest_of(changes))
    changes[4] = range(300, 310)
    index = {"hoodie.index.type": "RECORD_INDEX", **properties}
    jvm_write(jvm, path, "merge_on_read", trips(changes[4], 4), options=index)
    table.schedule_compaction()
    table.compact()
    check_both(jvm, path, newest_of(changes))
    assert table.verify(full=True).ok
