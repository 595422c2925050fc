"""CALL: our procedures have the parameters of Hudi's, and tell of a table what Hudi's tell."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

import hoodie
from hoodie.spark import to_arrow
from hoodie.statements.call import PROCEDURES
from tests.interop.judges import Jvm
from tests.support.rows import assert_same_rows

ROWS = pa.table({"id": ["a", "b", "c"], "ts": [1, 1, 1], "fare": [1.0, 2.0, 3.0], "city": ["x", "x", "y"]})
SAME = ("show_commits", "show_commits_metadata", "show_savepoints", "show_commit_extra_metadata", "stats_file_sizes")


def parameters(jvm: Jvm, procedure: str) -> list[str]:
    """The names of the parameters that Hudi's own help lists, in their order."""
    (text,) = jvm.sql(f"CALL help(cmd => '{procedure}')")["result"].to_pylist()
    lines = [line.split() for line in text.partition("outputType:")[0].splitlines()]
    return [words[0] for words in lines if len(words) > 1 and words[0] != "param"]


def rounded(rows: pa.Table) -> pa.Table:
    """Deviations are sums of squares, whose last digit depends on the order."""
    place = rows.schema.get_field_index("std_dev")
    return rows if place < 0 else rows.set_column(place, "std_dev", pc.round(rows["std_dev"], 6))


def test_the_parameters_are_those_of_hudi(jvm: Jvm) -> None:
    ours = {name: [parameter.name for parameter in found.parameters] for name, found in PROCEDURES.items()}
    theirs = {name: parameters(jvm, name) for name in PROCEDURES}
    assert ours == theirs


def test_procedures_tell_what_those_of_hudi_tell(jvm: Jvm, tmp_path: Path) -> None:
    path = tmp_path / "trips"
    t = hoodie.create(
        path,
        ROWS,
        record_key="id",
        partition_by="city",
        ordering="ts",
        spark=False,
        properties={"hoodie.datasource.write.hive_style_partitioning": "true"},
    )
    t.insert(ROWS, extra_metadata={"who": "me"})
    t.upsert(ROWS.slice(1).set_column(1, "ts", pa.array([2, 2])))
    t.savepoint()
    t.delete(["a"])
    name = f"trips_{tmp_path.name.replace('-', '_')}"
    jvm.spark.sql(f"CREATE TABLE {name} USING hudi LOCATION '{path}'")
    try:
        for procedure in SAME:
            theirs = jvm.sql(f"CALL {procedure}(table => '{name}')")
            ours = to_arrow(hoodie.sql(jvm.spark, f"CALL {procedure}(table => '{name}')"))
            assert ours.schema.names == theirs.schema.names, procedure
            assert_same_rows(rounded(ours), rounded(theirs), key=ours.schema.names)
        deleted: Any = hoodie.sql(jvm.spark, f"DELETE FROM {name} WHERE fare > 2.5")
        assert deleted.deleted == 1
        assert sorted(jvm.read(path, ["id"])["id"].to_pylist()) == ["b"]
    finally:
        jvm.spark.sql(f"DROP TABLE {name}")
