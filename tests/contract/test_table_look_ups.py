"""Look-ups by key through the record index give the same on every engine, and leave other files alone."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hoodie
from hoodie.index.record.state import record_index
from tests.contract.table_lanes import Lane, trips

CITIES = ("sf", "nyc", "la", "rio")
FIRST = trips(*((f"k{n:02}", 1, float(n), CITIES[n % 4]) for n in range(24)))


@dataclass(frozen=True, slots=True)
class Look:
    """A table whose record `k01` moved, and whose record `k02` was deleted; the instant before that."""

    lane: Lane
    table: hoodie.Table
    first: str

    def located(self, keys: Any, as_of: str | None = None) -> dict[str, str | None]:
        """Partition path of each key."""
        found = self.lane.arrow(self.table.record_locations(keys, as_of=as_of))
        assert found.schema.names == ["_hoodie_record_key", "partition_path", "file_id", "instant"]
        assert found["file_id"].null_count == found["instant"].null_count == found["partition_path"].null_count
        return dict(zip(found["_hoodie_record_key"].to_pylist(), found["partition_path"].to_pylist(), strict=True))


@pytest.fixture(scope="module", params=["record", "global_simple"])
def look(request: pytest.FixtureRequest, shared_lane: Lane, tmp_path_factory: pytest.TempPathFactory) -> Look:
    """The table that these tests read, with the record index and without."""
    lane = Lane(shared_lane.session, tmp_path_factory.mktemp("look-ups"))
    moved = trips(("k01", 2, 0.0, "la"))
    table = lane.table(FIRST, moved, partition_by="city", ordering="ts", index=request.param)
    first = table.timeline.instants[0].requested_time
    table.delete(lane.data(trips(("k02", 0, None, "la"))))
    return Look(lane, table, first)


def keys(lane: Lane, *given: str) -> Any:
    """Keys as data of the lane."""
    return lane.data(pa.table({"id": pa.array(given, pa.string())}))


def test_locations_are_told_for_keys_in_a_frame(look: Look) -> None:
    asked = keys(look.lane, "k00", "k01", "k02", "nobody")
    expected = {"k00": "city=sf", "k01": "city=la", "k02": None, "nobody": None}
    assert look.located(asked) == expected
    assert look.located(asked, as_of=look.first) == {**expected, "k01": "city=nyc", "k02": "city=la"}
    found = look.lane.arrow(look.table.record_locations(keys(look.lane, *["k00"] * 3)))
    assert found["partition_path"].to_pylist() == ["city=sf"] * 3
    names = {row["_hoodie_file_name"].partition("_")[0] for row in look.table.to_arrow(where="id = 'k00'").to_pylist()}
    assert set(found["file_id"].to_pylist()) == names
    assert look.located(keys(look.lane)) == {}


def test_locations_of_bare_keys_are_arrow(look: Look) -> None:
    found = look.table.record_locations(["k03", "k01"])
    assert found["partition_path"].to_pylist() == ["city=rio", "city=la"]


def test_rows_that_exist_are_filtered_out(look: Look) -> None:
    rows = trips(("k00", 5, 5.0, "sf"), ("k01", 5, 5.0, "nyc"), ("k02", 5, 5.0, "la"), ("new", 5, None, None))
    found = look.lane.arrow(look.table.filter_exists(look.lane.data(rows)))
    assert sorted(found["id"].to_pylist()) == ["k02", "new"]
    assert found.schema.names == rows.schema.names
    again = look.lane.arrow(look.table.filter_exists(look.lane.data(look.table.to_arrow())))
    assert again.num_rows == 0


CONDITIONS: dict[str, tuple[list[str], set[str]]] = {
    "id = 'k01'": (["k01"], {"la"}),
    "ID IN ('k03', 'k07', 'k02') AND ts > 0": (["k03", "k07"], {"rio"}),
    "_hoodie_record_key = 'k05' AND fare = 5": (["k05"], {"nyc"}),
    "id = 'nobody'": ([], set()),
}
"""Conditions on the key: the keys that match, and the partitions of the files that are read with a record index."""


def test_conditions_on_the_key_read_its_files_only(look: Look) -> None:
    read = look.lane.read_each(look.table, *({"where": where} for where in CONDITIONS))
    for rows, (where, (expected, cities)) in zip(read, CONDITIONS.items(), strict=True):
        assert sorted(rows["id"].to_pylist()) == expected, where
        if look.lane.session is not None and record_index(look.table.view()) is not None:
            files = look.table.read(where=where).inputFiles()
            assert {file.rpartition("/")[0].rpartition("city=")[2] for file in files} == cities, where


def test_keys_are_read_from_their_files_only(look: Look) -> None:
    found = look.table.read_keys(keys(look.lane, "k03", "k07", "k02"))
    assert sorted(look.lane.arrow(found)["id"].to_pylist()) == ["k03", "k07"]
    if look.lane.session is not None and record_index(look.table.view()) is not None:
        assert {file.rpartition("/")[0].rpartition("city=")[2] for file in found.inputFiles()} == {"rio"}


def test_keys_in_structs_without_the_partition_field_are_found_in_any_partition(
    shared_lane: Lane, tmp_path: Path
) -> None:
    text = pa.string()
    inner = pa.struct([("id", text), ("p", text)])
    rows = pa.table({"m": pa.array([{"id": "a", "p": "x"}, {"id": "b", "p": "y"}], inner), "v": [1, 2]})
    asked = pa.table({"m": pa.array([{"id": "b"}, {"id": "new"}], pa.struct([("id", text)]))})
    for index in ("simple", "record"):
        lane = Lane(shared_lane.session, tmp_path / index)
        lane.folder.mkdir()
        table = lane.table(rows, schema=rows.schema, record_key="m.id", partition_by="m.p", index=index)
        assert lane.arrow(table.read_keys(lane.data(asked)))["v"].to_pylist() == [2]
        found = lane.arrow(table.record_locations(lane.data(asked)))
        places = zip(found["_hoodie_record_key"].to_pylist(), found["partition_path"].to_pylist(), strict=True)
        assert dict(places) == {"b": "m.p=y", "new": None}
        assert lane.arrow(table.filter_exists(lane.data(asked))).to_pylist() == [{"m": {"id": "new"}}]
