"""One record index, two engines that keep it up and find rows by it: our writes and the JVM's in turns."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hoodie
from hoodie.engine import LocalEngine, TaskContext
from hoodie.files.table_properties import read_table_config, update_table_config
from hoodie.index.record.state import record_index
from hoodie.metadata.folder import MetadataFolder
from hoodie.storage import LocalStore
from hoodie.timeline import Action
from tests.interop.judges import HIVE, Jvm, assert_index_is_data, create_trips, read_with_hudi_rs
from tests.property.model import SCHEMA, Model, Row, Rules, fresh_batch, random_batch, to_arrow
from tests.support.deaths import check_tidy
from tests.support.index_check import check_index
from tests.support.rows import assert_same_rows
from tests.support.seeds import seeded

NAMED = {"hoodie.metadata.record.index.enable": "true", "hoodie.index.type": "RECORD_INDEX"}
MIN_BUCKETS = "hoodie.metadata.record.index.min.filegroup.count"
MAX_BUCKETS = "hoodie.metadata.record.index.max.filegroup.count"
# Cleaning and archiving of the data table are not what is judged here, and take the JVM a second a commit.
QUICK = {**HIVE, "hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false"}
COMPACT = "hoodie.metadata.compact.max.delta.commits"
KEYS = 60
# An emoji and a family of several, a letter with a mark of its own and the composed one, other scripts, a flag, quotes.
WORDS = ("😀", "👩‍👩‍👧", "e\u0301", "é", "鍵", "مفتاح", "🇳🇱", "a'b\"c", "k:1,x:2", " blank ", "𝔸")

DYING = """
import os, signal, sys
import hoodie
from hoodie.commit.steps import Step, watching
from tests.property.model import Row, to_arrow

def die(step):
    if step is Step.{place}:
        os.kill(os.getpid(), signal.SIGKILL)

with watching(die):
    hoodie.open(sys.argv[1]).upsert(to_arrow(eval(sys.argv[2], {{"Row": Row}})))
"""
DEATHS = {"after the index logs": "LOCATED", "after the metadata table": "RECORDED"}


def kill_a_writer(path: Path, rows: Sequence[Row], place: str) -> None:
    """A process of ours upserts and is killed; the index logs of its commit are written."""
    command = [sys.executable, "-c", DYING.format(place=place), str(path), repr(list(rows))]
    ended = subprocess.run(command, check=False, capture_output=True, text=True, cwd=Path(__file__).parents[2])
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    (dead,) = hoodie.open(path).timeline.pending().instants
    assert list(path.glob(f".hoodie/metadata/record_index/.*_{dead.requested_time}.log*"))


@pytest.fixture
def tasks_fail_once(monkeypatch: pytest.MonkeyPatch) -> Callable[[bool], None]:
    """Switch: every task of our engine does its work, is lost, and runs again as the next attempt."""
    run = LocalEngine.run

    def run_twice(
        engine: LocalEngine, function: Callable[[Any, TaskContext], Any], tasks: Sequence[Any], *sizes: Any
    ) -> list[Any]:
        def lost(task: Any, context: TaskContext) -> Any:
            # The caller's own rows can be had once only, there as in Spark's driver.
            if isinstance(task, Iterator):
                return function(task, context)
            function(task, context)
            return function(task, replace(context, attempt=context.attempt + 1))

        return run(engine, lost, tasks, *sizes)

    def switch(on: bool) -> None:
        monkeypatch.setattr(LocalEngine, "run", run_twice if on else run)

    return switch


class Turns:
    """A table with a record index, its model, and those who write it."""

    def __init__(self, jvm: Jvm, path: Path, seed: int, *, moves: bool = True) -> None:
        self.jvm = jvm
        self.path = path
        self.rng = random.Random(seed)
        self.rules = Rules(event_time=True, index="record", moves=moves)
        self.model = Model(self.rules)
        self.keys = [self._key(number) for number in range(KEYS)]
        self.gone: set[str] = set()

    def _key(self, number: int) -> str:
        """High-entropy, sequential, and beyond ASCII in turns."""
        text = "".join(self.rng.choices(WORDS, k=self.rng.randint(1, 3)))
        return (str(uuid.UUID(int=self.rng.getrandbits(128))), f"{number:09}", f"{text}{number}")[number % 3]

    def create(self, **stored: str) -> None:
        """A table of ours; three buckets, as each costs the JVM two tasks a commit."""
        create_trips(self.path, SCHEMA, properties={MIN_BUCKETS: "3"})
        if stored:
            self.store(stored)

    def store(self, properties: Mapping[str, str]) -> None:
        """Change what the table says of itself, to both writers."""
        update_table_config(LocalStore(str(self.path)), dict(properties))

    def ours(self, operation: str, rows: list[Row]) -> None:
        data = to_arrow(rows)
        getattr(hoodie.open(self.path), operation)(data.select(["id"]) if operation == "delete" else data)

    def theirs(self, operation: str, rows: list[Row], **options: str) -> None:
        """The JVM's writer; without options it is told nothing of an index."""
        self.jvm.write_trips(to_arrow(rows), self.path, operation=operation, options={**QUICK, **options})

    def named(self, operation: str, rows: list[Row]) -> None:
        """The JVM's writer, told to use the record index."""
        self.theirs(operation, rows, **NAMED)

    def batch(self, rows_max: int) -> list[Row]:
        """Rows of which some meet; no two of one key have the same ordering value, where the JVM promises nothing."""
        rows = random_batch(self.rng, rows_max, KEYS)
        return [self._settled(replace(row, id=self.keys[int(row.id[1:])]), n) for n, row in enumerate(rows)]

    def fresh(self, rows_max: int) -> list[Row]:
        rows = fresh_batch(self.rng, rows_max, self.model.commit)
        return [
            replace(self._settled(row, n), id=f"{row.id}-{WORDS[n]}", is_deleted=False) for n, row in enumerate(rows)
        ]

    def _settled(self, row: Row, number: int) -> Row:
        return replace(row, ts=self.rng.randrange(2 + self.model.commit) * 100 + number)

    def step(self, operation: str, write: Callable[[str, list[Row]], None]) -> None:
        """One write, of the table and of the model."""
        before = {row.id for row in self.model.rows.values()}
        if operation == "upsert":
            rows = self.batch(25)
            self.model.upsert(rows)
        elif operation == "insert_overwrite":
            rows = self.fresh(4)
            self.model.overwrite(rows, whole_table=False)
        elif operation == "delete":
            stored = sorted(self.model.rows.values(), key=lambda row: row.id)
            rows = [replace(row, ts=10**6) for row in self.rng.sample(stored, min(len(stored), 5))]
            self.model.delete(rows)
            unknown = Row("unknown", 10**6, "sf", None, None)
            rows.append(unknown)
        else:
            rows = self.fresh(8)
            self.model.insert(rows)
        write(operation, rows)
        self.settle(before)

    def settle(self, before: Collection[str]) -> None:
        """The model did what a commit did; `before` are the keys that there were."""
        self.model.done()
        self.gone = (self.gone | set(before)) - {row.id for row in self.model.rows.values()}

    def drop(self, path: str, write: Callable[[], object]) -> None:
        """A write that takes a partition out of the table."""
        before = [row.id for row in self.model.rows.values()]
        self.model.drop(lambda row: row.path == path)
        write()
        self.settle(before)

    def check(self) -> None:
        """Rows, keys and locations agree in all engines, and queries by key find rows in the files that hold them."""
        ours = hoodie.open(self.path).to_arrow()
        assert_same_rows(ours, to_arrow(self.model.rows.values()), key="id")
        # Of a row that stays where it was, the JVM shows the partition's value, the others what the file says.
        shown = [name for name in ours.column_names if self.rules.moves or name != "city"]
        theirs = self.jvm.read(self.path, shown)
        assert_same_rows(theirs, ours.select(shown), meta=True)
        assert_same_rows(read_with_hudi_rs(self.path), ours, meta=True)
        locations = assert_index_is_data(self.jvm, self.path, rows=theirs, gone=self.gone)
        rows = {row.id: row for row in self.model.rows.values()}
        assert {key: path for key, (path, _) in locations.items()} == {key: row.path for key, row in rows.items()}

    def check_queries(self) -> None:
        """Rows by key: some that are there, one that is gone, one that never was."""
        rows = {row.id: row for row in self.model.rows.values()}
        asked = [*self.rng.sample(sorted(rows), min(len(rows), 6)), *sorted(self.gone)[:1], "never"]
        wanted = to_arrow(rows[key] for key in asked if key in rows)
        locations = self.jvm.locations(self.path, asked)
        found = self.jvm.read_by_key(self.path, asked)
        theirs = [{name: row[name] for name in wanted.column_names} for row in found.rows]
        assert_same_rows(pa.Table.from_pylist(theirs, SCHEMA), wanted, key="id")
        assert found.files == len(set(locations.values()))
        assert_same_rows(hoodie.open(self.path, spark=False).read_keys(asked), wanted, key="id")

    @property
    def partitions(self) -> set[str]:
        """Partitions of the metadata table."""
        return set(read_table_config(LocalStore(str(self.path))).metadata_partitions)

    def metadata_actions(self) -> list[Action]:
        """What completed on the metadata table's timeline."""
        store = LocalStore(str(self.path))
        timeline = MetadataFolder(store, read_table_config(store)).timeline()
        return [instant.action for instant in timeline.completed()]


COMMITS = 20


@seeded(1006)
def test_twenty_commits_in_turns(jvm: Jvm, tmp_path: Path, seed: int, tasks_fail_once: Callable[[bool], None]) -> None:
    """Some of ours with tasks that fail once, and two writers of ours that are killed between index and commit."""
    run = Turns(jvm, tmp_path / "trips", seed)
    run.create(**{COMPACT: "4"})
    operations = ["upsert", "insert", "bulk_insert", "delete", "insert_overwrite"]
    for step in range(COMMITS):
        operation = "upsert" if step < 2 else run.rng.choices(operations, [6, 1, 1, 3, 1])[0]
        # Ours, the JVM's that names the index, ours with retries, the JVM's that is told nothing.
        write = (run.ours, run.named, run.ours, run.theirs)[step % 4]
        try:
            tasks_fail_once(step % 4 == 2)
            if step in (7, 12):
                kill_a_writer(run.path, run.batch(25), list(DEATHS.values())[step == 12])
            run.step(operation, write)
            run.check()
            if step % 3 == 2:
                run.check_queries()
        except BaseException as error:
            error.add_note(f"seed {seed}, step {step}: {operation} by {write.__name__}")
            raise
    assert run.partitions == {"files", "record_index"}
    assert Action.COMMIT in run.metadata_actions()


STATISTICS = {
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.index.partition.stats.enable": "true",
}
STORED = {
    "hoodie.index.type": "RECORD_INDEX",
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.record.index.update.partition.path": "true",
    COMPACT: "2",
}


@pytest.mark.parametrize("buckets", [10, 3])
def test_we_continue_a_record_index_of_the_jvm(jvm: Jvm, tmp_path: Path, buckets: int) -> None:
    """Ten buckets, and nothing stored about the index: rows stay in their partition. Three, and moves: they go."""
    run = Turns(jvm, tmp_path / "trips", seed=buckets, moves=buckets == 3)
    options = {**NAMED, **STATISTICS, MIN_BUCKETS: str(buckets), MAX_BUCKETS: str(buckets)}

    def named(operation: str, rows: list[Row]) -> None:
        run.theirs(operation, rows, **options)

    def compacting(operation: str, rows: list[Row]) -> None:
        run.theirs(operation, rows, **options, **{COMPACT: "1"})

    run.step("upsert", named)
    assert run.partitions == {"files", "record_index", "column_stats", "partition_stats"}
    state = record_index(hoodie.open(run.path).view())
    assert state is not None
    assert len(state.file_groups) == buckets
    if run.rules.moves:
        run.store(STORED)
    run.step("upsert", run.ours)
    assert run.partitions == {"files", "record_index", "column_stats", "partition_stats"}
    run.check()
    run.step("upsert", named)
    run.step("delete", run.ours)
    run.check()
    run.step("upsert", named if run.rules.moves else compacting)
    run.step("upsert", run.ours)
    run.check()
    run.check_queries()
    assert Action.COMMIT in run.metadata_actions()


def test_queries_by_key_after_our_services(jvm: Jvm, tmp_path: Path) -> None:
    """Our compactions and cleanings leave an index of real size, by which the JVM finds rows, and goes on."""
    run = Turns(jvm, tmp_path / "trips", seed=1)
    run.create(**{COMPACT: "3"})
    many = [Row(str(uuid.UUID(int=run.rng.getrandbits(128))), 0, "sf", float(n), None) for n in range(3000)]
    run.model.insert(many)
    run.ours("bulk_insert", many)
    run.settle(())
    for step in range(27):
        run.step("delete" if step % 5 == 4 else "upsert", run.ours)
    actions = run.metadata_actions()
    assert Action.CLEAN in actions
    assert actions.count(Action.COMMIT) >= 5
    run.check()
    run.check_queries()
    run.step("upsert", run.theirs)
    run.step("delete", run.named)
    run.check()
    run.check_queries()


def test_partitions_that_are_dropped_or_replaced(jvm: Jvm, tmp_path: Path) -> None:
    """Their keys leave the index, whoever took them out, and may come back elsewhere."""
    run = Turns(jvm, tmp_path / "trips", seed=2)
    run.create()
    run.step("upsert", run.ours)
    run.step("upsert", run.theirs)
    run.drop("city=sf", lambda: hoodie.open(run.path).delete_partitions(["city=sf"]))
    run.check()
    run.step("upsert", run.theirs)
    run.check()
    rows = run.fresh(1)
    deletion = {"hoodie.datasource.write.partitions.to.delete": "city=sf"}
    run.drop("city=sf", lambda: run.theirs("delete_partition", rows, **deletion))
    run.check()
    run.step("upsert", run.ours)
    run.step("insert_overwrite", run.theirs)
    run.check()
    run.step("insert_overwrite", run.ours)
    run.check()
    for write in (run.theirs, run.ours):
        before = [row.id for row in run.model.rows.values()]
        rows = run.fresh(5)
        run.model.overwrite(rows, whole_table=True)
        write("insert_overwrite_table", rows)
        run.settle(before)
        run.check()
        run.step("upsert", run.ours)
    run.check_queries()


def test_we_roll_back_a_writer_of_the_jvm(jvm: Jvm, tmp_path: Path) -> None:
    """It died when the metadata table had its commit; of what it wrote into the index, nothing is believed."""
    run = Turns(jvm, tmp_path / "trips", seed=3)
    run.create()
    run.step("upsert", run.ours)
    run.step("upsert", run.theirs)
    run.theirs("upsert", run.batch(25))
    done = hoodie.open(run.path).timeline.completed().instants[-1]
    name = f"{done.requested_time}_{done.completion_time}.commit"
    for file in (name, f".{name}.crc"):
        (run.path / ".hoodie/timeline" / file).unlink()
    assert_same_rows(hoodie.open(run.path).to_arrow(SCHEMA.names), to_arrow(run.model.rows.values()), key="id")
    run.step("upsert", run.ours)
    run.check()
    run.step("upsert", run.theirs)
    run.check()
    run.check_queries()
    check_tidy(LocalStore(str(run.path)))


def test_keys_that_java_sorts_otherwise(jvm: Jvm, tmp_path: Path) -> None:
    """Emoji beside full-width letters, in one bucket by the JVM: its own look-up fails on them, ours finds each."""
    run = Turns(jvm, tmp_path / "trips", seed=4, moves=False)
    options = {**NAMED, MIN_BUCKETS: "1", MAX_BUCKETS: "1", COMPACT: "2"}
    keys = [f"{kind}{number:05}" for number in range(9000) for kind in ("a", "\uff21", "😀")]
    rows = [Row(key, 1, "sf", float(number), None) for number, key in enumerate(keys)]
    run.model.insert(rows)
    run.theirs("insert", rows, **options)
    with pytest.raises(Exception, match="backward seekTo"):
        jvm.locations(run.path, keys)
    extra = [Row("plain", 1, "sf", 0.0, None)]
    for _ in range(3):
        run.model.upsert(extra)
        run.theirs("upsert", extra, **options)
    state = record_index(hoodie.open(run.path).view())
    assert state is not None
    (bucket,) = state.file_groups
    assert bucket.file_slice.base_file is not None
    read = hoodie.open(run.path, spark=False).read_keys(keys[:3] + keys[-3:])
    assert sorted(read["id"].to_pylist()) == sorted(keys[:3] + keys[-3:])
    changed = [Row(key, 5, "sf", -1.0, None) for key in run.rng.sample(keys, 50)]
    run.model.upsert(changed)
    run.ours("upsert", changed)
    ours = hoodie.open(run.path).to_arrow()
    assert_same_rows(ours, to_arrow(run.model.rows.values()), key="id")
    assert_same_rows(jvm.read(run.path), ours, meta=True)
    check_index(hoodie.open(run.path).view())
