"""`help(t.upsert)` and its siblings: the data that each write takes, all errors, and an example (a doctest)."""

from __future__ import annotations

import inspect
import re

import pytest

import hoodie
from hoodie.engine.inputs import table_in_memory
from hoodie.errors import UnsupportedError

ERRORS = (
    "UnsupportedError",
    "InvalidConfigError",
    "CommitConflictError",
    "LockTimeoutError",
    "CorruptFileError",
    "MissingFileError",
    "StorageError",
)
OF_ROWS = ("SchemaMismatchError", "RecordKeyError", "PartitionPathError")
WITH_DATA = ("upsert", "insert", "bulk_insert", "insert_overwrite", "insert_overwrite_table")
WRITES = (*WITH_DATA, "delete", "delete_where", "delete_partitions", "update")


def text_of(method: str) -> str:
    """The help of a method, in one line."""
    return " ".join((inspect.getdoc(getattr(hoodie.Table, method)) or "").split())


@pytest.mark.parametrize("method", WRITES)
def test_a_write_lists_its_arguments_and_errors_and_has_an_example(method: str) -> None:
    found = text_of(method)
    errors = text_of("upsert") if "Raises: as `upsert`" in found else found
    expected = ERRORS if method in ("delete_where", "delete_partitions", "update") else (*ERRORS, *OF_ROWS)
    assert [name for name in expected if name not in errors] == []
    arguments = [name for name in inspect.signature(getattr(hoodie.Table, method)).parameters if name != "self"]
    assert [name for name in arguments if f"{name}:" not in found] == []
    assert f">>> t.{method}(" in found or f"= t.{method}(" in found


@pytest.mark.parametrize("method", WITH_DATA)
def test_a_write_lists_the_types_of_data_that_its_error_lists(method: str) -> None:
    with pytest.raises(UnsupportedError) as raised:
        table_in_memory(object())
    types = set(re.findall(r"[A-Z]\w+|dicts|lists|__\w+__", str(raised.value).partition("expected")[2]))
    assert {"DataFrame", "RecordBatchReader", "LazyFrame", "dicts", "__arrow_c_stream__"} <= types
    assert [name for name in types if name not in text_of(method)] == []


def test_writes_are_all_of_them() -> None:
    returning = {
        name
        for name, method in inspect.getmembers(hoodie.Table, inspect.isfunction)
        if method.__annotations__.get("return") == "WriteResult"
    }
    assert returning == set(WRITES)
