"""Names of columns in arguments are those of the table whatever their case, as in conditions."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import hoodie
from hoodie.errors import InvalidConfigError, SchemaMismatchError


@pytest.mark.parametrize("kind", ["copy_on_write", "merge_on_read"])
def test_arguments_take_names_in_any_case(tmp_path: Path, kind: str) -> None:
    rows = pa.table({"id": ["a", "b"], "Name": ["x", "y"], "N": [1, 2]})
    table = hoodie.create(tmp_path, rows.schema, record_key="id", index="simple", type=kind, spark=False)
    table.upsert(rows)
    assert table.update({"n": "n + 1", "NAME": "upper(name)"}, where="ID = 'a'").updated == 1
    assert hoodie.sql(None, "UPDATE t SET name = 'z', t.n = N + 1 WHERE Id = 'b'", tables={"t": table}).updated == 1
    merge = table.merge(rows, "T.ID = s.Id").when_matched_update({"n": "t.N + 10"})
    assert merge.execute().updated == 2
    expected = [{"Name": "X", "N": 12, "id": "a"}, {"Name": "z", "N": 13, "id": "b"}]
    found = table.to_arrow(columns=["NAME", "n", "Id"])
    assert found.column_names == ["Name", "N", "id"]
    assert found.sort_by("id").to_pylist() == expected
    assert table.head(1, columns="nAmE").column_names == ["Name"]
    assert table.to_arrow(columns="_HOODIE_RECORD_KEY").column_names == ["_hoodie_record_key"]


def test_names_that_are_unknown_or_set_twice_are_refused(tmp_path: Path) -> None:
    rows = pa.table({"id": ["a"], "n": [1]})
    table = hoodie.create(tmp_path, rows.schema, record_key="id", spark=False)
    table.upsert(rows)
    with pytest.raises(InvalidConfigError, match="a column is set twice"):
        table.update({"n": "1", "N": "2"})
    with pytest.raises(InvalidConfigError, match="cannot be updated"):
        table.update({"ID": "'b'"})
    with pytest.raises(SchemaMismatchError, match="expected columns of the table"):
        table.update({"M": "1"})
    with pytest.raises(SchemaMismatchError, match=r"columns \['M'\] are not in the table"):
        table.to_arrow(columns=["N", "M"])
    assert table.history().num_rows == 1
