"""CALL: our procedures have the parameters of Hudi's, and tell of a table what Hudi's tell."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

import hoodie
from hoodie.spark import to_arrow
from hoodie.statements.procedures.operations import OWN
from hoodie.statements.procedures.registry import NAMES, PROCEDURES
from tests.interop.judges import HIVE, Jvm
from tests.support.rows import assert_same_rows

ROWS = pa.table({"id": ["a", "b", "c"], "ts": [1, 1, 1], "fare": [1.0, 2.0, 3.0], "city": ["x", "x", "y"]})
"""Procedures that Hudi does not have."""
SAME = ("show_commits", "show_commits_metadata", "show_savepoints", "show_commit_extra_metadata", "stats_file_sizes")


def described(text: str) -> list[list[str]]:
    """The names of parameters and columns, and the types of the columns, in a text of help."""
    parameters, _, outputs = text.partition("outputType:")
    named = [[line[1:31].strip()] for line in parameters.splitlines()[2:] if line.strip()]
    typed = [[part.strip() for part in line.split("\t")[1:3]] for line in outputs.splitlines()[2:] if line.strip()]
    return [*named, *typed]


_OWN = {procedure.name for procedure in OWN}
_OF_HUDI = PROCEDURES.keys() - _OWN


def rounded(rows: pa.Table) -> pa.Table:
    """Deviations are sums of squares, whose last digit depends on the order."""
    place = rows.schema.get_field_index("std_dev")
    return rows if place < 0 else rows.set_column(place, "std_dev", pc.round(rows["std_dev"], 6))


def test_parameters_and_columns_are_those_of_hudi(jvm: Jvm) -> None:
    def of(run: Callable[[str], pa.Table]) -> dict[str, list[list[str]]]:
        texts = {name: run(f"CALL help(cmd => '{name}')")["result"].to_pylist() for name in _OF_HUDI}
        return {name: described(text) for name, (text,) in texts.items()}

    assert of(lambda text: hoodie.sql(None, text)) == of(jvm.sql)


def test_each_procedure_of_hudi_is_there_or_refused_by_name(jvm: Jvm) -> None:
    (text,) = jvm.sql("CALL help()")["result"].to_pylist()
    assert {line.split("\t")[1] for line in text.splitlines() if line.count("\t") == 2} == NAMES - _OWN


def test_procedures_tell_what_those_of_hudi_tell(jvm: Jvm, tmp_path: Path) -> None:
    path = tmp_path / "trips"
    t = hoodie.create(
        path, ROWS, record_key="id", partition_by="city", ordering="ts", spark=False, properties=HIVE,
    )  # fmt: skip
    t.insert(ROWS, extra_metadata={"who": "me"})
    t.upsert(ROWS.slice(1).set_column(1, "ts", pa.array([2, 2])))
    t.savepoint()
    t.delete(["a"])
    with jvm.named(path) as name:
        for procedure in SAME:
            theirs = jvm.sql(f"CALL {procedure}(table => '{name}')")
            ours = to_arrow(hoodie.sql(jvm.spark, f"CALL {procedure}(table => '{name}')"))
            assert ours.schema.names == theirs.schema.names, procedure
            assert_same_rows(rounded(ours), rounded(theirs), key=ours.schema.names)
        deleted: Any = hoodie.sql(jvm.spark, f"DELETE FROM {name} WHERE fare > 2.5")
        assert deleted.deleted == 1
        assert sorted(jvm.read(path, ["id"])["id"].to_pylist()) == ["b"]
