"""HFiles that are read in ranges: what is asked for, what is left alone, and HFiles that lie inside other files."""

from __future__ import annotations

import mmap
from pathlib import Path

import pyarrow as pa
import pytest

from hoodie.errors import CorruptFileError
from hoodie.format.hfile import Compression, HFileReader, hfile_to_bytes
from hoodie.format.hfile.block_reader import Payloads
from hoodie.format.hfile.source import BufferSource
from tests.support.counting_source import CountingSource

GOLDEN = Path(__file__).parents[3] / "golden" / "hfile"
COUNT = 60_000
KEYS = pa.array([f"{number * 7919 % 1_000_003:08d}-{number:08d}" for number in range(COUNT)]).sort()
VALUES = pa.array([f"value of {key}".encode() * 3 for key in KEYS.to_pylist()])


@pytest.fixture(scope="module", params=list(Compression))
def content(request: pytest.FixtureRequest) -> bytes:
    return hfile_to_bytes(KEYS, VALUES, schema_json="{}", codec=request.param)


def test_three_keys_cost_few_blocks(content: bytes) -> None:
    source = CountingSource(content)
    reader = HFileReader(source, path="big")
    assert len(source.requests) == 1
    opened = source.bytes_read
    places = [5, COUNT // 2, COUNT - 5]
    found = reader.get_many(KEYS.take(pa.array(places)))
    assert found.to_pylist() == [VALUES[place].as_py() for place in places]
    assert 1 <= len(source.requests) - 1 <= 3
    assert source.bytes_read - opened <= 3 * 66_000
    assert opened <= 132_000 < len(content)


def test_near_blocks_are_read_at_once(content: bytes) -> None:
    source = CountingSource(content)
    reader = HFileReader(source, path="big")
    del source.requests[:]
    keys, values = reader.entries()
    assert (keys.equals(KEYS.cast(pa.binary())), values.equals(VALUES)) == (True, True)
    assert len(source.requests) <= 2
    del source.requests[:]
    assert reader.get_many(KEYS[::50]).equals(VALUES.take(pa.array(range(0, COUNT, 50))))
    assert len(source.requests) <= 2


def test_absent_keys_before_all_others_read_nothing(content: bytes) -> None:
    source = CountingSource(content)
    reader = HFileReader(source, path="big")
    del source.requests[:]
    assert reader.get_many(pa.array(["", "!"])).null_count == 2
    assert reader.get_many(pa.array([], pa.string())).to_pylist() == []
    assert source.requests == []


def test_ranges_read_only_their_blocks(content: bytes) -> None:
    source = CountingSource(content)
    reader = HFileReader(source, path="big")
    opened = source.bytes_read
    prefix = KEYS[COUNT // 3].as_py()[:7].encode()
    expected = [key.encode() for key in KEYS.to_pylist() if key.encode().startswith(prefix)]
    assert reader.get_range(prefix, prefix + b"g")[0].to_pylist() == expected
    start, stop = (KEYS[place].as_py().encode() for place in (700, 720))
    keys, values = reader.get_range(start, stop)
    assert (keys.equals(KEYS[700:720].cast(pa.binary())), values.equals(VALUES[700:720])) == (True, True)
    assert source.bytes_read - opened <= 4 * 66_000


def test_an_index_that_does_not_fit_the_first_request_is_read_with_a_second_one() -> None:
    keys = pa.array([f"{number:06d}" + "k" * 3000 for number in range(1500)])
    source = CountingSource(hfile_to_bytes(keys, keys.cast(pa.binary()), schema_json="{}", codec=Compression.NONE))
    reader = HFileReader(source, path="big")
    assert len(source.requests) == 2
    assert reader.get(keys[777].as_py().encode()) == keys[777].as_py().encode()


def test_inner_levels_of_an_index_are_read_when_they_are_needed() -> None:
    name = "hudi_1_0_hbase_2_4_13_1KB_GZ_10000_large_keys_deep_index.hfile"
    source = CountingSource((GOLDEN / name).read_bytes())
    reader = HFileReader(source, path=name)
    opened = source.bytes_read
    key = b"hudi-key-" + b"a" * 100 + b"-000004711"
    assert reader.get(key) == b"hudi-value-000004711"
    assert source.bytes_read - opened < 10_000
    assert len(reader.get_range(key[:-2], key)[0]) == 11


def test_buffers_are_not_copied(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "f.hfile"
    path.write_bytes(b"head" + content)
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        view = memoryview(mapped)[4:]
        reader = HFileReader(view, path="mapped")
        assert reader.get(KEYS[77].as_py().encode()) == VALUES[77].as_py()
        del reader
        view.release()
    for buffer in (content, bytearray(content), pa.py_buffer(content)):
        assert len(HFileReader(buffer, path="buffer")) == COUNT
    assert BufferSource(content).read(3, 5).obj is content


def test_a_source_that_gives_too_little_is_told() -> None:
    class Short(CountingSource):
        def read(self, offset: int, length: int) -> bytes:
            return super().read(offset, length)[:-1]

    with pytest.raises(CorruptFileError, match="expected 4192 bytes, found 4191"):
        HFileReader(Short(bytes(4192)), path="short")


@pytest.mark.parametrize("kind", ["one length", "some lengths", "many lengths", "values like row ends"])
def test_uncompressed_blocks_are_parsed_where_they_lie(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    lengths = {"some lengths": 3, "many lengths": 40}.get(kind, 1)
    row_end = b"\0\x7f" + b"\xff" * 7 + b"\x04"
    value = row_end if kind == "values like row ends" else b"value"
    keys = pa.array([f"{number:07d}" + "k" * (number * 7 % lengths) for number in range(70_000)])
    values = pa.array([value * (number % 3) for number in range(70_000)], pa.binary())
    content = hfile_to_bytes(keys, values, schema_json="{}", codec=Compression.NONE)
    monkeypatch.setattr(Payloads, "copied", lambda *_: pytest.fail("copied"))
    reader = HFileReader(content, path="big")
    assert reader.block_count > 16
    assert reader.entries()[0].equals(keys.cast(pa.binary()))
    assert reader.get_many(keys).equals(values)


@pytest.mark.parametrize(
    "place", ["magic", "stored", "payload", "previous", "kind", "chunk", "checked", "zeros", "entry"]
)
def test_damage_of_blocks_that_are_parsed_where_they_lie(place: str) -> None:
    keys = pa.array([f"{number:07d}" for number in range(60_000)])
    content = bytearray(hfile_to_bytes(keys, keys.cast(pa.binary()), schema_json="{}", codec=Compression.NONE))
    start = content.index(b"DATABLK*", 500_000)
    end = content.index(b"DATABLK*", start + 1)
    before = {"magic": 0, "stored": 8, "payload": 12, "previous": 16, "kind": 24, "chunk": 25, "checked": 29}
    damaged = {**before, "zeros": end - start - 1, "entry": 33 + 40}[place]
    content[start + damaged] ^= 0x40
    for call in (HFileReader.entries, lambda reader: reader.get_many(keys[::9])):
        with pytest.raises(CorruptFileError) as caught:
            call(HFileReader(bytes(content), path="big"))
        # An entry is told with the first block of those that were read together.
        assert caught.value.offset == start
