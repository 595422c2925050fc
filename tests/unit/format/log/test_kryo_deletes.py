"""Delete blocks of version 1 and 2: Kryo graphs that the reference made, and damaged ones."""

from __future__ import annotations

import base64
import contextlib
import json
import struct
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hoodie.errors import CorruptFileError, UnsupportedError
from hoodie.format.log.delete_block import DeleteRecords
from hoodie.format.log.kryo_deletes import parse_kryo_deletes
from tests.support.seeds import examples

LOGS = Path(__file__).parents[3] / "golden" / "logs"
GOLDEN: dict[str, Any] = json.loads((LOGS / "kryo.json").read_text())
BIG = 2**31


def payload(name: str) -> bytes:
    return base64.b64decode(GOLDEN[name])


def parse(data: bytes, version: int) -> DeleteRecords:
    return DeleteRecords.parse(struct.pack(">ii", version, len(data)) + data, path="log", offset=500)


def test_version_1_has_keys_only() -> None:
    found = parse(payload("v1"), 1)
    assert found.record_keys.to_pylist() == GOLDEN["keys"]
    assert found.partition_paths.to_pylist() == GOLDEN["partitions"]
    assert found.ordering.null_count == 8


ORDERINGS: dict[str, list[Any]] = {
    # The int 0 is what deletes without ordering value have.
    "int": [None, 1, -1, BIG - 1, -BIG, 63, 64, 8192],
    "long": [BIG, -BIG - 1, 2**62, 2**63 - 1, -(2**63), 2**40, -(2**55), 2**56],
    "long and none": [None, BIG] * 4,
    "double": [0.0, 1.5, -1.5, 1e300, -0.0, 2.0, 3.0, 4.0],
    "boolean": [True, False] * 4,
    "string": GOLDEN["keys"],
    "decimal": [Decimal(text) for text in ("0", "1.5", "-1.5", "99999999999999999999.5", "-0.00001", "0", "7", "8")],
    "timestamp": [datetime(2026, 7, day, 1, 2, 3, 456000, tzinfo=UTC) for day in range(1, 9)],
    "local_date": [date(2026, 7, day) for day in range(1, 9)],
}


@pytest.mark.parametrize("name", ORDERINGS)
def test_version_2_has_orderings(name: str) -> None:
    found = parse(payload(f"v2 {name}"), 2)
    assert found.record_keys.to_pylist() == GOLDEN["keys"]
    assert found.partition_paths.to_pylist() == GOLDEN["partitions"]
    assert found.ordering.to_pylist() == ORDERINGS[name]


def test_the_block_of_hudi_s_own_tests() -> None:
    found = DeleteRecords.parse((LOGS / "delete_v2_10_records.bin").read_bytes(), path="log")
    assert len(found) == 10
    assert found.record_keys[0].as_py() == "d448e1b8-a0d4-45c0-bf2d-a9e16ff3c8ce"
    assert set(found.partition_paths.to_pylist()) == {"0000/00/00"}
    assert found.ordering.null_count == 10


@pytest.mark.parametrize("name", ["date", "long and int"])
def test_orderings_that_are_not_clear_are_refused(name: str) -> None:
    with pytest.raises(UnsupportedError, match=r"(java\.sql\.Date|several classes).*compact"):
        parse(payload(f"v2 {name}"), 2)


def test_another_graph_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="DeleteRecord"):
        parse(payload("v1"), 2)
    with pytest.raises(UnsupportedError, match="HoodieKey"):
        parse(payload("v2 int"), 1)


def test_bytes_behind_the_graph_are_damage() -> None:
    with pytest.raises(CorruptFileError, match="follow the list") as caught:
        parse(payload("v1") + b"\0", 1)
    assert caught.value.offset == 508 + len(payload("v1"))


@given(data=st.data(), name=st.sampled_from([name for name in GOLDEN if name.startswith("v")]))
@settings(max_examples=examples(300))
def test_damaged_graphs_give_no_other_error(data: st.DataObject, name: str) -> None:
    damaged = bytearray(payload(name))
    for _ in range(data.draw(st.integers(1, 3))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    cut = data.draw(st.sampled_from([len(damaged), data.draw(st.integers(0, len(damaged)))]))
    with contextlib.suppress(CorruptFileError, UnsupportedError):
        parse(bytes(damaged[:cut]), 1 if name == "v1" else 2)


def test_a_decimal_that_no_table_has_is_damage() -> None:
    # 1.50: two bytes of the value 150, and the scale 2.
    place = payload("v2 decimal").index(b"\x03\x00\x96\x04")
    head, tail = payload("v2 decimal")[:place], payload("v2 decimal")[place + 4 :]
    for decimal in (b"\x02\x0f\xfe\xff\xff\xff\x0f", b"\x02\x0f\xff\xff\xff\xff\x0f", b"\xff\xff\xff\x7f" + bytes(70)):
        with pytest.raises(CorruptFileError, match="larger than decimals of tables are"):
            parse(head + decimal + tail, 2)


def test_more_deletes_than_a_block_has_are_refused() -> None:
    with pytest.raises(CorruptFileError, match="a list of 8 deletes"):
        parse_kryo_deletes(payload("v2 int"), 2, path="log", deletes_max=7)
