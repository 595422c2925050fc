"""What all codecs promise: bytes of the JVM come back as they were, and damage is an error of ours that names the file.

What one codec promises besides is in the module that has its name. Of many bytes some are changed, and some are ends.
"""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hoodie.errors import CorruptFileError, UnsupportedError
from hoodie.format.avro.file import RecordSchema, parse_record, record_to_bytes
from hoodie.format.avro.record_mapping import InstantRecord
from hoodie.format.bootstrap_index import parse_source
from hoodie.format.hashes.bloom import BloomFilter
from hoodie.format.hfile import HFileReader
from hoodie.format.instants.archive import ArchivedInstant, ArchiveManifest, archived_to_bytes, parse_archived
from hoodie.format.instants.commit_metadata import CommitMetadata, WriteStat
from hoodie.format.instants.service_metadata import (
    CleanerPlan,
    CleanMetadata,
    CompactionPlan,
    IndexCommitMetadata,
    IndexPlan,
    RequestedReplaceMetadata,
    RestoreMetadata,
    RestorePlan,
    RollbackMetadata,
    RollbackPlan,
    SavepointMetadata,
)
from hoodie.format.log.data_block import DataFormat, data_block, read_data_block
from hoodie.format.log.delete_block import DeleteRecords
from hoodie.format.log.log_block import BlockType, HeaderKey, LogBlock, parse_log_blocks
from hoodie.format.metadata_table.metadata_record import FileListRecord, RecordType, metadata_schema
from hoodie.format.metadata_table.record_location import RecordLocation
from hoodie.format.schema.table_schema import META_FIELDS, arrow_to_avro
from tests.support.seeds import examples
from tests.unit.format.hfile.test_corruption import SAMPLES, read_everything

GOLDEN = Path(__file__).parents[2] / "golden"
INSTANTS = {path.name: path.read_bytes() for path in sorted((GOLDEN / "instants").glob("[a-z]*"))}
KINDS: dict[str, type[InstantRecord]] = {
    "clean.requested": CleanerPlan,
    "clean": CleanMetadata,
    "rollback.requested": RollbackPlan,
    "rollback": RollbackMetadata,
    "restore.requested": RestorePlan,
    "restore": RestoreMetadata,
    "savepoint": SavepointMetadata,
    "clustering.requested": RequestedReplaceMetadata,
    "insert_overwrite.replacecommit.requested": RequestedReplaceMetadata,
    "logcompaction.requested": CompactionPlan,
    "indexing.requested": IndexPlan,
    "indexing": IndexCommitMetadata,
}
COMMITS = [data for name, data in INSTANTS.items() if "replacecommit" in name and not name.endswith("requested")]
PATH = "t/damaged"
TIME = "20261121123616628"
ROWS = pa.table({**{name: ["a", "b"] for name in META_FIELDS}, "id": [1, None], "tags": [["x", "ü"], []]})
SCHEMA = arrow_to_avro(ROWS.schema, table_name="t")
KRYO: dict[str, Any] = json.loads((GOLDEN / "logs" / "kryo.json").read_text())


@dataclass(frozen=True)
class Codec:
    """How some bytes are parsed and written again."""

    parse: Callable[[bytes], object]
    samples: list[bytes]
    to_bytes: Callable[[Any, bytes], bytes] | None = None
    """Of what was parsed, and of the bytes in which it was."""
    is_whole: bool = True
    """The bytes say where they end: fewer are damage. Some that say more are a value."""
    ends_where_it_says: bool = True
    """More bytes are damage too."""

    def step(self, count: int) -> int:
        """How far apart about `count` places are."""
        return 1 + sum(map(len, self.samples)) // count


def _of_kind(name: str) -> Codec:
    return Codec(
        lambda data: KINDS[name].parse(data, path=PATH),
        [INSTANTS[name]],
        lambda record, data: record.to_bytes(sync_marker=data[-16:]),
    )


def _of_filter(kind: str) -> Codec:
    filters = json.loads((GOLDEN / "bloom" / "filters.json").read_text()).values()
    return Codec(
        lambda data: BloomFilter.parse(base64.b64encode(data), kind, path=PATH),
        [base64.b64decode(found["base64"]) for found in filters if found["filter_type"] == kind],
        lambda bloom, _: bloom.to_bytes(),
    )


def _of_data(data_format: DataFormat) -> Codec:
    def block(rows: pa.Table) -> LogBlock:
        return data_block(rows, instant_time=TIME, avro_schema=SCHEMA, data_format=data_format)

    def parse(content: bytes) -> pa.Table:
        headers = {HeaderKey.SCHEMA: SCHEMA}
        return read_data_block(LogBlock(block_type=kind, headers=headers, content=content), path=PATH)

    kind = block(ROWS).block_type
    return Codec(parse, [bytes(block(ROWS).content)], lambda rows, _: bytes(block(rows).content))


def _of_deletes(version: int) -> Codec:
    """Delete blocks whose content is a Kryo graph, which only the JVM writes."""
    refused = ("v2 date", "v2 long and int")
    names = [name for name in KRYO if name.startswith(f"v{version}") and name not in refused]
    graphs = [base64.b64decode(KRYO[name]) for name in names]
    samples = [struct.pack(">ii", version, len(graph)) + graph for graph in graphs]
    return Codec(lambda data: DeleteRecords.parse(data, path=PATH), samples, is_whole=False)


def _of_bootstrap() -> Codec:
    values = HFileReader((GOLDEN / "bootstrap" / "fileids.hfile").read_bytes(), path="index").entries()[1]
    return Codec(lambda data: parse_source(data, path=PATH), values.to_pylist())


LOG = [
    LogBlock(block_type=kind, headers={HeaderKey.INSTANT_TIME: TIME, HeaderKey.SCHEMA: '"x"'}, content=b"12").to_bytes()
    for kind in (BlockType.AVRO_DATA, BlockType.DELETE)
]
STATS = tuple(WriteStat(file_id=f"f{number}", log_files=("a", "b")) for number in range(3))
COMMIT = CommitMetadata(partition_to_write_stats={"p": STATS}).to_bytes(9)
ARCHIVED = [
    ArchivedInstant(requested_time="1", completion_time="4", action="deltacommit", metadata=b"result"),
    ArchivedInstant(requested_time="2", completion_time="3", action="commit", metadata=b"result", plan=b"plan"),
]
DELETES = DeleteRecords(pa.array(["a", "b"]), pa.array([None, "p"]), pa.array([1, None], pa.int64()))
LOCATION = RecordLocation("city=nyc", "8e28521e-2ca3-4f03-ae3d-f47abb1ca2bc-0", 1_795_264_606_256)
CODECS = {
    "an Avro container": Codec(
        lambda data: parse_record(data, path=PATH),
        [*INSTANTS.values()],
        lambda found, data: record_to_bytes(RecordSchema.load(found[0].name), found[1], sync_marker=data[-16:]),
    ),
    **{name: _of_kind(name) for name in KINDS},
    "a commit in Avro": Codec(
        lambda data: CommitMetadata.parse(data, path=PATH),
        COMMITS,
        lambda found, data: found.to_bytes(9, sync_marker=data[-16:]),
    ),
    "a commit in JSON": Codec(
        lambda data: CommitMetadata.parse(data, path=PATH),
        [CommitMetadata.parse(data).to_bytes(6) for data in COMMITS],
        lambda found, _: found.to_bytes(6),
    ),
    "the head of a commit": Codec(lambda data: CommitMetadata.parse_head(data, path=PATH), [COMMIT], is_whole=False),
    "the stats of a commit": Codec(
        lambda data: list(CommitMetadata.iter_stats(data, path=PATH)), [COMMIT], is_whole=False
    ),
    "archived instants": Codec(
        lambda data: parse_archived(data, path=PATH),
        [archived_to_bytes(ARCHIVED)],
        lambda instants, _: archived_to_bytes(instants),
    ),
    "an archive manifest": Codec(
        lambda data: ArchiveManifest.parse(data, path=PATH),
        [ArchiveManifest.parse((GOLDEN / "archive" / "manifest_6").read_bytes()).to_bytes()],
        lambda manifest, _: manifest.to_bytes(),
    ),
    "a simple filter": _of_filter("SIMPLE"),
    "a dynamic filter": _of_filter("DYNAMIC_V0"),
    **{f"{data_format.name} data": _of_data(data_format) for data_format in DataFormat},
    "deletes": Codec(
        lambda data: DeleteRecords.parse(data, path=PATH),
        [DELETES.to_bytes()],
        lambda found, _: found.to_bytes(),
        ends_where_it_says=False,
    ),
    "deletes of version 1": _of_deletes(1),
    "deletes of version 2": _of_deletes(2),
    "HFiles": Codec(lambda data: read_everything(data, PATH), SAMPLES),
    "log blocks": Codec(
        lambda data: parse_log_blocks(data, path=PATH),
        [b"".join(LOG)],
        lambda blocks, _: b"".join(block.to_bytes() for block in blocks),
        is_whole=False,
    ),
    "a list of files": Codec(
        lambda data: FileListRecord.parse(data, schema_json=metadata_schema(), path=PATH),
        [FileListRecord(kind, {"é": 7, "gone": None}).to_bytes() for kind in (RecordType(1), RecordType(2))],
        lambda record, _: record.to_bytes(),
    ),
    "a record location": Codec(
        lambda data: RecordLocation.parse(data, schema_json=metadata_schema(), path=PATH),
        [LOCATION.to_bytes()],
        lambda location, _: location.to_bytes(),
    ),
    "an entry of the bootstrap index": _of_bootstrap(),
}
by_codec = pytest.mark.parametrize("name", CODECS)


@contextmanager
def our_error(*, must: bool = False) -> Iterator[None]:
    """The block raises an error of ours, which names the file, or none unless it `must`."""
    try:
        yield
    except (CorruptFileError, UnsupportedError) as error:
        if isinstance(error, CorruptFileError) and error.path != PATH:
            raise AssertionError("an error without its place") from error
        return
    assert not must, "damage was not noticed"


@by_codec
def test_bytes_come_back(name: str) -> None:
    codec = CODECS[name]
    assert codec.samples
    for data in codec.samples:
        value = codec.parse(data)
        assert codec.to_bytes is None or codec.to_bytes(value, data) == data


@by_codec
def test_no_beginning_is_a_value_and_nothing_follows(name: str) -> None:
    codec = CODECS[name]
    for data in codec.samples:
        # An empty file of an instant stands for empty metadata.
        for end in range(1, len(data), codec.step(4000)):
            with our_error(must=codec.is_whole):
                codec.parse(data[:end])
        with our_error(must=codec.is_whole and codec.ends_where_it_says):
            codec.parse(data + b"\0")
    for noise in (b"\0" * 40, b"\xff" * 40, b"garbage"):
        with our_error(must=codec.is_whole):
            codec.parse(noise)


@by_codec
def test_a_changed_byte_gives_no_other_error(name: str) -> None:
    """It may give another value where bytes have no checksum."""
    codec = CODECS[name]
    for data in codec.samples:
        for place in range(0, len(data), codec.step(400)):
            with our_error():
                codec.parse(data[:place] + bytes([data[place] ^ (0xFF, 1)[place % 2]]) + data[place + 1 :])


@by_codec
@given(data=st.data())
@settings(max_examples=examples(30))
def test_several_changed_bits_and_noise_give_no_other_error(name: str, data: st.DataObject) -> None:
    codec = CODECS[name]
    damaged = bytearray(data.draw(st.sampled_from(codec.samples)))
    for _ in range(data.draw(st.integers(1, 3))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    cut = data.draw(st.sampled_from([len(damaged), data.draw(st.integers(0, len(damaged)))]))
    with our_error():
        codec.parse(bytes(damaged[:cut]))
    with our_error():
        codec.parse(bytes(damaged[: data.draw(st.integers(0, 8))]) + data.draw(st.binary(max_size=100)))
