"""Paths in plans, markers and commits lead to data files of the table, or are refused before anything is touched."""

from __future__ import annotations

import pytest

from hoodie.errors import CorruptFileError
from hoodie.files.markers import marker_folder, read_markers
from hoodie.files.named_paths import named_data_file
from hoodie.storage import MemoryStore, Store, open_store

FILE = "0a1b-0_0-0-0_20260101000000000.parquet"
LOG = ".0a1b-0_20260101000000000.log.1_0-0-0"


@pytest.mark.parametrize(
    ("named", "base"),
    [
        (f"/t/p/{FILE}", "/t"),
        (f"file:/t/p/{FILE}", "/t"),
        (f"file:///t/p/{FILE}", "/t"),
        (f"p/{FILE}", "/t"),
        (f"s3a://bucket/t/p/{FILE}", "s3://bucket/t"),
        (f"p/{FILE}", "s3://bucket/t"),
    ],
)
def test_the_forms_in_which_writers_name_a_file(named: str, base: str) -> None:
    assert named_data_file(open_store(base), named, by="x") == f"p/{FILE}"


@pytest.mark.parametrize("named", [f"12:/{FILE}", f"a=b:c/{FILE}", f"x/file:/{FILE}", FILE, LOG])
def test_names_of_partitions_may_look_like_schemes(named: str) -> None:
    assert named_data_file(open_store("/t"), named, by="x") == named


HOSTILE = {
    "outside": f"/elsewhere/{FILE}",
    "outside by uri": f"file:///elsewhere/{FILE}",
    "a sibling whose name begins the same": f"/table/{FILE}",
    "another bucket": f"s3://other/t/{FILE}",
    "another scheme": f"http://host/t/{FILE}",
    "dots": f"../{FILE}",
    "dots within": f"p/../../{FILE}",
    "dots below the base path": f"/t/../elsewhere/{FILE}",
    "a dot": f"./{FILE}",
    "empty": "",
    "the base path": "/t",
    "an empty part": f"p//{FILE}",
    "nul": f"p/\0{FILE}",
    "the properties": ".hoodie/hoodie.properties",
    "the properties by uri": "file:///t/.hoodie/hoodie.properties",
    "an index file": f".hoodie/metadata/files/{FILE}",
    "no data file": "p/notes.txt",
    "a folder": "p",
}


@pytest.mark.parametrize("named", HOSTILE.values(), ids=HOSTILE)
def test_other_paths_are_refused(named: str) -> None:
    with pytest.raises(CorruptFileError, match="expected the path of a data file"):
        named_data_file(open_store("/t"), named, by="x")


@pytest.mark.parametrize("line", ["../../elsewhere/" + FILE, ".hoodie/hoodie.properties", "p/notes.txt"])
def test_a_marker_file_that_names_another_path_is_refused(line: str) -> None:
    store: Store = MemoryStore()
    folder = marker_folder("20260101000000000")
    store.create(f"{folder}/MARKERS.type", b"TIMELINE_SERVER_BASED")
    store.create(f"{folder}/MARKERS0", f"p/{FILE}.marker.CREATE\n{line}.marker.CREATE\n".encode())
    with pytest.raises(CorruptFileError, match="expected the path of a data file"):
        read_markers(store, "20260101000000000")
