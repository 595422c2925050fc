"""Find damaged files of metadata partitions: read trailers, indexes and block heads, and small files whole.

docs/format/metadata.md §1.8, §2. A changed byte in a data block of a larger file is found when the block is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from hoodie.engine import LocalEngine, TaskContext
from hoodie.errors import CorruptFileError
from hoodie.files.logs.log_scan import FoundBlock, ScanRule, scan_blocks
from hoodie.files.slices import BaseFile, FileSlice, LogFile
from hoodie.format.hfile import HFileReader
from hoodie.format.log.delete_block import DeleteRecords
from hoodie.format.log.log_block import BlockType
from hoodie.metadata.places import METADATA_COMMITS
from hoodie.metadata.stored_file import StoredFile
from hoodie.storage import Store

_WHOLE_BYTES: Final = 128 * 1024
"""Opening an HFile reads so many bytes of its end: of a smaller file, all entries are checked with the same request."""
_RULE: Final = ScanRule(commits=METADATA_COMMITS)


def damaged_files(store: Store, slices: Iterable[FileSlice]) -> Iterator[tuple[str, str]]:
    """Yield the paths of damaged or missing files of these slices, each with what is wrong.

    Costs two or three requests for each file, several files at once. Memory: the index of an HFile, or 4 MiB of a log
    file, for each thread.
    """
    files: list[BaseFile | LogFile] = []
    for found in slices:
        files += [found.base_file] if found.base_file is not None else []
        files += found.log_files

    def check(file: BaseFile | LogFile, _context: TaskContext) -> str:
        try:
            _check_base(store, file) if isinstance(file, BaseFile) else _check_log(store, file)
        except CorruptFileError as error:
            return str(error)
        return ""

    for file, problem in zip(files, LocalEngine().run(check, files), strict=True):
        if problem:
            yield file.path, problem


def _check_base(store: Store, file: BaseFile) -> None:
    """Raises: CorruptFileError."""
    _check_hfile(StoredFile(store, file.path, file.size_bytes), store.uri(file.path))


def _check_log(store: Store, file: LogFile) -> None:
    """Raises: CorruptFileError, also for torn blocks, unless a failed attempt at a delta commit left the file."""
    for block in scan_blocks(store, (file,), _RULE):
        if block.block_type is BlockType.HFILE_DATA:
            _check_block(store, block)
        elif block.block_type is BlockType.DELETE:
            content = block.read(store).content
            DeleteRecords.parse(content, path=store.uri(block.path), offset=block.place.content_offset)


def _check_block(store: Store, block: FoundBlock) -> None:
    place = block.place
    _check_hfile(StoredFile(store, block.path, place.content_bytes, place.content_offset), store.uri(block.path))


def _check_hfile(source: StoredFile, where: str) -> None:
    """Parse trailer and index, and all entries if they were read with them."""
    if source.size > _WHOLE_BYTES:
        HFileReader(source, path=where)
        return
    content = source.read(0, source.size)
    if len(content) != source.size:
        raise CorruptFileError(f"expected {source.size} bytes, found {len(content)}", path=where)
    for _ in HFileReader(content, path=where).batches():
        pass
