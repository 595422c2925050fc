"""The bloom filter in the footer of a base file, as the metadata table stores it."""

from __future__ import annotations

from dataclasses import dataclass

from hoodie.engine import TaskContext
from hoodie.files.base_file import open_base_file
from hoodie.files.slices import BaseFile
from hoodie.format.hashes.bloom import FOOTER_KEY, TYPE_FOOTER_KEY, BloomFilter, BloomFilterType
from hoodie.format.metadata_table.filter_row import FilterRow
from hoodie.storage import StoreSpec, open_store


@dataclass(frozen=True, slots=True)
class ReadFilter:
    """Callable for `Engine.run`: the filter of one base file. A file without one has the filter of every key."""

    store: StoreSpec

    def __call__(self, file: BaseFile, _context: TaskContext) -> FilterRow:
        with open_base_file(open_store(self.store), file) as (parquet, _):
            footer = parquet.metadata.metadata or {}
        text = footer.get(FOOTER_KEY.encode())
        if text is None:
            saturated = BloomFilter.saturated()
            return FilterRow(saturated.filter_type.value, file.instant_time, saturated.to_base64().encode())
        code = footer.get(TYPE_FOOTER_KEY.encode(), BloomFilterType.SIMPLE.value.encode())
        return FilterRow(code.decode(), file.instant_time, text)
