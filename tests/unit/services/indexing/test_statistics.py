"""Statistics are built beside writers, checked against the files, and dropped; damage is found, and never read."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import hoodie
from hoodie.commit.steps import Step
from hoodie.errors import CommitConflictError, InvalidConfigError, SchemaMismatchError, UnsupportedError
from hoodie.format.metadata_table.column_stats import column_prefix
from hoodie.format.metadata_table.partition_names import COLUMN_STATS, PARTITION_STATS
from hoodie.format.metadata_table.value_types import ValueKind, ValueType
from hoodie.metadata.changes import MetadataChanges
from hoodie.metadata.folder import MetadataFolder
from hoodie.metadata.instants import visible_instants
from hoodie.metadata.kinds.column_stats import ColumnStatsKind
from hoodie.metadata.kinds.partition_stats import PartitionStatsKind
from hoodie.metadata.paths import partition_folder
from hoodie.metadata.row_readers import StatsReader
from hoodie.table import Table
from hoodie.timeline import Action
from tests.support.steps import begin, once_at
from tests.support.tables import TYPES, new_table


def rows(numbers: range, partition: str = "a") -> pa.Table:
    return pa.table({"id": [f"k{n}" for n in numbers], "p": [partition] * len(numbers), "x": [*numbers]})


@pytest.fixture(params=TYPES)
def table(request: pytest.FixtureRequest) -> Table:
    """Three files with ten rows each, without statistics."""
    tens, small = [rows(range(start, start + 10)) for start in (0, 10, 20)], {"hoodie.parquet.small.file.limit": "0"}
    return new_table(tens[0].schema, *tens, partition_by="p", index="simple", type=request.param, properties=small)


def test_ranges_of_writers_that_overlapped_include_all_rows(table: Table) -> None:
    """The rows of the write that completes last are not the last ones in the order of the log files."""
    table.index.build("column_stats")
    store = table.view().store
    small = {"hoodie.metadata.compact.max.delta.commits": "3"}
    with once_at(Step.BEGUN, lambda: Table(store).upsert(rows(range(40, 41)))):
        Table(store).upsert(rows(range(900, 901)))
    for number in (41, 42, 43):
        Table(store).upsert(rows(range(number, number + 1)), properties=small)
        found = Table(store)
        assert found.to_arrow("id", where="x > 800")["id"].to_pylist() == ["k900"]
        assert found.explain("x < 0").file_slices == 0
        assert found.index.verify("column_stats").ok


def test_one_build_at_a_time(table: Table) -> None:
    begin(table, Action.INDEXING)
    for call in (table.index.build, table.index.drop):
        with pytest.raises(UnsupportedError, match=r"of the JVM: wait until it completes; .* the engine that started"):
            call("column_stats")


def test_builds_of_the_index_and_of_statistics_name_each_other(table: Table) -> None:
    """The error names the call that completes the build that is pending."""
    index = hoodie.open(table.view().store.uri("")).index
    pairs = (("column_stats", "record"), ("record", "column_stats"), ("bloom_filters", "column_stats"))
    for one, other in (*pairs, ("column_stats", "column_stats"), ("record", "record")):
        pattern = rf'is being built; wait until it completes; .*t\.index\.build\("{one}"\)'

        def refused(other: str = other, pattern: str = pattern) -> None:
            for call in (index.build, index.drop):
                with pytest.raises(CommitConflictError, match=pattern):
                    call(other)

        with once_at(Step.WRITTEN, refused):
            table.index.build(one)
        table.index.drop(one)


def test_columns_are_chosen(table: Table) -> None:
    assert table.index.build("column_stats", columns=["x"]).counts["columns"] == 4
    assert table.explain("x = 25").file_slices == 1
    assert table.explain("id = 'k25'").file_slices == 3
    table.upsert(rows(range(60, 62)))
    assert table.index.verify("column_stats").ok
    assert table.explain("x = 61").file_slices == 1


def test_a_column_without_statistics_is_refused() -> None:
    made = {"id": ["a"], "x": [1], "s": [{"n": 1}], "many": [[1]]}
    table = new_table(pa.table(made).schema, pa.table(made))
    for columns, message in (
        (["nocol"], r"column 'nocol': expected a column of memory.*: id, x, s, many"),
        (["x", "s.m"], "column 's.m': expected a column"),
        (["x", "many"], r"column 'many' of .* has the type list<.*, whose values have no statistics"),
        (["s"], r"column 's' of .* has the type struct<"),
    ):
        with pytest.raises(SchemaMismatchError, match=message):
            table.index.build("column_stats", columns=columns)
        assert COLUMN_STATS not in table.view().config.metadata_partitions
    assert table.index.build("column_stats", columns=["s.n", "_hoodie_record_key"]).counts["columns"] == 4
    assert table.index.build("partition_stats", columns=["x"]).counts["columns"] == 4


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("record", {"columns": ["id"]}, "columns= of t.index.build is for column statistics, not for the index"),
        ("bloom_filters", {"columns": ["id"]}, "the bloom filters have no columns to choose"),
        ("column_stats", {"buckets": 2}, "buckets= of t.index.build is for the record index, not for 'column_stats'"),
        ("hbase", {"buckets": 2}, "buckets= of t.index.build is for the record index"),
        ("record", {"properties": {"hoodie.keep.max.commits": "9"}}, "properties= of t.index.build are options of"),
        ("recrod", {}, "expected one of record, hbase, bloom_filters, column_stats, .*; did you mean 'record'"),
        ("COLUMN_STAT", {}, "did you mean 'column_stats'"),
    ],
)
def test_arguments_of_another_index_are_refused(
    table: Table, name: str, arguments: dict[str, Any], message: str
) -> None:
    before = table.view().config.raw
    with pytest.raises(InvalidConfigError, match=message):
        table.index.build(name, **arguments)
    assert table.view().config.raw == before


@pytest.mark.parametrize("method", ["drop", "verify"])
def test_an_unknown_index_is_named_with_those_that_can_be_built(table: Table, method: str) -> None:
    with pytest.raises(InvalidConfigError, match=r"expected one of record, hbase, .*; did you mean 'record'"):
        getattr(table.index, method)("recrod")
    with pytest.raises(UnsupportedError, match=r"only record,.* can be built or dropped"):
        getattr(table.index, method)("simple")


def test_statistics_are_dropped(table: Table) -> None:
    with pytest.raises(InvalidConfigError, match=r"t.index.build\(.column_stats.\)"):
        table.index.verify("column_stats")
    table.index.build("column_stats")
    table.index.drop("partition_stats")
    assert PARTITION_STATS not in table.view().config.metadata_partitions
    assert table.explain("x = 25").file_slices == 1
    table.index.drop("column_stats")
    assert COLUMN_STATS not in table.view().config.metadata_partitions
    assert table.explain("x = 25").file_slices == 3
    table.upsert(rows(range(60, 62)))
    assert table.explain("x = 25").file_slices >= 3


def test_wrong_statistics_are_found_and_damaged_ones_are_not_used(table: Table) -> None:
    table.index.build("column_stats")
    store = table.view().store
    # Names of files are random: so is which of the base files holds the rows of which file.
    bases = [info for info in store.list(partition_folder(COLUMN_STATS)) if info.name.endswith(".hfile")]
    other = next(info for info in store.list(partition_folder(PARTITION_STATS)) if info.name.endswith(".hfile"))
    whole = {base.path: store.read(base.path) for base in bases}
    for base in bases:
        store.replace(base.path, store.read(other.path))
    report = Table(store).index.verify("column_stats")
    assert report.problems["missing range"] > 0
    for path, content in whole.items():
        store.replace(path, content[: len(content) // 2])
    with pytest.warns(hoodie.HoodieWarning, match="no file is skipped by statistics"):
        found = Table(store).to_arrow("id", where="x = 25")
    assert found["id"].to_pylist() == ["k25"]
    Table(store).index.build("column_stats")
    assert Table(store).index.verify("column_stats").ok
    assert Table(store).explain("x = 25").file_slices == 1


def test_a_commit_writes_few_files_and_reads_none_of_the_data(table: Table) -> None:
    table.index.build("column_stats")
    before = {info.path for info in table.view().store.list(".hoodie/metadata", recursive=True)}
    table.upsert(rows(range(70, 72)))
    new = {info.path for info in table.view().store.list(".hoodie/metadata", recursive=True)} - before
    logs = [path for path in new if "_stats/" in path]
    assert 2 <= len(logs) <= 3


def test_new_columns_get_statistics_and_widened_ones_keep_them(table: Table) -> None:
    table.index.build("column_stats")
    wider = rows(range(30, 33)).append_column("y", pa.array([100, None, 200], pa.int32()))
    table.upsert(wider)
    table.upsert(rows(range(33, 34)).append_column("y", pa.array([2**40], pa.int64())))
    assert table.index.verify("column_stats").ok
    for where, ids in {"y = 200": ["k32"], f"y = {2**40}": ["k33"], "y < 0": []}.items():
        assert table.to_arrow("id", where=where)["id"].to_pylist() == ids
    assert table.to_arrow("id", where="y IS NULL").num_rows == 31
    # Files from before the column have no range of it.
    assert table.explain("y < 0").file_slices == 3
    assert table.explain("y IS NULL").file_slices >= 4


@pytest.mark.parametrize("stored", [None, (0.4, 5.5), ("a", "b")], ids=["right", "narrow", "text"])
def test_ranges_of_a_type_that_was_changed_since_are_compared_with_todays(
    table: Table, stored: tuple[Any, Any] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file keeps the ranges of the type that its column had; the rows of a log file have the type of today."""
    table.index.build("column_stats")

    def write(value: float, data_type: pa.DataType) -> None:
        table.upsert(rows(range(5)).append_column("f", pa.array([value] * 5, data_type)))

    write(0.1, pa.float32())
    original = ColumnStatsKind.rows_of

    def changed(self: ColumnStatsKind, changes: MetadataChanges, *given: Any) -> Any:
        if stored is None:
            return original(self, changes, *given)
        text = ValueType(ValueKind.STRING)
        bad = {"low": stored[0], "high": stored[1]} | ({"type": text} if isinstance(stored[0], str) else {})
        ranges = {
            path: {
                name: tuple(replace(one, **bad) if one.column == "f" else one for one in found)
                for name, found in files.items()
            }
            for path, files in changes.collected["column_stats"].items()
        }
        return original(self, replace(changes, collected={**changes.collected, "column_stats": ranges}), *given)

    with monkeypatch.context() as patch:
        patch.setattr(ColumnStatsKind, "rows_of", changed)
        write(0.3, pa.float32())
    table.upsert(rows(range(90, 95)).append_column("f", pa.array([0.2] * 5, pa.float64())))
    report = table.index.verify("column_stats")
    assert report.ok == (stored is None), str(report)
    assert report.problems.get("wrong range", 0) == (0 if stored is None else 1), str(report)
    assert sorted(table.to_arrow("id", where="f = 0.3")["id"].to_pylist()) == [f"k{n}" for n in range(5)]


def test_a_write_to_a_table_with_rows_says_that_it_adds_no_statistics(table: Table) -> None:
    asked = {"hoodie.metadata.index.column.stats.enable": "true"}

    def told(**options: Any) -> list[str]:
        notes = Table(table.view().store).upsert(rows(range(5)), **options).notes
        return [note for note in notes if 't.index.build("column_stats")' in note]

    assert len(told(properties=asked)) == 1
    assert not told()
    table.index.build("column_stats")
    assert not told(properties=asked)


def test_the_cleaner_deletes_the_ranges_of_its_files() -> None:
    on = {"hoodie.metadata.index.column.stats.enable": "true", "hoodie.clean.automatic": "false"}
    first = rows(range(3))
    table = new_table(first.schema, first, first, first, first, index="simple", properties=on)
    before = ranges_of_x(table)
    cleaned = table.clean(properties={"hoodie.clean.commits.retained": "1"})
    assert cleaned.counts["files_deleted"] == len(before - ranges_of_x(table)) > 0
    assert table.index.verify("column_stats").ok


def ranges_of_x(table: Table) -> set[str]:
    view = table.view()
    folder = MetadataFolder(view.store, view.config)
    timeline = visible_instants(folder.existing_timeline(), view.whole_timeline())
    return set(StatsReader(view.store, ColumnStatsKind(), timeline).rows_below([column_prefix("x")]))


def test_a_range_of_a_partition_that_lacks_a_file_is_not_used(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """A JVM writer whose list of columns grew folds only the files that have ranges of the column."""
    table.index.build("column_stats")
    original = PartitionStatsKind.rows_of

    def without_older(self: PartitionStatsKind, changes: MetadataChanges, *given: Any) -> Any:
        gone = {
            path: {name: tuple(one for one in found if one.column != "x") for name, found in files.items()}
            for path, files in changes.collected["column_stats"].items()
        }
        return original(self, replace(changes, collected={**changes.collected, "column_stats": gone}), *given)

    monkeypatch.setattr(PartitionStatsKind, "rows_of", without_older)
    table.upsert(rows(range(700, 701)))
    assert table.to_arrow("id", where="x = 700")["id"].to_pylist() == ["k700"]


def test_time_travel_uses_the_ranges_of_files_only(table: Table) -> None:
    table.index.build("column_stats")
    first = table.timeline.completed().instants[-1].requested_time
    table.insert_overwrite(rows(range(500, 503)))
    assert table.explain("x = 25").file_slices == 0
    assert table.to_arrow("id", where="x = 25", as_of=first)["id"].to_pylist() == ["k25"]
    assert table.explain("x = 25", as_of=first).to_dict()["skipped_by_column_stats"] == 2


def test_a_table_without_partitions_stores_no_option_of_partitions() -> None:
    """A JVM write that passes the option would find another value stored, and fail with a config conflict."""
    table = new_table(rows(range(3)).schema, rows(range(3)))
    for _ in range(2):
        table.index.build("column_stats")
        raw = table.view().config.raw
        assert raw["hoodie.metadata.index.column.stats.enable"] == "true"
        assert "hoodie.metadata.index.partition.stats.enable" not in raw
    assert table.index.verify("column_stats").ok


EXTREMES: list[tuple[pa.DataType, list[Any]]] = [
    (pa.bool_(), [False, True]),
    (pa.int32(), [-(2**31), 2**31 - 1]),
    (pa.int64(), [-(2**63), 2**63 - 1]),
    (pa.float32(), [float("nan"), -0.0]),
    (pa.float64(), [float("-inf"), float("nan")]),
    (pa.string(), ["", "\U0010ffff" + "x" * 5000]),
    (pa.binary(), [b"", b"\xff\xfe"]),
    (pa.binary(4), [b"\x80\x81\x82\x83", b"\xff\xfe\x00\x01"]),
    (pa.date32(), [-719162, 2932896]),
    (pa.timestamp("us", "UTC"), [-1, 2**53]),
    (pa.timestamp("ms", "UTC"), [-1, 2**43]),
    (pa.timestamp("us"), [-1, 2**53]),
    (pa.decimal128(9, 2), [None, None]),
    (pa.decimal128(38, 0), [Decimal(-(10**37)), Decimal(10**37)]),
    (pa.struct([("s", pa.binary(2))]), [{"s": b"\xff\xff"}, {"s": b"\x00\x80"}]),
]


@pytest.mark.parametrize("version", [6, 8, 9])
@pytest.mark.parametrize("type", TYPES)
def test_a_check_finds_nothing_wrong_with_extreme_values(type: str, version: int) -> None:
    columns = {f"c{place}": pa.array(values, kind) for place, (kind, values) in enumerate(EXTREMES)}
    data = pa.table({"id": ["a", "b"], "ts": [1, 1], **columns})
    properties = {"hoodie.metadata.index.column.stats.enable": "true"}
    options: dict[str, Any] = {"type": type, "index": "simple", "table_version": version, "properties": properties}
    table = new_table(data.schema, data, data.slice(0, 1), ordering="ts", **options)
    report = table.verify(full=True)
    assert report.ok, report
