"""Writers of the data source, as Spark calls them: pickled, with attempts that fail, and without a commit."""

from __future__ import annotations

import pickle
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import hoodie
from hoodie.files.staging.row_files import new_row_folder, write_row_file
from hoodie.files.staging.staged import is_dead_stage_folder
from hoodie.spark.datasource import TableSource
from hoodie.spark.datasource_writer import StagedRows, TableWriter
from hoodie.spark.types import spark_schema_of
from hoodie.timeline.locks import file_system, in_process
from tests.support.odd_types import text_of_bytes
from tests.support.tables import new_table

SCHEMA = pa.schema([("id", pa.string()), ("x", pa.int64())])
DAY_MS = 24 * 60 * 60 * 1000


def batch(*rows: tuple[str, int]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], SCHEMA)


def failing(first: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    yield first
    raise RuntimeError("this attempt fails")


@pytest.fixture
def table(tmp_path: Path) -> hoodie.Table:
    return new_table(SCHEMA, path=tmp_path / "t")


@pytest.fixture(autouse=True)
def with_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    """The writer of these tests runs in this process, which is not to change for later tests."""
    monkeypatch.setenv("HOODIE_TRACEBACK", "1")


def writer_of(table: hoodie.Table, **options: str) -> TableWriter:
    source = TableSource({"path": table.path, **options})
    return source.writer(spark_schema_of(SCHEMA), overwrite=False)


def sent(writer: TableWriter) -> TableWriter:
    """The writer in another process."""
    copy: TableWriter = pickle.loads(pickle.dumps(writer))
    return copy


def staged(table: hoodie.Table) -> list[str]:
    return [info.path for info in table.view().store.list(".hoodie/.temp", recursive=True)]


def test_only_the_attempts_that_succeeded_are_written(table: hoodie.Table) -> None:
    writer = writer_of(table)
    with pytest.raises(RuntimeError, match="this attempt fails"):
        sent(writer).write(failing(batch(("a", 1), ("b", 2))))
    speculative = sent(writer).write(iter([batch(("a", 1), ("b", 2))]))
    again = sent(writer).write(iter([batch(("a", 1)), batch(("b", 2))]))
    other = sent(writer).write(iter([batch(), batch(("c", 3))]))
    empty = sent(writer).write(iter([batch()]))
    assert (empty.path, speculative.path == again.path, len(staged(table))) == (None, False, 4)
    sent(writer).commit([again, other, empty])
    assert sorted(row["id"] for row in table.to_arrow().to_pylist()) == ["a", "b", "c"]
    assert staged(table) == []


def test_a_write_that_is_given_up_leaves_nothing(table: hoodie.Table) -> None:
    writer = writer_of(table)
    with pytest.raises(RuntimeError, match="this attempt fails"):
        sent(writer).write(failing(batch(("a", 1))))
    done = sent(writer).write(iter([batch(("b", 2))]))
    sent(writer).abort([None, done])
    assert (staged(table), table.timeline.instants, table.count()) == ([], (), 0)


def test_text_that_is_not_utf8_is_refused_where_it_is_staged(table: hoodie.Table) -> None:
    wrong = pa.record_batch({"id": text_of_bytes(b"ok", b"\xff"), "x": pa.array([1, 2])})
    with pytest.raises(hoodie.SchemaMismatchError, match="column 'id', row 2: text with bytes that are not valid"):
        sent(writer_of(table)).write(iter([batch(("a", 1)), wrong]))


_WRITER = """
import sys
import pyarrow as pa
from tests.unit.spark.test_datasource_writer import batch, hoodie, writer_of

print(writer_of(hoodie.open(sys.argv[1], spark=False)).write(iter([batch(("a", 1))])).path)
"""
_DRIVER = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {_WRITER!r}, sys.argv[1]], check=True)"


def test_verify_finds_the_rows_of_a_driver_that_died_and_repair_deletes_them(table: hoodie.Table) -> None:
    done = subprocess.run([sys.executable, "-c", _DRIVER, table.path], capture_output=True, text=True, check=True)
    (path,) = staged(table)
    assert path == done.stdout.strip()
    report = table.verify()
    assert report.warnings == {"leftover-stage": 1}
    assert path.startswith(f"{report.findings[0].key}/")
    assert table.repair(dry_run=False).counts == {"tidy": 1}
    assert (staged(table), table.verify().warnings) == ([], {})


def test_verify_notes_the_rows_of_a_stream(table: hoodie.Table) -> None:
    path = write_row_file(table.view().store, new_row_folder(), SCHEMA, [batch(("a", 1))])
    report = table.verify()
    assert (report.ok, report.warnings, len(staged(table))) == (True, {}, 1)
    assert any(note.startswith(f"{str(path).rpartition('/')[0]} has staged rows") for note in report.notes)


def test_a_death_before_the_commit_leaves_files_that_a_write_deletes_a_day_later(table: hoodie.Table) -> None:
    writer = writer_of(table)
    sent(writer).write(iter([batch(("a", 1))]))
    table.insert([{"id": "z", "x": 0}])  # another write meanwhile must not delete the rows of a write that may run
    assert len(staged(table)) == 1
    assert [row["id"] for row in table.to_arrow().to_pylist()] == ["z"]
    (folder,) = {path.rpartition("/")[0] for path in staged(table)}
    now_ms = time.time_ns() // 1_000_000
    store = table.view().store
    assert not is_dead_stage_folder(store, folder, now_ms=now_ms)
    assert is_dead_stage_folder(store, folder, now_ms=now_ms + DAY_MS + 60_000)


def test_a_commit_that_fails_leaves_the_table_as_it_was(table: hoodie.Table) -> None:
    writer = writer_of(table)
    done = sent(writer).write(iter([batch(("a", 1))]))
    with pytest.raises(FileNotFoundError):
        sent(writer).commit([done, StagedRows(f"{done.path}-lost")])
    sent(writer).abort([done])
    assert (staged(table), table.count()) == ([], 0)
    assert table.insert([{"id": "b", "x": 1}]).inserted == 1
    assert table.verify(full=True).ok


def test_notes_of_the_result_are_warnings(table: hoodie.Table) -> None:
    table.insert([{"id": "a", "x": 1}])
    writer = writer_of(table, operation="insert")
    done = writer.write(iter([batch(("a", 2))]))
    with pytest.warns(hoodie.HoodieWarning, match=r"insert \d{17}: .*a record that the table had"):
        writer.commit([done])


def test_tables_of_one_process_are_refused() -> None:
    table = hoodie.create("memory://datasource-writer", SCHEMA, record_key="id", spark=False)
    with pytest.raises(hoodie.UnsupportedError, match="Spark's workers cannot write to it"):
        writer_of(table, operation="insert")


def test_a_commit_in_a_process_of_its_own_takes_a_lock_that_other_processes_see(table: hoodie.Table) -> None:
    key = "hoodie.write.lock.provider"
    writer = writer_of(table, **{key: in_process.NAME})
    assert writer.save.properties == {key: file_system.NAME}
    writer.commit([writer.write(iter([batch(("a", 1))]))])
    assert table.count() == 1
    with_key = hoodie.create(f"{table.path}-2", SCHEMA, record_key="id", properties={key: in_process.NAME}, spark=False)
    assert writer_of(with_key).save.properties == {key: file_system.NAME}
    zookeeper = {key: "org.apache.hudi.client.transaction.lock.ZookeeperBasedLockProvider"}
    assert writer_of(with_key, **zookeeper).save.properties == zookeeper
