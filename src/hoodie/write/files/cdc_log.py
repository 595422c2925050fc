"""Log what the rewrite of a base file changed, in tables with change data capture (docs/format/table.md §4.8)."""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa

from hoodie.files.logs.log_file import LogFileWriter
from hoodie.files.markers import write_marker
from hoodie.files.slices import join_path
from hoodie.format.filenames import CDC_SUFFIX, IoType, LogFileName
from hoodie.format.log.cdc_block import CdcOperation, cdc_block
from hoodie.format.schema.arrow_types import blanks
from hoodie.storage import Store
from hoodie.write.files.context import CdcOptions

_VERSION = 1


@dataclass(slots=True)
class CdcLog:
    """The CDC log file of one new base file, a context manager. The first block creates the file. Memory: one block.

    Every rewritten base file has such a log file, even if nothing changed: JVM Hudi raises an error without it.
    """

    store: Store
    options: CdcOptions
    instant_time: str
    partition_path: str
    file_id: str
    token: str
    _writer: LogFileWriter | None = None
    _waiting: list[tuple[pa.Array, pa.Array, pa.StructArray, pa.StructArray]] = field(default_factory=list)
    _waiting_bytes: int = 0

    def __enter__(self) -> CdcLog:
        return self

    def __exit__(self, kind: type[BaseException] | None, *details: object) -> None:
        if kind is None and (self._waiting or self._writer is None):
            self._flush()
        if self._writer is not None:
            self._writer.__exit__(kind, *details)

    @property
    def sizes(self) -> dict[str, int]:
        """The path of the file and its size in bytes, after the end of the context."""
        return {} if self._writer is None else {self._writer.path: self._writer.size_bytes}

    def add(self, operation: CdcOperation, keys: pa.Array, before: pa.Table | None, after: pa.Table | None) -> None:
        """Log changes; row n of `before` and `after` has key n. An insert has no rows before, a delete none after."""
        if not len(keys):
            return
        images = [self._image(rows, len(keys)) for rows in (before, after)]
        self._waiting.append((pa.repeat(pa.scalar(str(operation)), len(keys)), keys, *images))
        self._waiting_bytes += keys.nbytes + sum(image.nbytes for image in images)
        if self._waiting_bytes >= self.options.block_bytes_max:
            self._flush()

    def _image(self, rows: pa.Table | None, count: int) -> pa.StructArray:
        fields = list(self.options.schema)
        if rows is None:
            return blanks(pa.struct(fields), count, is_null=True)
        columns = [rows[child.name].combine_chunks() for child in fields]
        return pa.StructArray.from_arrays(columns, fields=fields)

    def _flush(self) -> None:
        """Write the waiting changes as a block; the first block creates the file, after its marker."""
        if self._writer is None:
            name = LogFileName(self.file_id, self.instant_time, _VERSION, self.token, CDC_SUFFIX).name
            path = join_path(self.partition_path, name)
            write_marker(self.store, self.instant_time, path, IoType.CREATE)
            self._writer = LogFileWriter(self.store, path)
        image = pa.struct(list(self.options.schema))
        kinds = (pa.string(), pa.string(), image, image)
        columns = list(zip(*self._waiting, strict=True)) or [()] * len(kinds)
        whole = [pa.chunked_array(parts, kind).combine_chunks() for parts, kind in zip(columns, kinds, strict=True)]
        block = cdc_block(*whole, instant_time=self.instant_time, avro_schema=self.options.avro_schema)
        self._writer.write(block)
        self._waiting.clear()
        self._waiting_bytes = 0
