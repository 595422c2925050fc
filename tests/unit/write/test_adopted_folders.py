"""Folders of Parquet files as other programs name them: no row is left out without a word."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hoodie
from tests.unit.write.adopted import adopt, values_of, write


def adopted(folder: Path, **options: Any) -> list[dict[str, Any]]:
    """The rows of the table that the folder becomes, by key."""
    adopt(folder, **options)
    return values_of(folder.parent / "t")


def test_columns_of_folders_may_begin_with_an_underscore(tmp_path: Path) -> None:
    write(tmp_path / "in" / "_day=1" / "a.parquet", {"id": ["a"]})
    write(tmp_path / "in" / "_day=2" / "_p=x" / "b.parquet", {"id": ["b"]})
    with pytest.raises(hoodie.InvalidConfigError, match="expected folders of the columns"):
        adopted(tmp_path / "in")
    (tmp_path / "in" / "_day=2" / "_p=x" / "b.parquet").rename(tmp_path / "in" / "_day=2" / "b.parquet")
    assert adopted(tmp_path / "in") == [{"id": "a", "_day": 1}, {"id": "b", "_day": 2}]


def test_what_is_skipped_is_listed(tmp_path: Path) -> None:
    write(tmp_path / "in" / "a.parquet", {"id": ["a"]})
    for name in ("_tmp/b.parquet", ".c.parquet", "_metadata"):
        write(tmp_path / "in" / name, {"id": [name]})
    for name in ("_SUCCESS", ".a.parquet.crc"):
        (tmp_path / "in" / name).touch()
    plan = hoodie.adopt(tmp_path / "in", record_key="id")
    assert plan.ok
    assert plan.rows == 1
    assert plan.notes == (
        "not read, as names that begin with _ or . hide them: 3 files: .c.parquet, _metadata, _tmp/b.parquet",
    )


def test_values_and_names_of_folders_are_decoded_or_refused(tmp_path: Path) -> None:
    write(tmp_path / "in" / "gr%C3%B6%C3%9Fe=S%C3%A3o" / "a.parquet", {"id": ["a"]})
    assert adopted(tmp_path / "in") == [{"id": "a", "größe": "São"}]
    for value in ("%FF", "%FE"):
        write(tmp_path / "bad" / f"p={value}" / "a.parquet", {"id": [value]})
    with pytest.raises(hoodie.InvalidConfigError, match=r"expected UTF-8 in the names of folders, found '%F[EF]'"):
        hoodie.adopt(tmp_path / "bad", record_key="id")


@pytest.mark.parametrize(
    ("untyped", "typed"),
    [
        (pa.nulls(1), [7]),
        (pa.array([[None]], pa.list_(pa.null())), [[7]]),
        (pa.array([[]], pa.list_(pa.null())), [[7]]),
        (pa.array([{"x": None}], pa.struct([("x", pa.null())])), [{"x": 7}]),
    ],
    ids=["column", "list", "empty list", "struct"],
)
def test_a_column_of_nulls_has_the_type_that_another_file_names(tmp_path: Path, untyped: pa.Array, typed: Any) -> None:
    write(tmp_path / "in" / "a.parquet", {"id": ["a"], "v": untyped})
    plan = hoodie.adopt(tmp_path / "in", record_key="id")
    assert not plan.ok
    assert "column 'v' of a.parquet has only nulls and no type" in plan.refused[0]
    write(tmp_path / "in" / "b.parquet", {"id": ["b"], "v": typed})
    assert adopted(tmp_path / "in") == [{"id": "a", "v": untyped[0].as_py()}, {"id": "b", "v": typed[0]}]
