"""INSERT OVERWRITE by queries with and without rows, and what the options of a session mean to each statement."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import hoodie
from hoodie.config import OPTIONS
from hoodie.config.hudi_options import Fate, hudi_options
from hoodie.format.table.call_options import is_table_property
from tests.contract.table_lanes import session_with

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.spark,
    pytest.mark.connect,
    pytest.mark.filterwarnings("ignore:insert .* keys were not looked up:hoodie.HoodieWarning"),
]
REGISTERED = pytest.param("registered", marks=pytest.mark.surface)
BOTH = pytest.mark.parametrize("run", ["hoodie.sql", REGISTERED], indirect=True)
MODES = ("hoodie.datasource.overwrite.mode", "spark.sql.sources.partitionOverwriteMode")
EMPTY = "SELECT * FROM (VALUES (0, 'none')) WHERE false"
FIRST = "(1, 'a', 'x', 1), (2, 'b', 'x', 2), (3, 'c', 'y', 1)"


def ids(run: Callable[[str], Any], table: str) -> list[int]:
    return sorted(row[0] for row in run(f"SELECT id FROM {table}").collect())


@BOTH
@pytest.mark.filterwarnings("ignore:.*(the data has no rows|the table has no partition):hoodie.HoodieWarning")
def test_overwrites_by_no_rows(run: Callable[[str], Any], spark: SparkSession) -> None:
    run("CREATE TABLE sqlt_p (id int, v string, p string, q int) USING hudi PARTITIONED BY (p, q)")
    run("CREATE TABLE sqlt_u (id int, v string) USING hudi")
    one, some = "PARTITION (P = 'x', q = '1')", f"SELECT *, 1 FROM ({EMPTY})"
    for mode in ({MODES[0]: "dynamic"}, {MODES[1]: "dynamic"}, {}):
        is_static = not mode
        run(f"INSERT INTO sqlt_p VALUES {FIRST}")
        run("INSERT INTO sqlt_u VALUES (1, 'a')")
        with session_with(spark, mode):
            run(f"INSERT OVERWRITE sqlt_p PARTITION (p = 'none', q = 7) {EMPTY}")
            assert ids(run, "sqlt_p") == [1, 2, 3]
            run(f"INSERT OVERWRITE sqlt_p {one} {EMPTY}")
            assert ids(run, "sqlt_p") == [2, 3], mode
            if is_static:
                with pytest.raises(hoodie.UnsupportedError, match="give all of p, q, or set"):
                    run(f"INSERT OVERWRITE sqlt_p PARTITION (p = 'x', q) {some}")
            else:
                run(f"INSERT OVERWRITE sqlt_p PARTITION (p = 'x', q) {some}")
                run(f"INSERT OVERWRITE sqlt_p SELECT *, 'x', 1 FROM ({EMPTY})")
            assert ids(run, "sqlt_p") == [2, 3], mode
            run(f"INSERT OVERWRITE sqlt_u {EMPTY}")
            assert ids(run, "sqlt_u") == [], mode
        run("INSERT OVERWRITE sqlt_p SELECT * FROM sqlt_p WHERE false")
        assert ids(run, "sqlt_p") == []


@BOTH
def test_if_not_exists(run: Callable[[str], Any]) -> None:
    run("CREATE TABLE sqlt_p (id int, v string, p string, q int) USING hudi PARTITIONED BY (p, q)")
    run(f"INSERT INTO sqlt_p VALUES {FIRST}")
    run("INSERT OVERWRITE TABLE sqlt_p PARTITION (p = 'x', q = 1) IF NOT EXISTS VALUES (8, 'h')")
    run("INSERT OVERWRITE sqlt_p PARTITION (p = 'z', q = 1) IF NOT EXISTS (v, id) SELECT 'i', 9")
    assert ids(run, "sqlt_p") == [1, 2, 3, 9]
    for text, message in (
        ("OVERWRITE sqlt_p PARTITION (p = 'x', q) IF NOT EXISTS SELECT 1, 'a', 1", "a value of each of p, q"),
        ("INTO sqlt_p PARTITION (p = 'x', q = 1) IF NOT EXISTS SELECT 1, 'a'", "INSERT INTO … IF NOT EXISTS"),
        ("OVERWRITE sqlt_p PARTITION (id = 1) SELECT 'a', 'x', 1", "id is no partition column; the table has p, q"),
    ):
        with pytest.raises(hoodie.HoodieError, match=message):
            run(f"INSERT {text}")
    with pytest.raises(hoodie.UnsupportedError, match="INSERT OVERWRITE only"):
        run("TRUNCATE TABLE sqlt_p PARTITION (p = 'x', q = 1) IF NOT EXISTS")


STATEMENTS = {
    "insert": "INSERT INTO sqlt_o VALUES (3, 1, 'c', 'x')",
    "overwrite": "INSERT OVERWRITE sqlt_o PARTITION (p = 'x') VALUES (3, 1, 'c')",
    "update": "UPDATE sqlt_o SET v = 'new' WHERE id = 3",
    "merge": "MERGE INTO sqlt_o t USING (SELECT 4 AS id, 2 AS ts, 'm' AS v, 'x' AS p) s ON t.id = s.id "
    "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
    "delete": "DELETE FROM sqlt_o WHERE id = 4",
    "select": "SELECT id FROM sqlt_o",
}
BULK = {
    "hoodie.bulkinsert.schema.ddl": "id int",
    "hoodie.bulkinsert.sort.suffix.record_key": "true",
    "hoodie.bulkinsert.user.defined.partitioner.class": "com.example.Mine",
    "hoodie.bulkinsert.user.defined.partitioner.sort.columns": "v",
}
OVERWRITE = {
    "hoodie.bulkinsert.overwrite.operation.type": "insert_overwrite",
    "hoodie.static.overwrite.partition.paths": "p=x",
}
SERVICES = {
    "hoodie.clustering.execution.strategy.class": "com.example.Mine",
    "hoodie.clustering.plan.strategy.class": "com.example.Mine",
    "hoodie.clustering.plan.strategy.earliest.commit.to.cluster": "2026",
    "hoodie.layout.optimize.enable": "true",
    "hoodie.partition.ttl.strategy.class": "com.example.Mine",
}
SWITCHES = {"hoodie.clustering.inline": "true", "hoodie.partition.ttl.inline": "true"}
OF_OTHERS = {
    MODES[0]: "dynamic",
    "hoodie.bootstrap.data.queries.only": "true",
    "hoodie.combine.before.delete": "false",
    "hoodie.combine.before.upsert": "false",
    "hoodie.datasource.query.type": "incremental",
    "hoodie.datasource.read.incr.filters": "id > 1",
    "hoodie.datasource.read.incr.path.glob": "p=x",
    "hoodie.datasource.read.schema.use.end.instanttime": "true",
    "hoodie.metadata.index.drop": "record_index",
    "hoodie.metadata.index.expression.column": "v",
    "hoodie.read.timeline.holes.resolution.policy": "BLOCK",
    "hoodie.merge.allow.duplicate.on.inserts": "false",
    "hoodie.write.table.version": "6",
    **BULK,
    **OVERWRITE,
    **SERVICES,
}
"""Options that are refused, or arguments of calls: no statement minds those that have no effect on it."""
REFUSED = {
    "insert": {"hoodie.merge.allow.duplicate.on.inserts": "false"},
    "upsert": {"hoodie.combine.before.upsert": "false"},
    "bulk_insert": BULK,
    "overwrite": {**BULK, **OVERWRITE, MODES[0]: "everything"},
    "services": SERVICES,
}
"""Options that a statement refuses, because they have an effect on it that is not supported."""


def defaults(stored: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Each option that a session may set, with the value that it has without it."""
    for key in sorted({*OPTIONS, *hudi_options()}):
        known = hudi_options().get(key.lower())
        own = "" if key not in OPTIONS or isinstance(OPTIONS[key].default, tuple) else str(OPTIONS[key].default)
        text = stored.get(key) or own or ("" if known is None else known.default)
        is_other_name = known is not None and known.fate in (Fate.NAME, Fate.CLASS) and is_table_property(known.text)
        if text and not is_other_name:
            yield key, text.lower() if text in ("True", "False") else text


@BOTH
@pytest.mark.filterwarnings("ignore:.*without effect here:hoodie.HoodieWarning")
def test_each_statement_minds_its_own_options(run: Callable[[str], Any], spark: SparkSession, tmp_path: Path) -> None:
    run(
        "CREATE TABLE sqlt_o (id int, ts int, v string, p string) USING hudi PARTITIONED BY (p) "
        f"TBLPROPERTIES (primaryKey = 'id', preCombineField = 'ts') LOCATION '{tmp_path}/t'"
    )
    every = dict(defaults(dict(hoodie.open(tmp_path / "t", spark=False).view().config.raw)))
    assert len(every) > 400
    with session_with(spark, every):
        for text in STATEMENTS.values():
            run(text)
    for name, text in STATEMENTS.items():
        others = {key: value for key, value in OF_OTHERS.items() if key not in REFUSED.get(name, {})}
        with session_with(spark, others):
            run(text)
    assert ids(run, "sqlt_o") == [3]
    for name, refused in REFUSED.items():
        operation = {"hoodie.spark.sql.insert.into.operation": name} if name in ("upsert", "bulk_insert") else {}
        operation |= SWITCHES if name == "services" else {}
        for key, value in refused.items():
            with (
                session_with(spark, {**operation, key: value}),
                pytest.raises(hoodie.InvalidConfigError, match=key.replace(".", r"\.")),
            ):
                run(STATEMENTS.get(name, STATEMENTS["insert"]))
