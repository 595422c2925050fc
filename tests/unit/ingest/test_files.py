"""Files as a source, in process: each file once, in the order of change times; bad lines, columns, archives."""

from __future__ import annotations

import gzip
import io
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hoodie.errors import InvalidConfigError, SourceError, UnsupportedError
from hoodie.ingest.source import Batch, Decoded, Request
from hoodie.ingest.sources.files import Files
from hoodie.storage import LocalStore, memory_folder, open_store
from tests.support.seeds import examples

OLD = 1_700_000_000_000


@pytest.fixture(params=["memory", "local"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "local":
        yield str(tmp_path)
        return
    with memory_folder() as name:
        yield f"memory://{name}"


def put(folder: str, path: str, data: bytes | str, modified_ms: int = OLD) -> None:
    store = open_store(folder)
    store.replace(path, data.encode() if isinstance(data, str) else data)
    store.set_modified_ms(path, modified_ms)


def lines(*numbers: int) -> str:
    return "".join(json.dumps({"id": number}) + "\n" for number in numbers)


def table_of(batch: Batch) -> tuple[pa.Table, Any]:
    found = batch.read()
    assert isinstance(found, Decoded)
    return found.rows.read_all(), found.bad


def planned(source: Files, after: str | None = None, limit: int | None = None, schema: Any = None) -> Batch:
    batch = source.plan(Request(after=after, limit=limit, schema=schema))
    assert batch is not None
    return batch


def run(source: Files, after: str | None = None, limit: int | None = None) -> tuple[list[list[int]], str | None]:
    """Read all batches; return the column `id` of each, and the last place."""
    found = []
    while (batch := source.plan(Request(after=after, limit=limit))) is not None:
        found.append(table_of(batch)[0]["id"].to_pylist())
        if batch.after_commit:
            batch.after_commit()
        assert after is None or int(batch.place) > int(after)
        after = batch.place
    return found, after


def test_files_of_one_millisecond_are_not_divided(folder: str) -> None:
    for number, at in enumerate([3, 1, 2, 2, 2, 4]):
        put(folder, f"d{number % 2}/{number}.json", lines(number), OLD + at)
    assert run(Files(path=folder), limit=2) == ([[1], [2, 4, 3], [0, 5]], str(OLD + 4))
    first = planned(Files(path=folder), limit=1)
    assert first.place == str(OLD + 1)
    assert "1 files of" in first.about
    assert "5 files are left" in first.about
    assert first.lag_seconds is not None
    assert first.lag_seconds > 1_000_000
    last = planned(Files(path=folder), after=str(OLD + 3))
    assert (last.place, last.lag_seconds) == (str(OLD + 4), 0.0)
    assert Files(path=folder).plan(Request(after=str(OLD + 4))) is None


def test_a_batch_has_at_most_the_given_bytes(folder: str) -> None:
    for number in range(5):
        put(folder, f"{number}.json", lines(number), OLD + number)
    assert run(Files(path=folder, bytes_max=2 * len(lines(0)) + 1))[0] == [[0, 1], [2, 3], [4]]
    assert run(Files(path=folder, bytes_max=1))[0] == [[0], [1], [2], [3], [4]]


def test_a_folder_that_does_not_exist_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"expected a folder, found none at .*nowhere"):
        Files(path=str(tmp_path / "nowhere")).plan(Request())
    assert Files(path=str(tmp_path)).plan(Request()) is None


def test_young_files_are_left(folder: str) -> None:
    now = time.time_ns() // 1_000_000
    put(folder, "old.json", lines(1))
    put(folder, "young.json", lines(2), now - 500)
    put(folder, "future.json", lines(3), now + 3_600_000)
    batch = planned(Files(path=folder, lag_seconds=60))
    assert table_of(batch)[0]["id"].to_pylist() == [1]
    assert "2 files are left" in batch.about
    assert len(batch.notes) == 1
    assert "future.json; check the clocks" in batch.notes[0]
    assert Files(path=folder, lag_seconds=60).plan(Request(after=batch.place)) is None
    assert table_of(planned(Files(path=folder, lag_seconds=0.1), after=batch.place))[0]["id"].to_pylist() == [2]


def test_a_file_that_appears_during_the_listing_is_left(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The listing takes as long as a file needs to become old: another one of an earlier time may appear behind it."""
    kind = type(open_store(folder))
    listing = kind.list

    def slow(store: Any, *args: Any, **options: Any) -> Any:
        put(folder, "young.json", lines(2), time.time_ns() // 1_000_000)
        found = listing(store, *args, **options)
        time.sleep(0.3)
        return found

    put(folder, "old.json", lines(1))
    monkeypatch.setattr(kind, "list", slow)
    assert table_of(planned(Files(path=folder, lag_seconds=0.2)))[0]["id"].to_pylist() == [1]


def test_hidden_empty_and_other_files_are_not_read(folder: str) -> None:
    for name in ("_tmp/a.json", ".b.json", "x/_c.json", "d.txt", "_SUCCESS"):
        put(folder, name, lines(9))
    put(folder, "e.json", "")
    put(folder, "x/day=1/f.json", lines(1), OLD + 1)
    source = Files(path=folder, pattern="*.json")
    batch = planned(source)
    assert table_of(batch)[0]["id"].to_pylist() == [1]
    assert batch.notes == ("1 files without content are not read: e.json",)
    assert Files(path=folder, pattern="*.json", recursive=False).plan(Request()) is None
    with pytest.raises(SourceError, match=r"d\.txt: expected a name that ends with one of .*set format"):
        planned(Files(path=folder))


def test_two_formats_in_a_batch_are_refused(folder: str) -> None:
    put(folder, "a.csv", "id\n1\n")
    put(folder, "b.json", lines(1))
    with pytest.raises(SourceError, match=r"found .*a\.csv and .*b\.json; set pattern"):
        planned(Files(path=folder))


@pytest.mark.parametrize("place", ["", "abc", "1700000000000,5", " 1", "1.5", "topic,0:1"])
def test_a_place_is_a_time(folder: str, place: str) -> None:
    with pytest.raises(SourceError, match="expected a time in epoch milliseconds"):
        Files(path=folder).plan(Request(after=place))


def test_the_first_place_of_hudi_is_read(folder: str) -> None:
    put(folder, "a.json", lines(1))
    assert run(Files(path=folder), after=str(-(1 << 63)))[0] == [[1]]


WRONG: list[dict[str, Any]] = [
    {"path": ""},
    {"format": "xml"},
    {"after": "burn"},
    {"lag_seconds": -1},
    {"lag_seconds": True},
    {"bytes_max": 0},
    {"pattern": ""},
    {"null_texts": "NA"},
    {"options": {"Mode": "FAILFAST"}},
    {"archive": "_done"},
    {"after": "archive"},
    {"after": "archive", "archive": "done"},
    {"after": "archive", "archive": "_done/../x"},
    {"after": "archive", "archive": "memory://other/done"},
]


@pytest.mark.parametrize("options", WRONG, ids=str)
def test_wrong_options_name_the_field(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidConfigError, match=f"^{[*options][-1] if options != WRONG[10] else 'archive'}: expected"):
        Files(**{"path": "memory://x", **options})


def test_storage_options_are_not_shown() -> None:
    assert "secret" not in repr(Files(path="/x", storage_options={"durable": "false"}, options={"k": "secret"}))


def test_orc_and_options_need_spark(folder: str) -> None:
    put(folder, "a.orc", "x")
    with pytest.raises(UnsupportedError, match="Spark only"):
        planned(Files(path=folder))
    with pytest.raises(InvalidConfigError, match="options: expected none in process, found sep"):
        planned(Files(path=folder, options={"sep": ";"}))


def _parquet(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink)
    return sink.getvalue()


def _avro(schema: dict[str, Any], rows: list[dict[str, Any]], codec: str = "deflate") -> bytes:
    sink = io.BytesIO()
    fastavro.writer(sink, fastavro.parse_schema(schema), rows, codec=codec, sync_interval=100)
    return sink.getvalue()


def test_columns_of_parquet_files_are_unified(folder: str) -> None:
    put(folder, "a.parquet", _parquet(pa.table({"id": pa.array([1], pa.int32()), "a": ["x"]})))
    put(folder, "b.parquet", _parquet(pa.table({"b": [1.5], "id": pa.array([1 << 40], pa.int64())})), OLD + 1)
    rows, bad = table_of(planned(Files(path=folder)))
    assert rows.to_pylist() == [{"id": 1, "a": "x", "b": None}, {"id": 1 << 40, "a": None, "b": 1.5}]
    assert rows.schema.field("id").type == pa.int64()
    assert (bad.count(), bad.rows().to_pylist()) == (0, [])


def test_conflicting_types_name_both_files(folder: str) -> None:
    for number, table in enumerate([{"x": ["a"]}, {"id": [1]}, {"id": ["a"]}]):
        put(folder, f"{number}.parquet", _parquet(pa.table(table)), OLD + number)
    with pytest.raises(
        SourceError, match=r"column 'id' has the type int64 in .*1\.parquet, but string in .*2\.parquet"
    ):
        planned(Files(path=folder)).read()


def test_avro_files(folder: str) -> None:
    fields = [
        {"name": "id", "type": "long"},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "tags", "type": ["null", {"type": "array", "items": "string"}], "default": None},
    ]
    schema = {"type": "record", "name": "r", "namespace": "n", "fields": fields}
    rows = [{"id": n, "at": n * 1_000_000, "tags": ["x"] * (n % 3) or None} for n in range(300)]
    put(folder, "a.avro", _avro(schema, rows))
    more = {"type": "record", "name": "r", "fields": [fields[0], {"name": "z", "type": "string"}]}
    put(folder, "b.avro", _avro(more, [{"id": 300, "z": "y"}], codec="null"), OLD + 1)
    found, _ = table_of(planned(Files(path=folder)))
    assert found["id"].to_pylist() == [*range(301)]
    assert found["tags"].to_pylist() == [row["tags"] for row in rows] + [None]
    assert found["z"].to_pylist() == [None] * 300 + ["y"]
    assert found.schema.field("at").type == pa.timestamp("us", "UTC")
    assert found["at"].cast(pa.int64()).to_pylist()[:3] == [0, 1_000_000, 2_000_000]
    put(folder, "c.avro", _avro(schema, rows)[:-40], OLD + 2)
    with pytest.raises(SourceError, match=r"c\.avro: the rows after row \d+ cannot be read"):
        table_of(planned(Files(path=folder), after=str(OLD + 1)))
    put(folder, "d.avro", b"Obj\x01" + b"x" * 50, OLD + 3)
    with pytest.raises(SourceError, match=r"d\.avro: expected an Avro file of records"):
        planned(Files(path=folder), after=str(OLD + 2)).read()


def test_json_lines_that_do_not_parse_or_fit_are_bad_rows(folder: str) -> None:
    content = '{"id":1}\n{"id":\n\n[1]\n{"id":"x"}\n{"id":2}\n'
    put(folder, "in.jsonl", content)
    rows, bad = table_of(planned(Files(path=folder), schema=pa.schema([("id", pa.int64()), ("n", pa.string())])))
    assert rows.to_pylist() == [{"id": 1, "n": None}, {"id": 2, "n": None}]
    found = bad.rows().to_pylist()
    name = open_store(folder).uri("in.jsonl")
    assert [(row["position"], row["value"]) for row in found] == [
        (f"{name}:2", '{"id":'),
        (f"{name}:4", "[1]"),
        (f"{name}:5", '{"id":"x"}'),
    ]
    assert "row 4: expected a JSON object" in found[1]["reason"]
    assert "column 'id', row 5" in found[2]["reason"]
    assert not any(name in row["reason"] for row in found)  # the position has it
    assert (bad.count(), bad.rows(1).num_rows) == (3, 1)


def test_csv_rows_that_do_not_parse_or_fit_are_bad_rows(folder: str) -> None:
    put(folder, "a.csv", 'id,n\n1,"a\nb"\n2\nx,"c,d"\n3,4,5\n4,\n5,NA\ny,z\n')
    put(folder, "b.csv", "id,m\n7,8\n8\n", OLD + 1)
    source = Files(path=folder, null_texts=["NA"])
    rows, bad = table_of(planned(source, schema=pa.schema([("id", pa.int64())])))
    assert rows.to_pylist() == [
        {"id": 1, "n": "a\nb", "m": None},
        {"id": 4, "n": None, "m": None},
        {"id": 5, "n": None, "m": None},
        {"id": 7, "n": None, "m": 8},
    ]
    uri = open_store(folder).uri
    assert sorted((row["position"], row["value"]) for row in bad.rows().to_pylist()) == [
        (f"{uri('a.csv')}:2", "2"),
        (f"{uri('a.csv')}:3", 'x,"c,d"'),
        (f"{uri('a.csv')}:4", "3,4,5"),
        (f"{uri('a.csv')}:7", "y,z"),
        (f"{uri('b.csv')}:2", "8"),
    ]
    assert all(f"row {row['position'].rpartition(':')[2]}" in row["reason"] for row in bad.rows().to_pylist())


def test_new_columns_can_be_left_out(folder: str) -> None:
    put(folder, "a.csv", "id,n\n1,2\n")
    put(folder, "b.csv", "n,id\nx,3\n", OLD + 1)
    schema = pa.schema([("id", pa.string())])
    found, _ = table_of(planned(Files(path=folder, new_columns=False), schema=schema))
    assert found.to_pylist() == [{"id": "1"}, {"id": "3"}]
    with pytest.raises(SourceError, match=r"column 'n' has the type int64 in .*a\.csv, but string in .*b\.csv"):
        planned(Files(path=folder), schema=schema).read()


def test_a_known_column_that_the_beginning_of_a_json_file_lacks(folder: str) -> None:
    put(folder, "a.json", "".join([*(f'{{"id":{n},"x":"{"x" * 1000}"}}\n' for n in range(4200)), '{"id":9,"n":7}\n']))
    put(folder, "b.json", '{"x":1}\n', OLD + 1)
    schema = pa.schema([("id", pa.int64()), ("n", pa.int64()), ("_hoodie_is_deleted", pa.bool_())])
    found, bad = table_of(planned(Files(path=folder, new_columns=False), schema=schema))
    assert found.schema == schema
    assert found.slice(4199).to_pylist() == [
        {"id": id_, "n": n, "_hoodie_is_deleted": None} for id_, n in ((4199, None), (9, 7), (None, None))
    ]
    assert bad.count() == 0


def test_packed_files_and_names_without_an_ending(folder: str) -> None:
    put(folder, "a.json.gz", gzip.compress(lines(1).encode()))
    put(folder, "part-1", lines(2), OLD + 1)
    assert run(Files(path=folder, format="json"))[0] == [[1, 2]]
    put(folder, "b.json", gzip.compress(lines(1).encode()), OLD + 2)
    with pytest.raises(SourceError, match=r"b\.json: expected \.json, found the beginning of a \.gz file"):
        planned(Files(path=folder), after=str(OLD + 1)).read()


def test_many_beginnings_are_not_kept(folder: str) -> None:
    """More files than are kept open: the others are opened twice, and their bad lines are reported once."""
    for number in range(130):
        put(folder, f"{number:03}.json", lines(number) + "x\n", OLD + number)
    rows, bad = table_of(planned(Files(path=folder)))
    assert rows["id"].to_pylist() == [*range(130)]
    assert len({row["position"] for row in bad.rows().to_pylist()}) == bad.count() == 130


def test_a_batch_is_read_again_after_a_failure(folder: str) -> None:
    put(folder, "a.json", lines(1) + "x\n")
    batch = planned(Files(path=folder))
    for _ in range(2):
        rows, bad = table_of(batch)
        assert (rows.num_rows, bad.count()) == (1, 1)


def test_a_file_that_is_gone_is_an_error(folder: str) -> None:
    put(folder, "a.json", lines(1))
    batch = planned(Files(path=folder))
    open_store(folder).delete("a.json")
    with pytest.raises(SourceError, match=r"a\.json"):
        batch.read()


def _leaving(folder: str, after: Any) -> Files:
    return Files(path=folder, after=after, archive="_done" if after == "archive" else None)


def _names(folder: str) -> list[str]:
    return [info.path for info in open_store(folder).list("", recursive=True)]


@pytest.mark.parametrize("after", ["archive", "delete"])
def test_late_files_are_read_if_files_leave(folder: str, after: str) -> None:
    source = _leaving(folder, after)
    put(folder, "d/a.json", lines(1), OLD + 5)
    found, place = run(source)
    assert (found, place) == ([[1]], str(OLD + 5))
    put(folder, "d/a.json", lines(2), OLD + 3)
    put(folder, "b.json", lines(3), OLD + 3)
    found, place = run(source, after=place)
    assert (found, place) == ([[3, 2]], str(OLD + 6))
    kept = ["_done/b.json", f"_done/d/a.{OLD + 3}.json", "_done/d/a.json"] if after == "archive" else []
    assert _names(folder) == kept


@pytest.mark.parametrize("after", ["archive", "delete"])
def test_a_death_between_commit_and_removal_reads_nothing_twice(folder: str, after: str) -> None:
    source = _leaving(folder, after)
    put(folder, "a.json", lines(1), OLD + 1)
    put(folder, "b.json", lines(2), OLD + 2)
    batch = planned(source, limit=1)
    table_of(batch)
    # The batch is committed, and the process dies. Files arrive: a late file, and a new content of a committed file.
    put(folder, "late.json", lines(3), OLD)
    put(folder, "a.json", lines(4), OLD + 4)
    found, _ = run(source, after=batch.place)
    assert found == [[3, 2, 4]]
    assert not [name for name in _names(folder) if not name.startswith("_done/")]


@pytest.mark.parametrize("after", ["archive", "delete"])
def test_a_batch_that_was_not_committed_is_planned_again_with_the_same_files(folder: str, after: str) -> None:
    source = _leaving(folder, after)
    put(folder, "a.json", lines(1), OLD + 1)
    first = planned(source)
    assert _names(folder) == ["a.json"], "planning writes nothing"
    table_of(first)
    put(folder, "late.json", lines(2), OLD)
    again = planned(source)
    assert (again.place, table_of(again)[0]["id"].to_pylist()) == (first.place, [1])
    assert "1 files are left" in again.about
    # A file of the batch is replaced: the batch is no longer the same, so it gets another place.
    put(folder, "a.json", lines(3), OLD + 1)
    put(folder, "a.json", lines(3, 4), OLD + 2)
    other = planned(source)
    assert table_of(other)[0]["id"].to_pylist() == [2, 3, 4]
    assert int(other.place) > int(first.place)
    assert run(source)[0] == [[2, 3, 4]]
    assert not [name for name in _names(folder) if name.endswith("json") and name[0] not in "_."]


@pytest.mark.parametrize("after", ["archive", "delete"])
def test_a_look_changes_nothing(folder: str, after: str) -> None:
    """A preview reads, and a status plans: no list is written, and the files of a committed batch stay."""
    source = _leaving(folder, after)
    for number in range(3):
        put(folder, f"{number}.json", lines(number), OLD + number)
    first = source.plan(Request(limit=1, is_look=True))
    assert first is not None
    assert (table_of(first)[0]["id"].to_pylist(), first.after_commit) == ([0], None)
    assert _names(folder) == ["0.json", "1.json", "2.json"]
    table_of(planned(source, limit=1))
    # Committed, and the process died: the next look leaves out what the next planning removes.
    before = _names(folder)
    for _ in range(2):
        look = source.plan(Request(after=first.place, limit=1, is_look=True))
        assert look is not None
        assert table_of(look)[0]["id"].to_pylist() == [1]
    last = source.plan(Request(after=str(OLD + 9), is_look=True))
    assert last is not None
    assert table_of(last)[0]["id"].to_pylist() == [0, 1, 2]
    assert _names(folder) == before
    assert run(source, after=first.place)[0] == [[1, 2]]


def test_two_processes_cannot_read_different_batches_of_one_place(folder: str) -> None:
    source = _leaving(folder, "delete")
    put(folder, "a.json", lines(1), OLD + 1)
    one = planned(source)
    put(folder, "late.json", lines(2), OLD)
    other = planned(source)
    assert one.place == other.place
    table_of(one)
    with pytest.raises(SourceError, match="another process planned a batch of other files from this place"):
        other.read()


def test_a_list_of_other_content_is_refused(folder: str) -> None:
    put(folder, f".hoodie-ingest-start-{OLD}.json", "x")
    with pytest.raises(SourceError, match=r"start-\d+\.json: expected the list of files of a batch"):
        _leaving(folder, "delete").plan(Request())


def test_an_archive_beside_the_folder(tmp_path: Path) -> None:
    put(str(tmp_path / "in"), "d/a.json", lines(1))
    source = Files(path=str(tmp_path / "in"), after="archive", archive=str(tmp_path / "out/done"))
    assert run(source)[0] == [[1]]
    assert (tmp_path / "out/done/d/a.json").read_text() == lines(1)
    assert not (tmp_path / "in/d/a.json").exists()
    with pytest.raises(InvalidConfigError, match="archive: expected a folder outside of"):
        Files(path=str(tmp_path / "in"), after="archive", archive=str(tmp_path / "in/done"))
    with pytest.raises(InvalidConfigError, match="archive: expected a folder in the same storage"):
        Files(path=str(tmp_path / "in"), after="archive", archive="memory://done")


ARRIVALS = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 2)), max_size=12)
"""Files that arrive: change times (growing from one arrival to the next by these steps), and lines."""


@settings(max_examples=examples(60))
@given(
    waves=st.lists(ARRIVALS, max_size=5), limits=st.lists(st.sampled_from([None, 1, 2, 3, 7]), min_size=1, max_size=5)
)
def test_each_file_is_read_once(waves: list[list[tuple[int, int]]], limits: list[int | None]) -> None:
    with memory_folder() as name:
        folder, after = f"memory://{name}", None
        source, at, number = Files(path=folder), OLD, 0
        written: list[int] = []
        read: list[int] = []
        for turn, wave in enumerate(waves):
            at += 1
            for step, count in wave:
                at += step
                put(folder, f"{(number * 7919) % 100:03}-{number}.json", lines(*[number] * count), at)
                written += [number] * count
                number += 1
            for _ in range(turn % 3):
                batch = source.plan(Request(after=after, limit=limits[turn % len(limits)]))
                if batch is not None:
                    read += table_of(batch)[0]["id"].to_pylist()
                    after = batch.place
        found, _ = run(source, after, limits[0])
        read += [one for batch_rows in found for one in batch_rows]
        assert sorted(read) == written


@settings(max_examples=examples(60))
@given(
    waves=st.lists(ARRIVALS, min_size=1, max_size=5),
    limit=st.sampled_from([None, 1, 2, 5]),
    deaths=st.lists(st.sampled_from(["planned", "read", "committed", "removed"]), min_size=1, max_size=8),
)
def test_each_file_is_read_once_if_files_leave(
    waves: list[list[tuple[int, int]]], limit: int | None, deaths: list[str]
) -> None:
    """Files arrive with any times, also before the place; the process dies at any step of a batch."""
    with memory_folder() as name:
        folder, after = f"memory://{name}", None
        source = Files(path=folder, after="delete")
        committed: list[int] = []
        number = turn = 0
        for wave in waves:
            for step, _ in wave:
                put(folder, f"{number}.json", lines(number), OLD + step)
                number += 1
            while (batch := source.plan(Request(after=after, limit=limit))) is not None:
                death = deaths[turn % len(deaths)] if turn < 20 else "removed"
                turn += 1
                if death != "planned":
                    rows = table_of(batch)[0]["id"].to_pylist()
                if death in ("committed", "removed"):
                    committed += rows
                    after = batch.place
                if death == "removed":
                    assert batch.after_commit is not None
                    batch.after_commit()
                if turn % 5 == 0:
                    break
        committed += [one for rows in run(source, after, limit)[0] for one in rows]
        assert sorted(committed) == [*range(number)]
        assert _names(folder) == []


def test_files_without_content_are_passed_over_in_one_plan(tmp_path: Path) -> None:
    for number in range(100):
        (tmp_path / f"d{number}").mkdir()
        for other in range(100):
            (tmp_path / f"d{number}/{other}.json").touch()
            LocalStore(tmp_path).set_modified_ms(f"d{number}/{other}.json", OLD + number)
    (tmp_path / "last.json").write_text(lines(1))
    source = Files(path=str(tmp_path), lag_seconds=0)
    batch = source.plan(Request(limit=1_000))
    assert batch is not None
    assert "10000 files without content" in batch.notes[0]
