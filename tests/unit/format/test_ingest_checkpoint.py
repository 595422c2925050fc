"""The entries of commits with the place of an ingestion: keys and forms of HoodieStreamer."""

from __future__ import annotations

import json

import pytest

from hoodie.errors import CorruptFileError
from hoodie.format.instants.ingest_checkpoint import KEYS, IngestCheckpoint, has_names

PLACE, START, IGNORED, PLACE_V2, START_V2, _ = KEYS


def of(extra: dict[str, str], name: str | None = None) -> IngestCheckpoint | None:
    return IngestCheckpoint.of(extra, name, path="commit 1")


def test_the_keys_are_those_of_the_jvm() -> None:
    given = IngestCheckpoint(place="events,0:5,1:7", start="events,0:0", ignored="run 2")
    assert given.entries() == {
        "deltastreamer.checkpoint.key": "events,0:5,1:7",
        "deltastreamer.checkpoint.reset_key": "events,0:0",
        "deltastreamer.checkpoint.ignore_key": "run 2",
    }
    second = IngestCheckpoint(place="20261129", start="20261128", version=2)
    assert second.entries() == {
        "streamer.checkpoint.key.v2": "20261129",
        "streamer.checkpoint.reset.key.v2": "20261128",
    }
    for checkpoint in (given, second, IngestCheckpoint(place="1")):
        assert of(checkpoint.entries()) == checkpoint


def test_the_second_version_counts_before_the_first_one() -> None:
    found = of({PLACE: "old", PLACE_V2: "new"})
    assert found == IngestCheckpoint(place="new", version=2)
    assert of({START_V2: "x"}) == IngestCheckpoint(place=None, start="x", version=2)
    assert of({START: "x"}) == IngestCheckpoint(place=None, start="x")


@pytest.mark.parametrize("extra", [{}, {"schema": "{}"}, {PLACE: ""}, {PLACE_V2: "", PLACE: ""}])
def test_a_commit_without_a_place(extra: dict[str, str]) -> None:
    assert of(extra) is None
    assert of(extra, "trips") is None


def test_jobs_with_names_keep_each_others_places() -> None:
    first = IngestCheckpoint(place="5", start="0").entries("trips")
    assert json.loads(first[PLACE]) == {"trips": "5"}
    both = IngestCheckpoint(place="7", ignored="again").entries("fares", first)
    assert json.loads(both[PLACE]) == {"trips": "5", "fares": "7"}
    assert of(both, "trips") == IngestCheckpoint(place="5", start="0")
    assert of(both, "fares") == IngestCheckpoint(place="7", ignored="again")
    assert of(both, "third") is None
    assert has_names(both)
    assert not has_names(IngestCheckpoint(place="5").entries())
    third = IngestCheckpoint(place="20261129", version=2)
    assert of(third.entries("hudi", both), "hudi") == third


def test_a_job_without_a_name_takes_no_place_of_named_ones() -> None:
    entries = IngestCheckpoint(place="5").entries("trips")
    with pytest.raises(CorruptFileError, match="found those of trips: give the flow one of these names"):
        of(entries)


def test_a_named_job_does_not_take_the_place_of_one_without_a_name() -> None:
    assert of({PLACE: "events,0:5"}, "trips") is None
    merged = IngestCheckpoint(place="1").entries("trips", {PLACE: "events,0:5"})
    assert json.loads(merged[PLACE]) == {"trips": "1"}


@pytest.mark.parametrize("text", ["{", '{"a": 1}', "{not json}", '{"a": {"b": "c"}}'])
def test_a_place_can_have_any_form(text: str) -> None:
    assert of({PLACE: text}) == IngestCheckpoint(place=text)
    assert of(IngestCheckpoint(place=text).entries("trips"), "trips") == IngestCheckpoint(place=text)
