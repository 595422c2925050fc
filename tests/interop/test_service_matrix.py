"""Procedures and services of the JVM on every kind of our tables, and ours on every kind of its tables.

A case is a kind of table and a service. After the service both see the rows that they must see, the full check finds
no error, and both go on with the table. A run draws some of the cases by HOODIE_TEST_SEED, which is printed first;
HOODIE_TEST_ALL=1 runs all of them.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest

import hoodie
from hoodie.commit.steps import Step
from hoodie.table import Table
from hoodie.timeline import Action
from tests.interop.judges import HIVE, Jvm
from tests.support.samples import covering, sample_of
from tests.support.steps import once_at

SCHEMA = pa.schema([("id", pa.string()), ("n", pa.int64()), ("ts", pa.int64()), ("city", pa.string())])
KEYS: Final[Mapping[str, tuple[str, ...]]] = {"simple": ("id",), "composite": ("id", "n"), "automatic": ()}
INDEXES: Final[Mapping[str, dict[str, str]]] = {
    "simple": {"hoodie.index.type": "SIMPLE"},
    "global_simple": {"hoodie.index.type": "GLOBAL_SIMPLE"},
    "bloom": {"hoodie.index.type": "BLOOM"},
    "global_bloom": {"hoodie.index.type": "GLOBAL_BLOOM"},
    "bucket": {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"},
    "record": {
        "hoodie.index.type": "GLOBAL_RECORD_LEVEL_INDEX",
        "hoodie.metadata.global.record.level.index.enable": "true",
    },
    "partitioned_record": {
        "hoodie.index.type": "RECORD_LEVEL_INDEX",
        "hoodie.metadata.record.level.index.enable": "true",
    },
}
STATISTICS: Final = {
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.index.partition.stats.enable": "true",
}
Rows = dict[str, int]
"""Id -> ordering value."""


@dataclass(frozen=True)
class Kind:
    """A kind of table."""

    table_type: str
    index: str
    keys: str
    is_partitioned: bool
    version: int = 9

    def __str__(self) -> str:
        short = "mor" if self.table_type == "merge_on_read" else "cow"
        return f"{short}-{self.index}-{self.keys}-{'city' if self.is_partitioned else 'flat'}-{self.version}"

    @property
    def is_merge_on_read(self) -> bool:
        """Whether rows are in log files too."""
        return self.table_type == "merge_on_read"

    @property
    def options(self) -> dict[str, str]:
        """Statistics, and for the bucket index few buckets.

        With a partitioned record index and statistics, JVM Hudi 1.2.0 fails at its second write of a table of its own
        ("Failed to retrieve files in partition … from metadata").
        """
        found = {} if self.index == "partitioned_record" or self.version == 8 else STATISTICS
        return {**found, **({"hoodie.bucket.index.num.buckets": "2"} if self.index == "bucket" else {})}


def _kinds() -> list[Kind]:
    """All kinds; a table with automatic keys has no index of keys, and a partitioned index needs partitions."""
    types = ("copy_on_write", "merge_on_read")
    keyed = [Kind(*one) for one in product(types, INDEXES, ("simple", "composite"), (True, False))]
    automatic = [Kind(*one) for one in product(types, ("simple",), ("automatic",), (True, False))]
    older = [Kind(*one, version=8) for one in product(types, ("simple", "record"), ("simple",), (True,))]
    every = (*keyed, *automatic, *older)
    return [kind for kind in every if kind.is_partitioned or kind.index != "partitioned_record"]


def city(key: str) -> str:
    """The partition of a key."""
    return "x" if ord(key) % 2 else "y"


@dataclass
class Case:
    """A table, the rows that it must have, and the rows after each of its commits."""

    jvm: Jvm
    kind: Kind
    path: Path
    is_ours: bool
    rows: Rows = field(default_factory=dict)
    states: dict[str, Rows] = field(default_factory=dict)
    allowed: frozenset[str] = frozenset()
    """Findings that are the JVM's: it fills statistics in the call that rolls back, which lack the restored rows."""

    @classmethod
    def new(cls, jvm: Jvm, kind: Kind, path: Path, *, is_ours: bool) -> Case:
        """Write three commits: new rows, an update of some, a delete of one."""
        case = cls(jvm, kind, path, is_ours)
        if is_ours:
            hoodie.create(
                path, SCHEMA, record_key=KEYS[kind.keys] or None, partition_by="city" if kind.is_partitioned else (),
                ordering="ts" if kind.keys != "automatic" else None, type=kind.table_type,
                index=None if kind.keys == "automatic" else kind.index, name="t", table_version=kind.version,
                properties=kind.options,
            )  # fmt: skip
        case.put(dict.fromkeys("abcdef", 1), is_ours=is_ours)
        case.put(dict.fromkeys("abc", 2), is_ours=is_ours)
        case.delete("a", is_ours=is_ours)
        return case

    @property
    def table(self) -> Table:
        """A new handle of ours."""
        return hoodie.open(self.path, spark=False)

    def call(self, procedure: str, **arguments: Any) -> pa.Table:
        """CALL a procedure of the JVM by the table's path."""
        return self._call(procedure, {"path": str(self.path), **arguments})

    def call_by_name(self, procedure: str, **arguments: Any) -> pa.Table:
        """CALL a procedure of the JVM that takes only the table's name, or fails with its path."""
        with self.jvm.named(self.path) as name:
            return self._call(procedure, {"table": name, **arguments})

    def _call(self, procedure: str, arguments: Mapping[str, Any]) -> pa.Table:
        text = ", ".join(
            f"{key} => {str(value).lower() if value is True else repr(value)}" for key, value in arguments.items()
        )
        return self.jvm.sql(f"CALL {procedure}({text})")

    def put(self, rows: Rows, *, is_ours: bool, options: Mapping[str, str] | None = None) -> None:
        """Insert or update rows of the table by one of the two."""
        data = self._data(rows)
        is_new = not rows.keys() & self.rows.keys()
        operation = "insert" if self.kind.keys == "automatic" and is_new else "upsert"
        if is_ours:
            given = dict(options or {}) | ({} if "hoodie.index.type" in self.raw else self._bucket)
            getattr(self.table, operation)(data, properties=given)
        elif self.kind.keys == "automatic" and not is_new:
            ts, ids = next(iter(rows.values())), ", ".join(map(repr, rows))
            with self.jvm.named(self.path) as name:
                self.jvm.spark.sql(f"UPDATE {name} SET ts = {ts} WHERE id IN ({ids})")
        else:
            self._jvm_write(data, operation, options)
        self._done({**self.rows, **rows})

    def delete(self, key: str, *, is_ours: bool) -> None:
        """Delete a row by one of the two."""
        gone = self._data({key: self.rows[key]})
        if is_ours:
            self.table.delete(
                gone if self.kind.keys == "automatic" else gone.select(["id", "n", "city"]),
                properties={} if "hoodie.index.type" in self.raw else self._bucket,
            )
        elif self.kind.keys == "automatic":
            with self.jvm.named(self.path) as name:
                self.jvm.spark.sql(f"DELETE FROM {name} WHERE id = '{key}'")
        else:
            self._jvm_write(gone, "delete", None)
        self._done({other: ts for other, ts in self.rows.items() if other != key})

    @property
    def raw(self) -> Mapping[str, str]:
        """The table's properties."""
        return self.table.view().config.raw

    @property
    def _bucket(self) -> dict[str, str]:
        return INDEXES["bucket"] if self.kind.index == "bucket" else {}

    def _done(self, rows: Rows) -> None:
        self.rows = rows
        self.states[self.table.view().completed_writes()[-1].requested_time] = rows

    def _data(self, rows: Rows) -> pa.Table:
        """Rows to write; those of automatic keys come with the keys that the table gave them."""
        if self.kind.keys == "automatic" and rows.keys() & self.rows.keys():
            stored = self.table.to_arrow(where=f"id IN ({', '.join(map(repr, rows))})")
            ts = pa.array([rows[key] for key in stored["id"].to_pylist()], pa.int64())
            return stored.set_column(stored.schema.get_field_index("ts"), "ts", ts)
        found = [{"id": key, "n": ord(key), "ts": ts, "city": city(key)} for key, ts in rows.items()]
        return pa.Table.from_pylist(found, schema=SCHEMA)

    def _jvm_write(self, data: pa.Table, operation: str, options: Mapping[str, str] | None) -> None:
        self.jvm.write(
            data.select(SCHEMA.names),
            self.path,
            table_name="t",
            key=KEYS[self.kind.keys] or None,
            partition="city" if self.kind.is_partitioned else (),
            ordering="ts" if self.kind.keys != "automatic" else None,
            operation=operation,
            table_type=self.kind.table_type.upper(),
            table_version=self.kind.version,
            options={
                **HIVE,
                **self.kind.options,
                **({} if self.is_ours else INDEXES[self.kind.index]),
                **(options or {}),
            },
        )

    def allow_their_statistics(self) -> None:
        """Expect wrong statistics of the JVM in a table that has none of its own; no read of ours uses them."""
        if _may_have_statistics(self.kind):
            return
        self.allowed = frozenset({"statistics-differ"})
        with warnings.catch_warnings(action="ignore", category=hoodie.HoodieWarning):
            found = [self.table.to_arrow(["id"], where=f"id = '{key}'")["id"].to_pylist() for key in self.rows]
        assert found == [[key] for key in self.rows]

    def check(self) -> None:
        """Both read the rows that the table must have, and the full check finds no error."""
        found = self.table.to_arrow(["id", "ts"]).to_pylist()
        assert sorted((row["id"], row["ts"]) for row in found) == sorted(self.rows.items())
        found = self.jvm.read(self.path, ["id", "ts"]).to_pylist()
        assert sorted((row["id"], row["ts"]) for row in found) == sorted(self.rows.items()), "as the JVM reads"
        assert self.table.view().config.version.value == self.kind.version
        report = self.table.verify(full=True)
        assert report.problems.keys() <= self.allowed, str(report)


def _any(_kind: Kind) -> bool:
    return True


def _logs(kind: Kind) -> bool:
    return kind.is_merge_on_read


def _clusters(kind: Kind) -> bool:
    return kind.index != "bucket"


def _may_have_statistics(kind: Kind) -> bool:
    return bool(kind.options.keys() & STATISTICS.keys())


def _has_partitions(kind: Kind) -> bool:
    return kind.is_partitioned


@dataclass(frozen=True)
class Service:
    """A service, and the kinds of tables that it is for."""

    run: Callable[[Case], object]
    suits: Callable[[Kind], bool] = _any


# Services of the JVM on our tables.


def _their_compaction(case: Case) -> None:
    before = len(case.table.view().completed_writes())
    case.call("run_compaction", op="scheduleAndExecute", options="hoodie.compact.inline.max.delta.commits=1")
    assert len(case.table.view().completed_writes()) == before + 1


def _our_plan_their_compaction(case: Case) -> None:
    assert case.table.schedule_compaction() is not None
    case.call("run_compaction", op="run")
    assert not case.table.pending_compactions().instants


def _their_clustering(case: Case) -> None:
    case.call("run_clustering")
    assert not case.table.pending_clusterings().instants
    assert any(found.action is Action.REPLACE_COMMIT for found in case.table.view().completed_writes())


def _our_plan_their_clustering(case: Case) -> None:
    assert case.table.schedule_clustering("ts") is not None
    case.call("run_clustering", op="execute")
    assert not case.table.pending_clusterings().instants


def _their_rollback_of_our_clustering(case: Case) -> None:
    """Of one that runs: it finds at its end that another writer took it back."""
    instant = case.table.schedule_clustering("ts")

    def roll_back() -> None:
        # By the path the procedure fails with a ClassCastException, on every table.
        more = {"pending_instant": instant, "delete_request_instant_file": True}
        case.call_by_name("run_rollback_inflight_tableservice", **more)

    with once_at(Step.WRITTEN, roll_back), pytest.raises(hoodie.CommitConflictError):
        case.table.cluster(instant=instant)
    assert not case.table.pending_clusterings().instants


def _their_clean(case: Case) -> None:
    case.call_by_name("run_clean", retain_commits=1)


def _their_rollback(case: Case) -> None:
    newest = list(case.states)[-1]
    found = case.call_by_name("rollback_to_instant", instant_time=newest)
    assert found.to_pylist() == [{"rollback_result": True}]
    del case.states[newest]
    case.rows = case.states[next(reversed(case.states))]
    case.allow_their_statistics()


def _their_savepoint(case: Case) -> None:
    """A savepoint of the second commit, what it saves, and its end."""
    saved = list(case.states)[1]
    case.call("create_savepoint", commit_time=saved)
    assert [found.instant for found in case.table.savepoints()] == [saved]
    case.put({"h": 7}, is_ours=True)
    case.call("rollback_to_savepoint", instant_time=saved)
    case.rows = case.states[saved]
    case.allow_their_statistics()
    case.check()
    case.call("delete_savepoint", instant_time=saved)
    assert not case.table.savepoints()


def _their_archiving(case: Case) -> None:
    """Behind enough commits for a compaction of the metadata table, which archiving waits for."""
    for ts in range(3, 11):
        case.put({"b": ts}, is_ours=True, options={"hoodie.clean.automatic": "false"})
    before = len(case.table.view().completed_writes())
    case.call_by_name("run_clean", retain_commits=1)
    case.call("archive_commits", min_commits=2, max_commits=3, retain_commits=1)
    assert len(case.table.view().completed_writes()) < before


def _their_inline_services(case: Case) -> None:
    """A write of the JVM that cleans and archives, and compacts or clusters, in the same call."""
    options = {"hoodie.clean.commits.retained": "1", "hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"}
    if case.kind.is_merge_on_read:
        options |= {"hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "1"}
    elif case.kind.index != "bucket":
        options |= {"hoodie.clustering.inline": "true", "hoodie.clustering.inline.max.commits": "1"}
    for key in "gh":
        case.put({key: 5}, is_ours=False, options=options)


def _their_drop_of_a_partition(case: Case) -> None:
    case.call_by_name("drop_partition", partition="city=x")
    case.rows = {key: ts for key, ts in case.rows.items() if city(key) != "x"}


SHOWN: Final = (
    "show_timeline",
    "show_clustering",
    "show_fsview_all",
    "show_fsview_latest",
    "show_metadata_table_partitions",
    "show_metadata_table_files",
    "show_metadata_table_stats",
    "show_table_properties",
    "show_savepoints",
)
SHOWN_BY_NAME: Final = (
    "show_commits",
    "show_commits_metadata",
    "show_commit_extra_metadata",
    "show_archived_commits",
    "show_cleans",
    "show_rollbacks",
    "show_metadata_table_column_stats",
    "stats_file_sizes",
    "stats_wa",
)
SHOWN_OF_A_COMMIT: Final = ("show_commit_files", "show_commit_partitions", "show_commit_write_stats")


def _what_they_show(case: Case) -> None:
    """Each procedure that shows something does so, and their check of the listing finds no difference."""
    for procedure in (*SHOWN, *(["show_compaction"] if case.kind.is_merge_on_read else [])):
        case.call(procedure)
    for procedure in SHOWN_BY_NAME:
        if (
            procedure != "show_metadata_table_column_stats"
            or "column_stats" in case.table.view().config.metadata_partitions
        ):
            case.call_by_name(procedure)
    for procedure in SHOWN_OF_A_COMMIT:
        assert case.call_by_name(procedure, instant_time=list(case.states)[1]).num_rows
    differing = case.call_by_name("validate_metadata_table_files").to_pylist()
    assert [row for row in differing if not row["is_present_in_metadata"] or not row["is_present_in_fs"]] == []


THEIRS: Final = (
    Service(_their_compaction, _logs),
    Service(_our_plan_their_compaction, _logs),
    Service(_their_clustering, _clusters),
    Service(_our_plan_their_clustering, _clusters),
    Service(_their_rollback_of_our_clustering, _clusters),
    Service(_their_clean),
    Service(_their_rollback),
    Service(_their_savepoint),
    Service(_their_archiving),
    Service(_their_inline_services),
    Service(_their_drop_of_a_partition, _has_partitions),
    Service(_what_they_show),
)

# Our services on tables of the JVM.


def _our_compaction(case: Case) -> None:
    assert case.table.schedule_compaction() is not None
    case.table.compact()


def _our_log_compaction(case: Case) -> None:
    instant = case.table.schedule_log_compaction(blocks_min=2)
    assert instant is not None
    case.table.compact(instant)


def _our_clustering(case: Case) -> None:
    case.table.cluster("ts")


def _our_clean(case: Case) -> None:
    case.table.clean(properties={"hoodie.clean.commits.retained": "1"})


def _our_rollback(case: Case) -> None:
    newest = list(case.states)[-1]
    case.table.rollback(newest)
    del case.states[newest]
    case.rows = case.states[next(reversed(case.states))]


def _our_savepoint(case: Case) -> None:
    saved = list(case.states)[1]
    case.table.savepoint(saved)
    case.put({"h": 7}, is_ours=False)
    case.table.restore(saved)
    case.rows = case.states[saved]
    case.check()
    case.table.delete_savepoint(saved)


def _our_archiving(case: Case) -> None:
    """Behind enough commits for a compaction of the metadata table: what it does not cover is not archived."""
    for ts in range(3, 13):
        case.put({"b": ts}, is_ours=ts > 5, options={"hoodie.clean.automatic": "false"})
    retained = {"hoodie.clean.commits.retained": "1", "hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"}
    case.table.clean(properties=retained)
    before = len(case.table.view().completed_writes())
    case.table.archive(properties=retained)
    assert len(case.table.view().completed_writes()) < before


def _our_statistics(case: Case) -> None:
    case.table.index.build("column_stats")


OURS: Final = (
    Service(_our_compaction, _logs),
    Service(_our_log_compaction, _logs),
    Service(_our_clustering, _clusters),
    Service(_our_clean),
    Service(_our_rollback),
    Service(_our_savepoint),
    Service(_our_archiving),
    Service(_our_statistics, _may_have_statistics),
)


def _cases(services: tuple[Service, ...], keep: int, name: str) -> list[Any]:
    """Each service on each index, with all keys of each type of table, and in each version."""
    cases = [(kind, service) for kind, service in product(_kinds(), services) if service.suits(kind)]
    cases = covering(
        cases,
        lambda case: case[1].run,
        lambda case: case[0].index,
        lambda case: (case[0].table_type, case[0].keys, case[0].is_partitioned),
        lambda case: case[0].version,
    )
    return [
        pytest.param(kind, service, id=f"{kind}-{service.run.__name__.strip('_')}")
        for kind, service in sample_of(cases, keep, name)
    ]


@contextmanager
def _kept_version(jvm: Jvm, kind: Kind) -> Iterator[None]:
    """Let procedures of the JVM keep the version of older tables; in these we drop the statistics that it builds."""
    options = {"hoodie.write.auto.upgrade": "false", "hoodie.write.table.version": str(kind.version)}
    with jvm.configured(options), warnings.catch_warnings():
        if kind.version != 9:
            warnings.filterwarnings("ignore", "the metadata partitions column_stats", hoodie.HoodieWarning)
        yield


def _serve(case: Case, service: Service) -> None:
    """Check the table before the service and after it, and after a write of each of the two."""
    report = case.table.verify(full=True)
    assert report.problems == {}, str(report)
    service.run(case)
    case.check()
    with warnings.catch_warnings():
        if case.allowed:  # our write drops the statistics of the JVM, and says so
            warnings.simplefilter("ignore", hoodie.HoodieWarning)
        case.put({"m": 9}, is_ours=True)
    case.put({"n": 9}, is_ours=False)
    case.check()


@pytest.mark.parametrize(("kind", "service"), _cases(THEIRS, 5, "services of the JVM"))
def test_services_of_the_jvm_on_our_tables(jvm: Jvm, tmp_path: Path, kind: Kind, service: Service) -> None:
    with _kept_version(jvm, kind):
        _serve(Case.new(jvm, kind, tmp_path / "t", is_ours=True), service)


@pytest.mark.parametrize(("kind", "service"), _cases(OURS, 2, "our services"))
def test_our_services_on_tables_of_the_jvm(jvm: Jvm, tmp_path: Path, kind: Kind, service: Service) -> None:
    with _kept_version(jvm, kind):
        _serve(Case.new(jvm, kind, tmp_path / "t", is_ours=False), service)
