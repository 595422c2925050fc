"""Row groups that a new base file takes from the file of before: rows, bounds and footers are as if encoded anew."""

from __future__ import annotations

import io
import math
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hoodie.errors import CorruptFileError
from hoodie.files.base_file import BaseFileWriter, ParquetOptions, open_base_file
from hoodie.files.slices import BaseFile
from hoodie.files.stored_groups import StoredGroups
from hoodie.format.hashes.bloom import FOOTER_KEY, TYPE_FOOTER_KEY, BloomFilter, FilterOptions
from hoodie.format.parquet_footer import NAN_BOUNDS_KEY, has_nan_bounds
from hoodie.format.schema.table_schema import with_meta_fields
from hoodie.storage import LocalStore, MemoryStore, Store

KEY, NAME = "_hoodie_record_key", "_hoodie_file_name"
COLUMNS = pa.schema(
    [
        ("n", pa.int64()),
        ("x", pa.float64()),
        ("s", pa.string()),
        ("b", pa.binary()),
        ("d", pa.date32()),
        ("t", pa.timestamp("us", "UTC")),
        ("p", pa.decimal128(20, 3)),
        ("flag", pa.bool_()),
        ("l", pa.list_(pa.struct([("k", pa.int32()), ("v", pa.list_(pa.float32()))]))),
        ("m", pa.map_(pa.string(), pa.float64())),
        ("o", pa.struct([("in", pa.struct([("f", pa.float64()), ("s", pa.string())]))])),
    ]
)
SCHEMA = with_meta_fields(COLUMNS)
STATISTICS = ("n", "x", "s", "d", "p", "o.in.f", "o.in.s")
OLD, NEW = "p/f_0-0-0_20261122090000000.parquet", "p/f_0-1-0_20261123090000000.parquet"


def rows(keys: list[str], seed: int) -> pa.Table:
    """Rows of these keys; some values are null, NaN, empty or long."""
    drawn = random.Random(seed)

    def maybe(value: Any) -> Any:
        return None if drawn.random() < 0.2 else value

    def number() -> float:
        return math.nan if drawn.random() < 0.05 else drawn.random()

    def text() -> str:
        return drawn.choice(["", "é", "x" * drawn.choice([3, 5000 if drawn.random() < 0.02 else 4])])

    data = {
        "n": [maybe(drawn.randrange(-(2**40), 2**40)) for _ in keys],
        "x": [maybe(number()) for _ in keys],
        "s": [maybe(text()) for _ in keys],
        "b": [maybe(drawn.randbytes(3)) for _ in keys],
        "d": [maybe(date(2026, 1, 1 + drawn.randrange(28))) for _ in keys],
        "t": [maybe(datetime(2026, 1, 1, drawn.randrange(24), tzinfo=UTC)) for _ in keys],
        "p": [maybe(Decimal(drawn.randrange(10**6)).scaleb(-3)) for _ in keys],
        "flag": [maybe(drawn.random() < 0.5) for _ in keys],
        "l": [maybe([maybe({"k": 1, "v": [number(), None]}) for _ in range(drawn.randrange(3))]) for _ in keys],
        "m": [maybe([("a", number())] if drawn.random() < 0.5 else []) for _ in keys],
        "o": [maybe({"in": maybe({"f": number(), "s": text()})}) for _ in keys],
    }
    meta = {
        "_hoodie_commit_time": ["20261122090000000"] * len(keys),
        "_hoodie_commit_seqno": [f"20261122090000000_0_{place}" for place in range(len(keys))],
        KEY: keys,
        "_hoodie_partition_path": ["p"] * len(keys),
        NAME: ["?"] * len(keys),
    }
    return pa.table({**meta, **data}, schema=SCHEMA)


def keys_of(group: int, count: int = 40) -> list[str]:
    return [f"k{group}{place:03}" for place in range(count)]


CHANGED: list[list[str]] = [
    ["_hoodie_commit_time", "_hoodie_commit_seqno", "x"],
    ["o", "d"],
    ["n", "l", "m", "flag"],
    [name for name in SCHEMA.names if name not in {KEY, NAME}],
]
OPTIONS = ParquetOptions(range_columns=STATISTICS, bloom=FilterOptions(entries=50))


def write(store: Store, path: str, groups: list[pa.Table], options: ParquetOptions = OPTIONS) -> BaseFileWriter:
    with BaseFileWriter(store, path, SCHEMA, options, {NAME: path}) as writer:
        for found in groups:
            writer.write(found)
            writer.flush()
    return writer


@contextmanager
def stored_groups(store: Store, schema: pa.Schema = SCHEMA) -> Iterator[StoredGroups | None]:
    size = store.head(OLD)
    assert size is not None
    file = BaseFile("p", OLD.rpartition("/")[2], "f", "20261122090000000", size.size_bytes)
    with open_base_file(store, file) as (parquet, source):
        yield StoredGroups.of(parquet, source, schema, store.uri(OLD))


def read(store: Store, path: str) -> pa.Table:
    return pq.ParquetFile(pa.BufferReader(store.read(path)), page_checksum_verification=True).read()


def same_rows(one: pa.Table, other: pa.Table) -> None:
    """Equal rows; NaN equals NaN."""
    assert one.schema.equals(other.schema)
    assert repr(one.to_pylist()) == repr(other.to_pylist())


def copied_and_encoded(seed: int, order: str) -> tuple[MemoryStore, BaseFileWriter, BaseFileWriter]:
    """By `order`, a digit copies a row group of the old file, a letter encodes rows; and the same encoded anew.

    A capital copies a row group, A the first one, but for the columns that `CHANGED` draws for it.
    """
    store, changed = MemoryStore(), dict[str, pa.Table]()
    old = [rows(keys_of(group), seed * 10 + group) for group in range(4)]
    write(store, OLD, old)
    fresh = {letter: rows(keys_of(place), seed * 10 + place) for place, letter in enumerate("abc", start=5)}
    for place, letter in enumerate("ABCD"):
        chosen = CHANGED[(place + seed) % len(CHANGED)]
        other = rows(keys_of(place), seed * 10 + 50 + place).select(chosen)
        fresh[letter] = pa.table(
            {name: (other if name in chosen else old[place])[name] for name in SCHEMA.names}, SCHEMA
        )
        changed[letter] = other
    with stored_groups(store) as stored, BaseFileWriter(store, NEW, SCHEMA, OPTIONS, {NAME: NEW}) as writer:
        assert stored is not None
        for step in order:
            if step.isdigit():
                writer.copy(stored, int(step))
            elif step in changed:
                writer.copy(stored, "ABCD".index(step), changed[step])
            else:
                writer.write(fresh[step])
    wanted = [old[int(step)] if step.isdigit() else fresh[step] for step in order]
    whole = write(store, "p/w_0-2-0_20261123090000000.parquet", wanted)
    return store, writer, whole


@pytest.mark.parametrize("order", ["0123", "0a3", "ab12c", "3a", "a0b1c2", "2", "00", "ABCD", "BaD1", "Cb0A2", "D"])
def test_a_file_is_as_if_encoded_anew(order: str) -> None:
    store, writer, whole = copied_and_encoded(len(order), order)
    found, wanted = read(store, NEW), read(store, whole.path)
    same_rows(found.drop_columns([NAME]), wanted.drop_columns([NAME]))
    assert set(found[NAME].to_pylist()) == {NEW}
    assert (writer.rows, writer.size_bytes) == (whole.rows, len(store.read(NEW)))
    ours, theirs = (pq.ParquetFile(pa.BufferReader(store.read(path))).metadata for path in (NEW, whole.path))
    assert ours.num_rows == theirs.num_rows
    assert set(ours.metadata) == set(theirs.metadata)
    position = 4
    for number in range(ours.num_row_groups):
        group = ours.row_group(number)
        for place in range(group.num_columns):
            chunk = group.column(place)
            start = chunk.dictionary_page_offset if chunk.has_dictionary_page else chunk.data_page_offset
            assert start == position
            position += chunk.total_compressed_size
    assert bounds(writer) == bounds(whole)


def bounds(writer: BaseFileWriter) -> list[tuple[Any, ...]]:
    assert writer.ranges is not None
    return [(found.column, found.low, found.high, found.values, found.nulls) for found in writer.ranges]


def test_the_keys_of_copied_groups_are_in_the_filter_and_in_the_bounds() -> None:
    store, _, _ = copied_and_encoded(1, "1a")
    footer = {
        key.decode(): value.decode()
        for key, value in pq.ParquetFile(pa.BufferReader(store.read(NEW))).metadata.metadata.items()
    }
    found = BloomFilter.parse(footer[FOOTER_KEY], footer[TYPE_FOOTER_KEY])
    assert found.may_contain(pa.array([*keys_of(1), *keys_of(5)])).all()
    assert footer["hoodie_min_record_key"] <= keys_of(1)[0]
    assert footer["hoodie_max_record_key"] >= keys_of(5)[-1]


def test_bounds_of_copied_groups_are_proven_by_their_file() -> None:
    """Files of hoodie before 0.4 lack the key: their bounds leave out NaN, and copied row groups keep them."""
    store, _, _ = copied_and_encoded(1, "1a")
    assert has_nan_bounds(pq.read_metadata(pa.BufferReader(store.read(NEW))))
    store.replace(OLD, store.read(OLD).replace(NAN_BOUNDS_KEY.encode(), NAN_BOUNDS_KEY[::-1].encode()))
    with stored_groups(store) as stored:
        assert stored is not None
        assert not has_nan_bounds(stored.metadata)
        with BaseFileWriter(store, NEW.replace("-1-", "-2-"), SCHEMA, OPTIONS, {NAME: NEW}) as writer:
            writer.write(rows(keys_of(5), 1))
            writer.copy(stored, 1)
    assert not has_nan_bounds(pq.read_metadata(pa.BufferReader(store.read(writer.path))))


def test_other_readers_read_copied_groups(tmp_path: Any) -> None:
    store, _, whole = copied_and_encoded(3, "0a2bDB")
    for path in (NEW, whole.path):
        (tmp_path / path.rpartition("/")[2]).write_bytes(store.read(path))
    new, anew = tmp_path / NEW.rpartition("/")[2], tmp_path / whole.path.rpartition("/")[2]
    columns = ", ".join(f'"{name}"' for name in SCHEMA.names if name != NAME)
    con = duckdb.connect()
    found, wanted = (con.execute(f"SELECT {columns} FROM read_parquet('{path}')").fetchall() for path in (new, anew))
    assert repr(found) == repr(wanted)
    for key in (keys_of(0)[7], keys_of(5)[3], keys_of(2)[39], keys_of(6)[0]):
        count = con.execute(f"SELECT count(*) FROM read_parquet('{new}') WHERE {KEY} = '{key}'").fetchone()
        assert count == (1,)
        assert pl.scan_parquet(new).filter(pl.col(KEY) == key).collect().height == 1
    frames = [pl.read_parquet(path).drop(NAME) for path in (new, anew)]
    assert repr(frames[0].rows()) == repr(frames[1].rows())


@pytest.mark.parametrize(
    ("groups", "options", "schema"),
    [
        (1, OPTIONS, SCHEMA),  # one small row group
        (20, OPTIONS, SCHEMA),  # many more than full ones
        (2, replace(OPTIONS, has_meta=False), SCHEMA),
        (2, OPTIONS, pa.schema([*SCHEMA, ("added", pa.int32())])),
        (2, OPTIONS, pa.schema([child if child.name != "n" else child.with_type(pa.int32()) for child in SCHEMA])),
        (2, OPTIONS, pa.schema([child if child.name != "n" else child.with_nullable(False) for child in SCHEMA])),
    ],
)
def test_files_of_another_form_are_encoded_anew(groups: int, options: ParquetOptions, schema: pa.Schema) -> None:
    store = MemoryStore()
    counts = [40] if groups <= 2 else [40] + [1] * (groups - 1)
    write(store, OLD, [rows(keys_of(group, (counts * 2)[group]), group) for group in range(groups)], options)
    with stored_groups(store, schema) as found:
        assert found is None


def test_a_file_of_another_writer_is_encoded_anew() -> None:
    store = MemoryStore()
    sink = io.BytesIO()
    pq.write_table(rows(keys_of(0) + keys_of(1), 1), sink, row_group_size=40)
    store.create(OLD, sink.getvalue())
    with stored_groups(store) as found:
        assert found is None


def test_a_file_that_became_shorter_is_named(tmp_path: Any) -> None:
    store = LocalStore(str(tmp_path))
    write(store, OLD, [rows(keys_of(group), group) for group in range(2)])
    with stored_groups(store) as found, BaseFileWriter(store, NEW, SCHEMA, OPTIONS, {NAME: NEW}) as writer:
        assert found is not None
        with (tmp_path / OLD).open("r+b") as file:
            file.truncate(200)
        with pytest.raises(CorruptFileError, match=r"bytes of pages, found|cannot be read"):
            writer.copy(found, 1)


def test_a_changed_byte_in_a_page_is_found_when_it_is_copied() -> None:
    store = MemoryStore()
    write(store, OLD, [rows(keys_of(group), group) for group in range(2)])
    data = bytearray(store.read(OLD))
    chunk = pq.ParquetFile(pa.BufferReader(bytes(data))).metadata.row_group(1).column(SCHEMA.names.index("n"))
    data[chunk.data_page_offset + chunk.total_compressed_size // 2] ^= 0xFF
    store.replace(OLD, bytes(data))
    options = replace(OPTIONS, range_columns=None, bloom=None)
    with stored_groups(store) as found, BaseFileWriter(store, NEW, SCHEMA, options, {NAME: NEW}) as writer:
        assert found is not None
        writer.copy(found, 0)
        with pytest.raises(CorruptFileError, match=r"the column n: the checksum of the page at byte \d+"):
            writer.copy(found, 1)


def test_large_pieces_become_several_row_groups() -> None:
    store = MemoryStore()
    piece = rows(keys_of(0, 900), 1)
    options = replace(OPTIONS, row_group_bytes=piece.nbytes // 4)
    with BaseFileWriter(store, OLD, SCHEMA, options, {NAME: OLD}) as writer:
        writer.write(piece)
    metadata = pq.ParquetFile(pa.BufferReader(store.read(OLD))).metadata
    assert 3 <= metadata.num_row_groups <= 5
    same_rows(read(store, OLD).drop_columns([NAME]), piece.drop_columns([NAME]))
