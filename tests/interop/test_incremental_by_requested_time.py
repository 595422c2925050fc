"""Incremental pulls of version 6 tables: spans of requested times, whatever the times of the files are."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pytest

import hoodie
from hoodie.errors import UnsupportedError
from tests.interop.judges import Jvm
from tests.support.rows import assert_same_rows

SCHEMA = pa.schema([("id", pa.string()), ("n", pa.int32())])


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_copied_table_gives_the_rows_of_the_jvm(jvm: Jvm, tmp_path: Path, table_type: str) -> None:
    path = tmp_path / "pulled"
    for step in range(4):
        rows = pa.table({"id": [f"a{step}", "z"], "n": [step, step]}, schema=SCHEMA)
        jvm.write(rows, path, table_name="pulled", key="id", table_version=6, table_type=table_type)
    times = [instant.requested_time for instant in jvm.timeline(path)]
    assert len(times) == 4
    between = str(int(times[1]) - 1)
    spans = [("000", None), (times[0], None), (times[1], times[2]), (between, times[1]), (times[0], between)]
    for backwards in (False, True):
        for number, time in enumerate(times):
            for file in (path / ".hoodie").glob(f"{time}*"):
                os.utime(file, (1_600_000_000 - backwards * number,) * 2)
        table = hoodie.open(path, spark=False)
        for begin, end in spans:
            theirs = jvm.read_incremental(path, begin, end)
            ours = table.changes(since=begin if begin != "000" else None, until=end)
            assert_same_rows(ours, theirs, key="id", meta=True)
        assert table.changes(since=times[-1]).num_rows == jvm.read_incremental(path, times[-1]).num_rows == 0
        for time in (between, times[1]):
            theirs = jvm.read(path, options={"as.of.instant": time})
            assert_same_rows(table.to_arrow(as_of=time), theirs, key="id", meta=True)
    pending = str(int(times[2]) - 1)
    action = "commit" if table_type == "COPY_ON_WRITE" else "deltacommit"
    (path / ".hoodie" / f"{pending}.{action}.requested").touch()
    with pytest.raises(Exception, match=f"Found hollow commit: '{pending}'"):
        jvm.read_incremental(path, times[0])
    with pytest.raises(UnsupportedError, match=pending):
        hoodie.open(path, spark=False).changes(since=times[0])
