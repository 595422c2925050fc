"""Count the keys of rows that are to be adopted, before anything is written: partitions, duplicates, wrong keys.

Only key and partition columns are read. Keys are compared by a hash of 64 bits first. If a hash occurs twice, the keys
are read again, and those with such a hash are compared themselves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.engine import LocalEngine, TaskContext
from hoodie.errors import HoodieError
from hoodie.records.keys.key_generator import KeyGenerator
from hoodie.records.keys.sorting import spread
from hoodie.storage import open_store
from hoodie.write.adopting.source_files import SourceFile
from hoodie.write.adopting.source_rows import SourceRows

_Hashes = npt.NDArray[np.uint64]
_EXAMPLES: Final = 3
_HASHES_AT_ONCE: Final = 32 * 1024 * 1024
"""Rows whose hashes are held in memory, eight bytes each; a pass over the key columns serves so many rows."""
_KEYS_AT_ONCE: Final = 4 * 1024 * 1024
"""Hashes that occur twice and whose keys are held in memory; each pass over the key columns serves so many."""
_REFUSED_MAX: Final = 20
_JOINT: Final = "\0"
"""Between partition path and key: no partition path has it."""


@dataclass(slots=True)
class KeyScan:
    """What the keys of all rows are. `duplicates`: rows whose key an earlier row has; None without key columns."""

    partitions: Counter[str] = field(default_factory=Counter)
    """Rows by partition path."""
    duplicates: int | None = None
    examples: tuple[str, ...] = ()
    """Keys that occur twice; in a table whose keys are unique in a partition only, after the partition path."""
    refused: tuple[str, ...] = ()
    """Why rows of files cannot be written; nothing was counted in these files."""


def scan_keys(rows: SourceRows, generator: KeyGenerator, *, is_global: bool) -> KeyScan:
    """Read the key and partition columns of all rows. `is_global`: a key is unique in the whole table.

    Memory: 256 MiB of hashes, and the keys of up to four million hashes that occur twice.
    """
    fields = (*generator.record_key_fields, *generator.partition_fields)
    names = list(dict.fromkeys(name.split(".")[0] for name in fields))
    reader = _Reader(rows.of_columns(names), generator, is_global=is_global)
    scan = KeyScan()
    count = sum(file.rows for file in rows.files)
    ranges = max(1, -(-count // _HASHES_AT_ONCE)) if generator.record_key_fields else 1
    twice: list[_Hashes] = []
    for number in range(ranges):
        parts = reader.hashes(number, ranges)
        if number == 0:
            scan.partitions = sum((part.partitions for part in parts), Counter())
            scan.refused = tuple(reason for part in parts for reason in part.refused)[:_REFUSED_MAX]
        twice.append(_repeated([found for part in parts for found in part.hashes]))
    if generator.record_key_fields:
        scan.duplicates, scan.examples = _count(reader, np.sort(np.concatenate(twice)))
    return scan


def _count(reader: _Reader, twice: _Hashes) -> tuple[int, tuple[str, ...]]:
    """Return the number of rows whose key an earlier row has, and a few of these keys."""
    count, examples = 0, []
    for start in range(0, len(twice), _KEYS_AT_ONCE):
        counts = _counted(reader.keys_of(twice[start : start + _KEYS_AT_ONCE]))
        repeated = counts.filter(pc.greater(counts["rows"], 1))
        count += int(pc.sum(pc.subtract(repeated["rows"], 1)).as_py() or 0)
        examples += repeated["key"].slice(0, _EXAMPLES).to_pylist()
    return count, tuple(text.replace(_JOINT, " ") for text in sorted(examples)[:_EXAMPLES])


def _repeated(hashes: Sequence[_Hashes]) -> _Hashes:
    """Return the hashes that occur twice. Each thread sorts a range of them."""

    def work(number: int, _context: TaskContext) -> _Hashes:
        ordered = np.concatenate([np.empty(0, np.uint64), *(_in_range(found, number, count) for found in hashes)])
        ordered.sort()
        return np.unique(ordered[1:][ordered[1:] == ordered[:-1]])

    count = LocalEngine().parallelism
    return np.concatenate(LocalEngine().run(work, range(count)))


def _in_range(hashes: _Hashes, number: int, count: int) -> _Hashes:
    """Return the hashes in one of `count` equal ranges of all hashes."""
    width = -(-(1 << 64) // count)
    return hashes if count == 1 else hashes[hashes // np.uint64(width) == number]


def _counted(keys: Sequence[pa.Table]) -> pa.Table:
    empty = pa.table({"key": pa.array([], pa.string()), "rows": pa.array([], pa.int64())})
    found = pa.concat_tables([empty, *keys]).group_by("key").aggregate([("rows", "sum")])
    return found.rename_columns(["key", "rows"])


@dataclass(slots=True)
class _Part:
    """What one thread found in its files."""

    partitions: Counter[str] = field(default_factory=Counter)
    hashes: list[_Hashes] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads the key columns of all files on threads, any number of times."""

    rows: SourceRows
    generator: KeyGenerator
    is_global: bool = field(kw_only=True)

    def hashes(self, number: int, ranges: int) -> list[_Part]:
        """Count partitions and return the hashes of all keys in one of equal ranges of hashes."""

        def work(files: Sequence[SourceFile], _context: TaskContext) -> _Part:
            part = _Part()
            for file in files:
                try:
                    partitions, hashes = self._of_file(file, number, ranges)
                except HoodieError as error:
                    where = open_store(self.rows.store).uri(file.path)
                    part.refused.append(str(error) if where in str(error) else f"{where}: {error}")
                    continue
                part.partitions += partitions
                part.hashes += hashes
            return part

        return LocalEngine().run(work, self._groups())

    def keys_of(self, hashes: _Hashes) -> list[pa.Table]:
        """Return the keys with these hashes, which ascend, and the number of rows of each; per thread."""

        def work(files: Sequence[SourceFile], _context: TaskContext) -> pa.Table:
            found: list[pa.Table] = []
            held = 0
            for file in files:
                for keys, paths in self._keys(file):
                    mask = _contains(hashes, self._hash(keys, paths))
                    if mask.any():
                        counts = pc.value_counts(self._text(keys, paths).filter(pa.array(mask)))
                        found.append(pa.table({"key": counts.field("values"), "rows": counts.field("counts")}))
                        held += len(counts)
                    if held > _KEYS_AT_ONCE:
                        found = [_counted(found)]
                        held = 0
            return _counted(found)

        return LocalEngine().run(work, self._groups())

    def _groups(self) -> list[list[SourceFile]]:
        """Return the files for each thread; several for each core, as files differ in size."""
        count = max(1, min(len(self.rows.files), 4 * LocalEngine().parallelism))
        return [list(self.rows.files[start::count]) for start in range(count)]

    def _of_file(self, file: SourceFile, number: int, ranges: int) -> tuple[Counter[str], list[_Hashes]]:
        partitions: Counter[str] = Counter()
        found: list[_Hashes] = []
        for keys, paths in self._keys(file):
            counts: Mapping[str, int] = {row["values"]: row["counts"] for row in pc.value_counts(paths).to_pylist()}
            partitions.update(counts)
            if keys is not None:
                hashes = self._hash(keys, paths)
                found.append(_in_range(hashes, number, ranges))
        return partitions, found

    def _keys(self, file: SourceFile) -> Iterator[tuple[Any, pa.StringArray]]:
        """Return the record keys (None without key columns) and the partition paths of each batch of a file."""
        if not self.rows.schema.names:
            for rows, _ in file.row_groups:
                yield None, pa.repeat(pa.scalar("", pa.string()), rows)
            return
        for batch in self.rows.of_file(file):
            keys = self.generator.record_keys(batch) if self.generator.record_key_fields else None
            yield keys, self.generator.partition_paths(batch)

    def _hash(self, keys: pa.StringArray, paths: pa.StringArray) -> _Hashes:
        hashes = _spread64(keys)
        if self.is_global or not self.generator.partition_fields:
            return hashes
        coded = paths.dictionary_encode()
        of_paths: _Hashes = _spread64(coded.dictionary) * np.uint64(0x9E3779B97F4A7C15)
        mixed: _Hashes = hashes ^ of_paths[np.asarray(coded.indices)]
        return mixed

    def _text(self, keys: pa.StringArray, paths: pa.StringArray) -> pa.StringArray:
        if self.is_global or not self.generator.partition_fields:
            return keys
        return pc.binary_join_element_wise(paths, keys, _JOINT)


def _spread64(keys: pa.StringArray) -> _Hashes:
    """Return a hash of 64 bits per key: the hashes of its characters forwards and backwards."""
    try:
        backwards = pc.ascii_reverse(keys)
    except pa.ArrowInvalid:  # not ASCII
        backwards = pc.utf8_reverse(keys)
    hashes: _Hashes = spread(keys).astype(np.uint64) << np.uint64(32) | spread(backwards)
    return hashes


def _contains(hashes: _Hashes, wanted: _Hashes) -> npt.NDArray[np.bool_]:
    """Return which of `wanted` are among `hashes`, which ascend."""
    if not len(hashes):
        return np.zeros(len(wanted), np.bool_)
    places = np.minimum(np.searchsorted(hashes, wanted), len(hashes) - 1)
    found: npt.NDArray[np.bool_] = hashes[places] == wanted
    return found
