"""The source `kafka` without a broker: batches whose messages have no values."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import pyarrow as pa
import pytest

import hoodie
from hoodie.errors import BadRowsError
from hoodie.ingest.sources import kafka
from hoodie.ingest.sources.kafka_client import MESSAGE, Range
from hoodie.storage import MemoryStore

SOURCE = {"kind": "kafka", "servers": "localhost:1", "topic": "t"}
CREATE = {"record_key": "id"}


class Broker:
    """A topic with one partition. An offset whose message is missing belongs to an aborted transaction."""

    sent: ClassVar[list[Any]] = []

    def __init__(self, *_options: Any) -> None: ...

    def bounds(self) -> dict[int, Range]:
        return {0: (0, len(self.sent))}

    def messages(self, ranges: Mapping[int, Range], *, metadata: bool) -> Iterator[pa.Table]:
        assert not metadata
        for first in range(*ranges[0], 100):
            offsets = [at for at in range(first, min(first + 100, ranges[0][1])) if self.sent[at] is not ...]
            values = [None if self.sent[at] is None else json.dumps(self.sent[at]).encode() for at in offsets]
            yield pa.table([values, [f"t-0:{at}" for at in offsets], [0] * len(offsets), offsets], schema=MESSAGE)


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    monkeypatch.setattr(kafka, "Broker", Broker)
    monkeypatch.setattr(Broker, "sent", [])
    return Broker.sent


@pytest.mark.parametrize("nothing", [None, ...], ids=["tombstone", "aborted"])
@pytest.mark.parametrize("options", [{"nulls": "skip"}, {"format": "debezium"}], ids=str)
def test_batches_without_a_value_store_their_place(sent: list[Any], nothing: Any, options: dict[str, Any]) -> None:
    path, source = MemoryStore().uri(""), SOURCE | options

    def ingest() -> hoodie.IngestResult:
        return hoodie.ingest(source, path, create=CREATE, transform="SELECT * FROM source", spark=False)

    sent += [nothing] * 2000
    assert ingest().batches == 0  # there is no table that could store the place
    row = {"id": 1, "x": "a"}
    sent.append({"op": "c", "after": row} if "format" in options else row)
    assert (ingest().inserted, hoodie.open(path).to_arrow(["id", "x"]).to_pylist()) == (1, [row])
    sent += [nothing] * 3
    assert (ingest().place, hoodie.open(path).to_arrow(["id", "x"]).to_pylist()) == ("t,0:2004", [row])
    assert ingest().batches == 0


def test_tombstones_are_bad_rows_also_without_other_messages(sent: list[Any]) -> None:
    path = MemoryStore().uri("")
    sent += [{"id": 1}]
    hoodie.ingest(SOURCE, path, create=CREATE, transform="SELECT id FROM source", spark=False)
    sent += [None]
    with pytest.raises(BadRowsError, match="t-0:1: the message has no value"):
        hoodie.ingest(SOURCE, path, transform="SELECT id FROM source", spark=False)
    found = hoodie.ingest(SOURCE, path, transform="SELECT id FROM source", bad_rows="skip", spark=False)
    assert (found.bad_rows, found.place) == (1, "t,0:2")
