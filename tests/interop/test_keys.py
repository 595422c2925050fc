"""Whole tables under every key generator: what one side wrote is updated by the other, never doubled."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import hoodie
from hoodie.errors import RecordKeyError
from tests.interop.judges import Jvm
from tests.interop.key_cases import CASES, check_our_table, check_their_table
from tests.support.rows import assert_same_rows


@pytest.mark.matrix(keep=2)
@pytest.mark.parametrize("name", CASES)
def test_keys_and_paths_meet_in_a_table_of_ours(jvm: Jvm, tmp_path: Path, name: str) -> None:
    check_our_table(jvm, tmp_path / "keys", CASES[name])


@pytest.mark.matrix(keep=2)
@pytest.mark.parametrize("name", CASES)
def test_keys_and_paths_meet_in_a_table_of_the_jvm(jvm: Jvm, tmp_path: Path, name: str) -> None:
    check_their_table(jvm, tmp_path / "keys", CASES[name])


AMBIGUOUS = {
    "a cut inside": (("1,b:2", "3"), ("1", "2,b:3")),
    "null": ((None, "x"), ("__null__", "x")),
    "empty": (("x", ""), ("x", "__empty__")),
}


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_record_that_the_jvm_replaced_by_one_of_other_values_is_kept(
    jvm: Jvm, tmp_path: Path, table_type: str
) -> None:
    """The JVM replaces the first of each pair; we refuse to, read what it stored, and carry it through our commits."""
    schema = pa.schema([("a", pa.string()), ("b", pa.string()), ("n", pa.int32()), ("v", pa.int32())])

    def rows(place: int, v: int) -> pa.Table:
        pairs = [pair[place] for pair in AMBIGUOUS.values()]
        return pa.Table.from_pylist(
            [{"a": a, "b": b, "n": n, "v": v} for n, (a, b) in enumerate([*pairs, ("plain", "y")])], schema
        )

    path = tmp_path / "ambiguous"
    for place, v in ((0, 2), (1, 3)):
        jvm.write(
            rows(place, v), path, table_name="ambiguous", key=("a", "b"), ordering="v", table_type=table_type
        )  # fmt: skip
    table = hoodie.open(path)
    assert_same_rows(table.to_arrow().select(schema.names), rows(1, 3), key="n")
    for (a, b), (c, d) in AMBIGUOUS.values():
        assert table.count(f"a <=> {_literal(a)} AND b <=> {_literal(b)}") == 0
        assert table.count(f"a = {_literal(c)} AND b = {_literal(d)}") == 1
    for place, refused in ((0, 1), (1, 3)):
        for number in range(refused):
            with pytest.raises(RecordKeyError, match="two records"):
                table.upsert(rows(place, 9).slice(number, 1))
    assert table.upsert([{"a": "plain", "b": "y", "n": 3, "v": 4}]).updated == 1
    with pytest.raises(RecordKeyError, match="two records"):
        table.update({"v": "v + 10"})
    assert table.update({"v": "v + 10"}, where="n = 3").updated == 1
    if table_type == "MERGE_ON_READ":
        table.compact()
    expected = rows(1, 3).set_column(3, "v", pa.array([3, 3, 3, 14], pa.int32()))
    for found in (hoodie.open(path).to_arrow(), jvm.read(path, schema.names)):
        assert_same_rows(found.select(schema.names), expected, key="n")
    keys = table.to_arrow(["_hoodie_record_key"], where="n < 2")
    assert table.delete(keys).deleted == 2
    assert jvm.read(path, ["n"]).num_rows == 2


def _literal(text: str | None) -> str:
    return "NULL" if text is None else f"'{text}'"
