"""What JVM Hudi 1.2.0 does with a record index, as far as our code relies on it (docs/record-index/).

The tables are the JVM's own; we change their stored options, or leave a log file behind, and let it write on.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest

from hoodie.config.indexes import RECORD_INDEX_ENABLE, RECORD_INDEX_ENABLE_NEW, RECORD_UPDATE_PARTITION_PATH
from hoodie.format.hashes.java_hash import file_group_index
from hoodie.format.metadata_table.partition_names import RECORD_INDEX
from hoodie.format.metadata_table.record_location import RecordLocation, location_values
from hoodie.format.table.properties import parse_properties, properties_to_bytes
from hoodie.metadata.delta_commit import FileGroupDelta, write_log
from hoodie.storage import LocalStore
from tests.interop.judges import HIVE, Jvm
from tests.support.tables import table_of

SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("city", pa.string())])
TYPE = "hoodie.index.type"
SWITCHES = {RECORD_INDEX_ENABLE.key: "true", RECORD_INDEX_ENABLE_NEW.key: "true"}
STORED = {TYPE: "RECORD_INDEX", **SWITCHES}
PARTITIONED = {TYPE: "RECORD_LEVEL_INDEX", "hoodie.metadata.record.level.index.enable": "true"}
START = [("a", 1, "nyc"), ("b", 1, "sf"), ("c", 1, "sf")]

Row = tuple[str, int, str]
rows = partial(table_of, SCHEMA)


def upsert(jvm: Jvm, path: Path, *given: Row, options: dict[str, str] | None = None, operation: str = "upsert") -> None:
    jvm.write_trips(
        rows(*given), path, operation=operation, options={**HIVE, **(options or {})},
    )  # fmt: skip


def snapshot(jvm: Jvm, path: Path) -> list[Row]:
    return sorted(tuple(row.values()) for row in jvm.read(path, SCHEMA.names).to_pylist())


def partitions(path: Path) -> set[str]:
    stored = parse_properties((path / ".hoodie/hoodie.properties").read_bytes())
    return set(stored["hoodie.table.metadata.partitions"].split(","))


def locations(jvm: Jvm, path: Path, keys: Sequence[str]) -> dict[str, str]:
    """Partition path of each key, as the JVM's own look-up finds it."""
    java, hudi = jvm.spark._jvm.java.util, jvm.spark._jvm.org.apache.hudi  # type: ignore[union-attr]
    client = jvm.meta_client(path)
    config = hudi.common.config.HoodieMetadataConfig.newBuilder().enable(True).build()
    engine = hudi.common.engine.HoodieLocalEngineContext(client.getStorageConf())
    metadata = hudi.metadata.HoodieBackedTableMetadata(engine, client.getStorage(), config, str(path), False)
    wanted = hudi.common.data.HoodieListData.eager(java.ArrayList(list(keys)))
    found = metadata.readRecordIndexLocationsWithKeys(wanted).collectAsList()
    return {pair.getKey(): pair.getValue().getPartitionPath() for pair in found}


@pytest.fixture(scope="module")
def indexed(jvm: Jvm, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of the JVM with a record index, which stores nothing about it in its options."""
    path = tmp_path_factory.mktemp("indexed") / "trips"
    upsert(jvm, path, *START, options=STORED)
    assert RECORD_INDEX in partitions(path)
    assert not {TYPE, *SWITCHES} & parse_properties((path / ".hoodie/hoodie.properties").read_bytes()).keys()
    return path


def copy_of(table: Path, target: Path, stored: dict[str, str] | None = None) -> Path:
    """A copy of the table whose stored options say this too."""
    shutil.copytree(table, target)
    file = target / ".hoodie/hoodie.properties"
    file.write_bytes(properties_to_bytes({**parse_properties(file.read_bytes()), **(stored or {})}))
    (target / ".hoodie/.hoodie.properties.crc").unlink(missing_ok=True)
    return target


@pytest.mark.parametrize(
    ("stored", "is_kept", "is_used"),
    [
        pytest.param({}, False, False, id="nothing"),
        pytest.param({TYPE: "RECORD_INDEX"}, False, True, id="the type"),
        pytest.param(SWITCHES, True, False, id="the switches"),
        pytest.param(STORED, True, True, id="both"),
    ],
)
def test_what_is_stored_decides_whether_a_plain_writer_keeps_and_uses_the_index(
    jvm: Jvm, tmp_path: Path, indexed: Path, stored: dict[str, str], is_kept: bool, is_used: bool
) -> None:
    path = copy_of(indexed, tmp_path / "trips", stored)
    upsert(jvm, path, ("a", 2, "sf"))
    assert (RECORD_INDEX in partitions(path)) == is_kept
    assert (path / ".hoodie/metadata/record_index").exists() == is_kept
    assert [row[0] for row in snapshot(jvm, path)].count("a") == (1 if is_used else 2)


@pytest.mark.parametrize(
    "asked",
    [{TYPE: "GLOBAL_RECORD_LEVEL_INDEX"}, {TYPE: "BLOOM"}, *({switch: "false"} for switch in SWITCHES)],
    ids=str,
)
def test_a_writer_who_asks_for_something_else_is_refused_before_it_writes(
    jvm: Jvm, tmp_path: Path, indexed: Path, asked: dict[str, str]
) -> None:
    path = copy_of(indexed, tmp_path / "trips", STORED)
    with pytest.raises(Exception, match=r"Config conflict"):
        upsert(jvm, path, ("a", 2, "sf"), options=asked)
    assert len(jvm.timeline(path)) == 1
    assert RECORD_INDEX in partitions(path)


@pytest.mark.parametrize(
    ("moves", "ts", "expected"),
    [("true", 2, ("a", 2, "sf")), ("true", 0, ("a", 1, "nyc")), ("false", 2, ("a", 2, "nyc"))],
)
def test_a_record_moves_if_it_may_and_is_not_older(
    jvm: Jvm, tmp_path: Path, indexed: Path, moves: str, ts: int, expected: Row
) -> None:
    path = copy_of(indexed, tmp_path / "trips", {**STORED, RECORD_UPDATE_PARTITION_PATH.key: moves})
    upsert(jvm, path, ("a", ts, "sf"))
    assert snapshot(jvm, path) == [expected, *START[1:]]
    assert locations(jvm, path, ["a"]) == {"a": f"city={expected[2]}"}


def test_a_log_file_without_a_delta_commit_is_never_believed(jvm: Jvm, tmp_path: Path, indexed: Path) -> None:
    """Neither while its instant is pending, nor when the JVM has rolled that back; the file itself stays."""
    path = copy_of(indexed, tmp_path / "trips", STORED)
    timeline = path / ".hoodie/timeline"
    before = next(timeline.glob("*.commit.requested")).name.split(".")[0]
    dead = f"{datetime.strptime(before[:14], '%Y%m%d%H%M%S') + timedelta(seconds=1):%Y%m%d%H%M%S}000"
    for ending in (".commit.requested", ".inflight"):
        shutil.copy(timeline / f"{before}{ending}", timeline / f"{dead}{ending}")
    store = LocalStore(str(path))
    for key in ("a", "new"):
        value = RecordLocation("city=la", "00000000-0000-0000-0000-000000000000-0", 0)
        delta = FileGroupDelta(
            partition=RECORD_INDEX,
            file_id=f"record-index-{file_group_index(pa.array([key]), 10)[0]:04}-0",
            keys=pa.array([key]),
            values=location_values([value], pa.array([0]).to_numpy()),
            deleted_keys=pa.array([], pa.string()),
        )
        write_log(store, dead, delta)

    def orphans() -> int:
        return len(list(path.glob(f".hoodie/metadata/record_index/.*{dead}.log.*")))

    assert orphans() == 2
    assert locations(jvm, path, ["a", "new"]) == {"a": "city=nyc"}
    upsert(jvm, path, ("b", 2, "sf"))
    assert any(instant.action.value == "rollback" for instant in jvm.timeline(path))
    assert orphans() == 2
    assert locations(jvm, path, ["a", "new"]) == {"a": "city=nyc"}
    upsert(jvm, path, ("a", 3, "nyc"), ("new", 3, "sf"))
    assert snapshot(jvm, path) == [("a", 3, "nyc"), ("b", 2, "sf"), ("c", 1, "sf"), ("new", 3, "sf")]
    assert locations(jvm, path, ["a", "new"]) == {"a": "city=nyc", "new": "city=sf"}


def test_bulk_insert_makes_duplicates_and_the_index_names_the_newest(jvm: Jvm, tmp_path: Path, indexed: Path) -> None:
    path = copy_of(indexed, tmp_path / "trips", STORED)
    upsert(jvm, path, ("a", 2, "sf"), operation="bulk_insert")
    assert snapshot(jvm, path)[:2] == [("a", 1, "nyc"), ("a", 2, "sf")]
    assert locations(jvm, path, ["a"]) == {"a": "city=sf"}
    with pytest.raises(Exception, match="multiple records with same key x"):
        upsert(jvm, path, ("x", 1, "sf"), ("x", 2, "sf"), operation="bulk_insert")


def test_the_switch_alone_builds_the_index_of_a_table_that_has_rows(jvm: Jvm, tmp_path: Path, indexed: Path) -> None:
    path = copy_of(indexed, tmp_path / "trips")
    upsert(jvm, path, ("b", 2, "sf"))
    assert RECORD_INDEX not in partitions(path)
    upsert(jvm, path, ("b", 3, "sf"), options={RECORD_INDEX_ENABLE.key: "true"})
    assert RECORD_INDEX in partitions(path)
    assert locations(jvm, path, ["a", "b", "c"]) == {"a": "city=nyc", "b": "city=sf", "c": "city=sf"}


def test_names_of_the_partitioned_index(jvm: Jvm, tmp_path: Path) -> None:
    path = tmp_path / "trips"
    upsert(jvm, path, ("a", 1, "sf"), ("a", 1, "ü_x-y"), ("b", 1, "a b%/c"), options=PARTITIONED)
    names = [file.name for file in (path / ".hoodie/metadata/record_index").glob(".record-index-*.log.*")]
    groups = {name.removeprefix(".").split("-0000-0_")[0] for name in names if not name.endswith(".crc")}
    assert groups == {"record-index-city%3Dsf", "record-index-city%3Dü%5Fx%2Dy", "record-index-city%3Da b%25%2Fc"}
    with pytest.raises(Exception, match="recordLocationList"):
        upsert(jvm, path, ("a", 1, "x.y"), options=PARTITIONED)
