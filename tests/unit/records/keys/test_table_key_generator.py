"""Key generators of tables that do not store all they need."""

from __future__ import annotations

import pyarrow as pa
import pytest

from hoodie.errors import InvalidConfigError
from hoodie.format.table.key_generator import KeyGeneratorType
from hoodie.format.table.table_config import TableConfig
from hoodie.format.table.table_creation import NewTable, new_table_config
from hoodie.records.keys.key_generator import table_key_generator

TIME = "hoodie.keygen.timebased."
DAYS = {TIME + "timestamp.type": "EPOCHMILLISECONDS", TIME + "output.dateformat": "yyyy/MM/dd"}
ROWS = pa.RecordBatch.from_pydict({"id": ["a"], "city": ["sf"], "at": [86_400_000]})


def _config(**stored: str) -> TableConfig:
    """A table as the JVM makes it: with a custom key generator it stores no time format."""
    table = NewTable(
        name="t",
        record_key_fields=("id",),
        partition_fields=("city", "at"),
        partition_field_types=("SIMPLE", "TIMESTAMP"),
        key_generator=KeyGeneratorType.CUSTOM,
        extra={TIME + name.replace("_", "."): value for name, value in stored.items()},
    )
    return new_table_config(table)


def test_a_write_supplies_the_time_format_that_the_table_lacks() -> None:
    assert table_key_generator(_config(), DAYS).partition_paths(ROWS).to_pylist() == ["sf/1970/01/02"]
    with pytest.raises(InvalidConfigError, match=r"properties= of the write"):
        table_key_generator(_config())


def test_what_the_table_stores_wins() -> None:
    config = _config(timestamp_type="EPOCHMILLISECONDS", output_dateformat="yyyy")
    assert table_key_generator(config, DAYS).partition_paths(ROWS).to_pylist() == ["sf/1970"]
