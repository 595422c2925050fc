"""Which blocks of the metadata table's log files count, and in which order."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from hoodie.errors import CorruptFileError, MissingFileError, UnsupportedError
from hoodie.format.hfile import hfile_to_bytes
from hoodie.format.instants.commit_metadata import CommitMetadata, WriteStat
from hoodie.format.log.delete_block import DeleteRecords
from hoodie.format.log.log_block import BlockType, HeaderKey, LogBlock, parse_log_blocks
from hoodie.format.metadata_table.metadata_record import FileListRecord, RecordType, metadata_schema
from hoodie.format.table.versions import TableVersion
from hoodie.metadata.instants import visible_instants
from hoodie.metadata.kinds.files import FilesKind, merge
from hoodie.metadata.paths import METADATA_COMMITS
from hoodie.metadata.slices import SliceReader, read_base, read_log
from hoodie.storage import MemoryStore
from hoodie.timeline import Action, Instant, State, Timeline, create_completed, create_inflight, create_requested
from tests.support.refusals import all_refused

FOLDER = ".hoodie/metadata/files"


def instant(requested_time: str, completion_time: str | None, action: Action = Action.DELTA_COMMIT) -> Instant:
    state = State.REQUESTED if completion_time is None else State.COMPLETED
    return Instant(requested_time=requested_time, action=action, state=state, completion_time=completion_time)


def test_instants_that_are_pending_on_either_timeline_are_not_visible() -> None:
    metadata = Timeline.of([instant("100", "109"), instant("200", "209"), instant("300", None), instant("400", "409")])
    data = Timeline.of([instant("100", "110"), instant("200", None), instant("300", None)])
    assert [found.requested_time for found in visible_instants(metadata, data)] == ["100", "400"]
    assert visible_instants(metadata, data).start == "100"


def block(kind: BlockType, instant_time: str, content: bytes, replaces: str, **headers: str) -> bytes:
    found = {HeaderKey.INSTANT_TIME: instant_time, **{HeaderKey[name]: value for name, value in headers.items()}}
    if replaces:
        found[HeaderKey.COMPACTED_BLOCK_TIMES] = replaces
    return LogBlock(block_type=kind, headers=found, content=content).to_bytes()


def rows_block(instant_time: str, files: dict[str, int | None], *, replaces: str = "") -> bytes:
    value = FileListRecord(RecordType.FILE_LIST, files).to_bytes()
    content = hfile_to_bytes(pa.array(["p"]), pa.array([value]), schema_json=metadata_schema())
    return block(BlockType.HFILE_DATA, instant_time, content, replaces, SCHEMA=metadata_schema())


def delete_block(instant_time: str, key: str, *, replaces: str = "") -> bytes:
    content = DeleteRecords.without_ordering(pa.array([key]), "files").to_bytes()
    return block(BlockType.DELETE, instant_time, content, replaces)


def store_of(**logs: bytes) -> MemoryStore:
    """The log files of these instants (`t100`: 100) of one file group of the partition `files`."""
    store = MemoryStore()
    for time, data in logs.items():
        store.create(f"{FOLDER}/.files-0000-0_{time[1:]}.log.1_0-0-0", data)
    return store


def merged(store: MemoryStore, timeline: Timeline) -> dict[str, int | None]:
    (content,) = SliceReader(store).read(FilesKind(), timeline)
    return merge(content).get("p", {})


def test_a_log_compacted_block_stands_where_the_newest_of_its_originals_stood() -> None:
    store = store_of(
        t100=rows_block("100", {"a": 1, "b": 1}),
        t200=rows_block("200", {"b": None, "c": 1}),
        t300=rows_block("300", {"c": None, "d": 1}),
        t400=rows_block("400", {"a": 1, "c": 1}, replaces="100,200"),
    )
    timeline = Timeline.of(instant(time, f"{time}9") for time in ("100", "200", "300", "400"))
    # Read at its own place the compacted block would bring `c` back.
    assert {name for name, size in merged(store, timeline).items() if size is not None} == {"a", "d"}


def test_a_log_compaction_has_rows_and_deletions() -> None:
    """And is compacted again, with a block that came between."""
    store = MemoryStore()
    keys, values = pa.array(["p", "q"]), pa.array([FileListRecord(RecordType.FILE_LIST, {"a": 1}).to_bytes()] * 2)
    base = hfile_to_bytes(keys, values, schema_json=metadata_schema())
    store.create(f"{FOLDER}/files-0000-0_0-0-0_050.hfile", base)
    logs = {
        "100": rows_block("100", {"b": 1}),
        "200": delete_block("200", "q"),
        "300": rows_block("300", {"c": 1}),
        "400": rows_block("400", {"b": 1}, replaces="100,200") + delete_block("400", "q", replaces="100,200"),
        "500": rows_block("500", {"b": 1, "c": 1}, replaces="400,300") + delete_block("500", "q", replaces="400,300"),
    }
    timeline = Timeline.of([instant("050", "0509", Action.COMMIT), *(instant(time, f"{time}9") for time in logs)])
    for time, data in logs.items():
        store.create(f"{FOLDER}/.files-0000-0_{time}.log.1_0-0-0", data)
        (content,) = SliceReader(store).read(FilesKind(), timeline)
        assert "q" not in merge(content) or time == "100"
    (content,) = SliceReader(store).read(FilesKind(), timeline)
    assert [block.instant_time for block in content.blocks] == ["500", "500"]
    assert merge(content) == {"p": {"a": 1, "b": 1, "c": 1}}


def test_a_log_compacted_block_without_originals_does_not_count() -> None:
    store = store_of(t300=rows_block("300", {"d": 1}), t400=rows_block("400", {"a": 1}, replaces="100,200"))
    assert merged(store, Timeline.of([instant("300", "3009"), instant("400", "4009")])) == {"d": 1}


def test_log_files_belong_to_slices_by_their_completion_time() -> None:
    store = store_of(t100=rows_block("100", {"old": 1}), t200=rows_block("200", {"late": 1}))
    empty = pa.array([], pa.string()), pa.array([], pa.binary())
    base = hfile_to_bytes(*empty, schema_json=metadata_schema())
    store.create(f"{FOLDER}/files-0000-0_0-0-0_300.hfile", base)
    instants = [instant("100", "150"), instant("200", "350"), instant("300", "340", Action.COMMIT)]
    assert merged(store, Timeline.of(instants)) == {"late": 1}


def commit(store: MemoryStore, log: str, rows: int) -> None:
    """Complete the delta commit 100, which records `rows` rows in a log file."""
    stat = replace(WriteStat.of_log(f"files/{log}", "files", 1, prev_commit="100"), num_writes=rows)
    content = CommitMetadata(partition_to_write_stats={"files": (stat,)}).to_bytes(TableVersion.NINE)
    layout = METADATA_COMMITS.layout
    create_requested(store, layout, "100", Action.DELTA_COMMIT)
    create_inflight(store, layout, "100", Action.DELTA_COMMIT)
    create_completed(store, layout, "100", Action.DELTA_COMMIT, content, completion_time="150")


@pytest.mark.parametrize("damage", ["half", "nothing", "appended", "flipped"])
@pytest.mark.parametrize("partition", ["files", "record_index"])
def test_a_damaged_log_file(damage: str, partition: str) -> None:
    store = MemoryStore()
    whole = rows_block("100", {"a": 1})
    inside = parse_log_blocks(whole, path="log")[0].content_offset + 50
    data = {
        "half": whole[: len(whole) // 2],
        "nothing": b"",
        "appended": whole + whole[:100],
        "flipped": whole[:inside] + bytes([whole[inside] ^ 1]) + whole[inside + 1 :],
    }[damage]
    log = f".{partition.replace('_', '-')}-0000-0_100.log.1_0-0-0"
    path = f".hoodie/metadata/{partition}/{log}"
    store.create(path, data)
    remedy = r"t\.index\.rebuild\(\)"
    with pytest.raises(CorruptFileError, match=remedy) as caught:
        read_log(store, path)
    assert str(caught.value).startswith(store.uri(path))
    if damage in ("nothing", "appended"):
        commit(store, log, 0)
        assert len(read_log(store, path).blocks) == (damage == "appended")


def test_a_missing_file() -> None:
    all_refused(
        MissingFileError,
        r"t\.index\.rebuild\(\)",
        lambda: read_log(MemoryStore(), f"{FOLDER}/.files-0000-0_100.log.1_0-0-0"),
        lambda: read_base(MemoryStore(), f"{FOLDER}/files-0000-0_0-0-0_100.hfile"),
    )


def test_other_data_blocks_are_refused() -> None:
    store = store_of(t100=block(BlockType.AVRO_DATA, "100", b"", ""))
    with pytest.raises(UnsupportedError, match="AVRO_DATA"):
        merged(store, Timeline.of([instant("100", "150")]))
