"""`t.index.compare` of the bloom and bucket indexes: equal on a sound table, and told where a key is misplaced."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from hoodie.errors import InvalidConfigError
from hoodie.table import Table
from tests.support import tables

BUCKETS = {"hoodie.bucket.index.num.buckets": "4"}


def rows(numbers: range, city: str = "sf") -> pa.Table:
    return tables.rows(*(f"k{number}" for number in numbers), city=city)


def made(index: str, table_type: str = "copy_on_write", **properties: str) -> Table:
    named: dict[str, Any] = {"partition_by": "city", "ordering": "ts", "index": index, "type": table_type}
    named["properties"] = properties
    later = pa.concat_tables([rows(range(30, 60), "la"), rows(range(5))])
    return tables.new_table(tables.PLAIN, rows(range(40)), later, **named)


@pytest.mark.parametrize("table_type", tables.TYPES)
@pytest.mark.parametrize("index", ["bloom", "record"])
def test_bloom_finds_what_the_other_indexes_find(index: str, table_type: str) -> None:
    table = made(index, table_type)
    others = ("simple", "global_simple", *(("record",) if index == "record" else ()))
    asked = rows(range(70) if index == "bloom" else range(30))
    for other in others:
        report = table.index.compare("bloom", other, data=asked)
        assert report.ok, str(report)
        assert report.checked["found by bloom"] == (60 if index == "bloom" else 30)


@pytest.mark.parametrize("table_type", tables.TYPES)
def test_buckets_are_where_keys_are(table_type: str) -> None:
    table = made("bucket", table_type, **BUCKETS)
    for other in ("simple", "global_bloom"):
        report = table.index.compare("bucket", other, data=rows(range(70)))
        assert report.ok, str(report)
        assert report.checked == {"rows": 70, "found by bucket": 60, f"found by {other}": 60}


def test_a_key_outside_of_its_bucket_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    table = made("bucket", **BUCKETS)
    with monkeypatch.context() as patch:
        patch.setattr(
            "hoodie.index.bucket.bucket_of_keys",
            lambda keys, _fields, _count: pa.array([0] * len(keys)).to_numpy(),
        )
        table.upsert(rows(range(100, 105)))
    report = table.index.compare("simple", "bucket", data=rows(range(100, 105)))
    misplaced = report.problems["rows that only simple finds there"]
    assert 0 < misplaced <= 5
    assert report.problems["rows that only bucket finds there"] == misplaced


def test_indexes_that_the_table_lacks_are_refused() -> None:
    table = made("bloom")
    for index in ("bucket", "record"):
        with pytest.raises(InvalidConfigError, match=f"has no {index} index"):
            table.index.compare(index, "bloom", data=rows(range(3)))
