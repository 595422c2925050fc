"""Which rows of a bulk write come to one file: sizes of files, the order of rows, and what is refused."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hoodie.commit.call import Call
from hoodie.engine import ArrowDataset, LocalEngine
from hoodie.errors import InvalidConfigError
from hoodie.files.base_file import ParquetOptions
from hoodie.files.staging.staged import StagedRun, StageReader, StageWriter
from hoodie.format.table.merge_config import MergeMode
from hoodie.records.change import change_schema
from hoodie.records.merging.merge import RecordMerger
from hoodie.storage import MemoryStore, open_store
from hoodie.table import Table
from hoodie.view.slices import list_slices
from hoodie.write.bulk_insert import bulk_insert, insert_overwrite
from hoodie.write.distribution import PiecePlanner, tasks_of
from hoodie.write.files import bulk_task
from hoodie.write.files.bulk_task import Piece
from hoodie.write.files.context import FileSizing, WriteContext
from hoodie.write.result import WriteResult
from tests.support import tables
from tests.support.rows import assert_same_rows
from tests.unit.write.tables import untouched

_TASKS = 4
_SORT_MODE = "hoodie.bulkinsert.sort.mode"


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few rows are divided among the tasks too."""
    monkeypatch.setattr("hoodie.engine.local._PART_ROWS_MIN", 1)


def rows_of(cities: Sequence[str], each: int = 200) -> pa.Table:
    """Rows in the order of their numbers, `each` for every city, one city after the other, row by row."""
    count = each * len(cities)
    numbers = pa.array(range(count))
    names = pa.array([cities[number % len(cities)] for number in range(count)])
    return pa.table({"id": pc.cast(numbers, pa.string()), "n": numbers, "city": names})


def new_table(rows: pa.Table, **options: Any) -> Table:
    """An empty table for such rows."""
    return tables.new_table(rows.schema, **{"partition_by": "city", **options})


def call_of(table: Table, properties: Mapping[str, str] | None = None) -> Call:
    """A call whose data four tasks read, however many cores the machine has."""
    state = table.view().state.for_call(properties)
    return Call(state=state, engine=LocalEngine(threads=_TASKS), properties=properties or {})


def bulk(table: Table, rows: pa.Table, distribution: str = "auto", **properties: str) -> WriteResult:
    return bulk_insert(call_of(table, properties), ArrowDataset(rows), distribution=distribution)


def files_of(table: Table) -> dict[str, int]:
    """The number of base files of each partition."""
    return dict(Counter(found.partition_path for found in list_slices(table.view())))


def stored(table: Table) -> pa.Table:
    """The rows with meta columns, in the order of each file."""
    return table.to_arrow(
        columns=["id", "n", "city", "_hoodie_commit_seqno", "_hoodie_record_key", "_hoodie_file_name"]
    )


def check_rows(table: Table, rows: pa.Table) -> None:
    assert_same_rows(table.to_arrow(columns=rows.column_names), rows, key="id")
    assert pc.count_distinct(stored(table)["_hoodie_commit_seqno"]).as_py() == rows.num_rows
    assert table.verify(full=True).ok


@pytest.mark.parametrize(("distribution", "files"), [("none", _TASKS), ("partition", 1), ("auto", 1)])
@pytest.mark.parametrize("overwrites", [False, True])
def test_files_of_a_partition(distribution: str, files: int, *, overwrites: bool) -> None:
    rows = rows_of(["sf", "nyc", "la"])
    table = new_table(rows)
    if overwrites:
        bulk(table, rows_of(["sf", "rome"], 10))
        done = insert_overwrite(call_of(table), ArrowDataset(rows), whole_table=True, distribution=distribution)
        assert (done.deleted, done.notes) == (20, ())
    else:
        done = bulk(table, rows, distribution)
    assert (done.inserted, done.files_created) == (rows.num_rows, 3 * files)
    assert files_of(table) == {f"city={name}": files for name in ("sf", "nyc", "la")}
    check_rows(table, rows)
    store = open_store(table.view().store.spec)
    assert not [info for info in store.list(".hoodie/.temp", recursive=True) if "stage-" in info.path]


def test_rows_keep_their_order_in_the_file() -> None:
    rows = rows_of(["sf", "nyc"])
    table = new_table(rows)
    bulk(table, rows, "partition")
    for name in ("sf", "nyc"):
        numbers = table.to_arrow(where=f"city = '{name}'")["n"].to_pylist()
        assert numbers == sorted(numbers)


def test_tasks_with_many_rows_of_one_partition_write_them_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tasks 0 and 1 have one city, 2 and 3 have two: these stage. No two rows get the same sequence number."""
    monkeypatch.setattr(bulk_task, "_SEEN_BYTES", 1_000)
    rows = pa.concat_tables([rows_of(["sf"], 400), rows_of(["nyc", "la"])])
    rows = rows.set_column(0, "id", pc.cast(pa.array(range(len(rows))), pa.string()))
    table = new_table(rows)
    done = bulk(table, rows)
    assert files_of(table) == {"city=sf": 2, "city=nyc": 1, "city=la": 1}
    assert done.files_created == 4
    check_rows(table, rows)


@pytest.mark.parametrize("distribution", ["none", "partition", "auto"])
def test_deletes_and_automatic_keys(distribution: str) -> None:
    rows = rows_of(["sf", "nyc"])
    gone = pc.equal(pc.bit_wise_and(rows["n"], 7), 0)
    table = new_table(rows.append_column("_hoodie_is_deleted", gone), record_key=None)
    done = bulk(table, rows.append_column("_hoodie_is_deleted", gone), distribution)
    assert (done.inserted, done.ignored) == (350, 50)
    keys = stored(table)["_hoodie_record_key"].to_pylist()
    assert len(set(keys)) == 350
    assert {key.split("_")[0] for key in keys} == {done.instant}
    again = bulk(table, rows.append_column("_hoodie_is_deleted", gone), distribution)
    newer = [key for key in stored(table)["_hoodie_record_key"].to_pylist() if key.startswith(again.instant)]
    assert {key.partition("_")[2] for key in newer} == {key.partition("_")[2] for key in keys}


def test_a_full_file_is_continued_in_another() -> None:
    """With no record size known, a sample of the rows tells how many files a partition needs."""
    rows = rows_of(["sf"], 60_000)
    table = new_table(rows, properties={"hoodie.parquet.small.file.limit": "1"})
    whole = bulk(new_table(rows), rows, "partition")
    most = whole.bytes_written // 3
    bulk(table, rows, "partition", **{"hoodie.parquet.max.file.size": str(most)})
    sizes = sorted(found.size_bytes for found in list_slices(table.view()))
    assert len(sizes) in (4, 5)
    assert max(sizes) <= most
    assert min(sizes) > most / 2
    check_rows(table, rows)


def test_the_option_of_the_jvm_says_the_same() -> None:
    rows = rows_of(["sf", "nyc"])
    for mode, files in (("NONE", _TASKS), ("PARTITION_PATH_REPARTITION", 1), ("auto", 1)):
        table = new_table(rows)
        bulk(table, rows, **{_SORT_MODE: mode})
        assert files_of(table) == {"city=sf": files, "city=nyc": files}
    table = new_table(rows, properties={_SORT_MODE: "GLOBAL_SORT"})
    bulk(table, rows)
    found = stored(table).group_by("_hoodie_file_name", use_threads=False).aggregate([("id", "list")])
    assert all(keys == sorted(keys) for keys in found["id_list"].to_pylist())
    bulk(table, rows, "none")  # an argument is stronger than the table's option


CONTRADICTIONS: list[tuple[dict[str, Any], str]] = [
    ({"distribution": "even"}, "distribution='even': expected one of none, partition, auto"),
    ({"distribution": "none", "sort": "global"}, "the sort decides which rows come together; omit one"),
    ({"distribution": "partition", "properties": {_SORT_MODE: "NONE"}}, f"{_SORT_MODE} repeats sort and"),
    ({"sort": ["n"], "properties": {_SORT_MODE: "NONE"}}, f"{_SORT_MODE} repeats sort and"),
    ({"properties": {_SORT_MODE: "PARTITION_SORT"}}, "one of auto, none, global_sort, partition_path_repartition"),
]


def test_contradictions_are_refused() -> None:
    rows = rows_of(["sf"], 3)
    table = new_table(rows)
    for arguments, message in CONTRADICTIONS:
        with untouched(table, message, InvalidConfigError):
            table.bulk_insert(rows, **arguments)


@pytest.mark.parametrize("method", ["bulk_insert", "insert_overwrite", "insert_overwrite_table"])
def test_an_index_that_places_rows_takes_no_distribution(method: str) -> None:
    rows = rows_of(["sf"], 3)
    table = new_table(rows, index="bucket", properties={"hoodie.bucket.index.num.buckets": "2"})
    with pytest.raises(InvalidConfigError, match="decides the file group of each row; omit distribution"):
        getattr(table, method)(rows, distribution="partition")
    assert getattr(table, method)(rows, distribution="auto").inserted == 3


def test_a_result_tells_of_many_small_files() -> None:
    rows = rows_of([f"c{number}" for number in range(6)], 100)
    done = bulk(new_table(rows), rows, "none")
    assert done.files_created == 6 * _TASKS
    [note] = done.notes
    assert note.startswith("24 of 24 new files are small (at most ")
    assert "in 6 partitions" in note
    assert bulk(new_table(rows), rows).notes == ()
    few = bulk(new_table(rows), rows, "none", **{"hoodie.parquet.small.file.limit": "10000"})
    assert few.notes == ()  # they are above a quarter of the limit
    apart = rows_of([f"c{number}" for number in range(30)], 3)
    assert new_table(apart).bulk_insert(apart).notes == ()  # one file for each partition


def test_staged_files_of_very_many_tasks_are_not_all_open_at_once() -> None:
    store = MemoryStore()
    runs = [run for number in range(8) for run in staged(store, f"f{number}", rows_of(["sf", "nyc"], 2))]
    with StageReader(store, open_files_max=3) as reader:
        for _ in range(2):
            assert [reader.read(run).column("n").to_pylist() for run in runs] == [[0, 2], [1, 3]] * 8
            assert len(reader._open) == 3


def staged(store: MemoryStore, path: str, rows: pa.Table) -> list[StagedRun]:
    """Stage rows as a task does."""
    kinds = pa.array([0] * len(rows), pa.int8())
    columns = [kinds, pc.cast(rows["id"], pa.string()), rows["city"], *rows.columns]
    writer = StageWriter(store, path, change_schema(rows.schema), by_hash=False)
    for batch in pa.Table.from_arrays(columns, schema=change_schema(rows.schema)).to_batches():
        writer.write(batch)
    return writer.close()


def planned(planner: PiecePlanner, *runs: tuple[str, int]) -> list[list[int]]:
    """Plan runs of (partition path, rows) with 100 Arrow bytes a row; return the rows of the runs of each piece."""
    found = [
        StagedRun(path="stage", batch=number, partition_path=path, rows=rows, size_bytes=rows * 100)
        for number, (path, rows) in enumerate(runs)
    ]
    return [[run.rows for run in piece] for piece in planner.pieces(found)]


@pytest.fixture
def planner() -> PiecePlanner:
    """A planner of files of 1,000 bytes, of which 900 are planned, for records of 10 bytes."""
    rows = rows_of(["sf"], 1)
    context = WriteContext(
        store=MemoryStore().spec,
        schema=rows.schema,
        merger=RecordMerger(MergeMode.COMMIT_TIME_ORDERING),
        instant_time="1",
        combine=False,
        merge_stored=False,
        parquet=ParquetOptions(),
        sizing=FileSizing(max_file_bytes=1_000, small_file_bytes=600),
    )
    return PiecePlanner(context, MemoryStore(), 10.0)


def test_pieces_are_near_the_wanted_size(planner: PiecePlanner) -> None:
    assert planned(planner) == []
    assert planned(planner, ("a", 30), ("b", 5), ("a", 40), ("b", 1)) == [[30, 40], [5, 1]]
    assert planned(planner, *[("a", 30)] * 9, ("b", 5)) == [[30] * 3] * 3 + [[5]]
    assert planned(planner, *[("a", 30)] * 4, ("a", 60)) == [[30] * 3, [30, 60]]


def test_more_files_if_more_tasks_run_at_once_but_no_small_ones(planner: PiecePlanner) -> None:
    runs = [("a", 20)] * 8
    assert len(planned(planner, *runs)) == 2
    assert len(planned(replace(planner, tasks=3), *runs)) == 3
    assert len(planned(replace(planner, tasks=16), *runs)) == 3  # 1,600 bytes in files of 500 or more
    assert planned(replace(planner, tasks=16), ("a", 4), ("a", 4)) == [[4, 4]]


def test_tasks_share_the_pieces(planner: PiecePlanner) -> None:
    runs = [StagedRun(path="s", batch=n, partition_path=str(n), rows=1, size_bytes=8) for n in range(10)]
    pieces: list[Piece] = [(run,) for run in runs]
    assert [len(task) for task in tasks_of(pieces, 4)] == [2, 3, 2, 3]
    assert tasks_of(pieces, 20) == [(piece,) for piece in pieces]
    assert list(itertools.chain.from_iterable(tasks_of(pieces, 3))) == pieces
