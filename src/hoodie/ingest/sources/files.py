"""Files of a folder, by the time of their last change: each file once, as in Hudi's DFS sources."""

from __future__ import annotations

import fnmatch
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby
from typing import Any, Final, Literal

import pyarrow as pa

from hoodie.errors import InvalidConfigError, SourceError, UnsupportedError
from hoodie.ingest.options import check_types, require, text_of
from hoodie.ingest.rows.files import RowFile, endings
from hoodie.ingest.rows.many_files import read_files
from hoodie.ingest.rows.rules import InputOptions
from hoodie.ingest.rows.spark_files import SparkRead
from hoodie.ingest.source import Batch, Request
from hoodie.ingest.sources.taken_files import FileList, Removal, is_hidden, lists_in, write_list
from hoodie.storage import FileInfo, Store, has_folder, open_store

_ENDINGS: Final = {
    ".parquet": "parquet",
    **dict.fromkeys((".json", ".jsonl", ".ndjson"), "json"),
    ".csv": "csv",
    ".avro": "avro",
    ".orc": "orc",
}
_OWN_OPTIONS: Final = frozenset({"mode", "columnnameofcorruptrecord"})
_PLACE: Final = re.compile(r"-?\d{1,19}")
_SHOWN: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """Files of a folder on any storage, in the order of their change times and paths. docs/ingest/README.md: the keys.

    The place is the greatest change time that was read, in epoch milliseconds as text: Hudi's checkpoint, so that a JVM
    job can go on. A batch has all files of a millisecond, or none. Two kinds of files are never read, because their
    change time is not after the place: a file that was copied with its old time, and a file that becomes visible
    later than `lag_seconds` after its change time, such as an upload in parts to S3, whose time is the begin of the
    upload. `after="archive"` and `after="delete"` read such files too: there, every file of the folder is unread.
    Both need a folder that no other flow reads. A file that is changed after its read is read again, as a whole.

    `limit` of a request is the most files of a batch; its first millisecond may have more. Lines of CSV and JSON that
    do not parse, or do not fit, are bad rows. Memory in process: as `read_files`.
    """

    path: str
    pattern: str | None = None
    format: Literal["parquet", "json", "csv", "avro", "orc"] | None = None
    storage_options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    recursive: bool = True
    lag_seconds: float = 1.0
    bytes_max: int | None = None
    after: Literal["leave", "archive", "delete"] = "leave"
    archive: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    null_texts: Sequence[str] = ()
    new_columns: bool = True

    def __post_init__(self) -> None:
        check_types(self)
        require(bool(self.path), "path", "a path or URI", self.path)
        require(self.pattern != "", "pattern", "a glob of file names, such as *.csv", self.pattern)
        require(self.lag_seconds >= 0, "lag_seconds", "seconds, 0 or more", self.lag_seconds)
        is_size = self.bytes_max is None or self.bytes_max > 0
        require(is_size, "bytes_max", "a number of bytes, 1 or more", self.bytes_max)
        own = sorted(name for name in self.options if name.lower() in _OWN_OPTIONS)
        if own:
            raise InvalidConfigError(
                f"options: expected none of {', '.join(own)}: bad rows of a flow are divided by it"
            )
        if (self.after == "archive") != (self.archive is not None):
            raise InvalidConfigError(
                f"archive: expected a folder with after='archive' and none else, found after={self.after!r} and "
                f"archive={self.archive!r}"
            )
        Removal(self._store(), self.archive).check()

    def plan(self, request: Request) -> Batch | None:
        """Return the next batch; None if no file is new. One listing of the folder; 10,000 files take about 0.3 s.

        With `after="archive"` or `"delete"`, the files of a batch that was committed by a process that died leave now;
        with `request.is_look` they stay, and are left out.

        Raises: SourceError if the place is no time, or files have no known format, or several; UnsupportedError for a
        format that needs Spark, or a store that Spark cannot read; StorageError.
        """
        place, store = _parsed(request.after), self._store()
        if request.spark is not None and store.spec.is_private:
            raise UnsupportedError(
                f"path: expected files that Spark can read, found {self.path}: run the flow in process"
            )
        if request.spark is None and self.options:
            raise InvalidConfigError(
                f"options: expected none in process, found {', '.join(self.options)}: Spark has them"
            )
        # Before the listing: a file that appears while it runs may be older than files that it returns.
        now_ms = time.time() * 1000
        listed = self._listed(store)
        if self.after != "leave":
            return self._taken(store, listed, place, now_ms, request)
        newer = [info for info in listed if place is None or info.modified_ms > place]
        choice = self._choice(self._wanted(newer), request.limit, now_ms)
        return self._batch(store, choice, choice.files[-1].modified_ms, request) if choice.read else None

    def _taken(
        self, store: Store, listed: Sequence[FileInfo], place: int | None, now_ms: float, request: Request
    ) -> Batch | None:
        """Plan a batch of a folder whose files leave it."""
        removal, lists = Removal(store, self.archive), lists_in(store, listed)
        for done in lists:
            if done.place == place:
                if not request.is_look:
                    removal.finish(done, listed)
                gone = {*done.files}
                listed = [info for info in listed if info not in gone]
            elif place is not None and done.place < place and not request.is_look:
                store.delete(done.name)
        now, wanted = {*listed}, self._wanted(listed)
        begun = [one for one in lists if one.before == place and one.place != place and now.issuperset(one.files)]
        if begun:
            taken = begun[-1]
            is_taken = {*taken.files}
            left = tuple(info for info in wanted if info.size_bytes and info not in is_taken)
            choice = _Choice(taken.files, left, now_ms)
        else:
            choice = self._choice(wanted, request.limit, now_ms)
            if not choice.read:
                return None
            # A place that no other list has: see `taken_files`.
            last = choice.files[-1].modified_ms
            new_place = max(last, *(one.place + 1 for one in lists), last if place is None else place + 1)
            taken = FileList(place, new_place, choice.files)
        batch = self._batch(store, choice, taken.place, request)
        if request.is_look:
            return batch

        def read() -> Any:
            write_list(store, taken)
            return batch.read()

        def leave() -> None:
            removal.finish(taken, self._listed(store))

        return replace(batch, read=read, after_commit=leave)

    def _listed(self, store: Store) -> list[FileInfo]:
        """List the folder. The files have no tags: those of a stored list have none.

        Raises: SourceError if there is no such folder on a local disk; an object store has no folders without files.
        """
        listed = [info._replace(tag=None) for info in store.list("", recursive=self.recursive)]
        if not listed and not has_folder(store):
            raise SourceError(f"path: expected a folder, found none at {store.spec.uri}: create it, or correct path")
        return listed

    def _wanted(self, listed: Sequence[FileInfo]) -> list[FileInfo]:
        """Return the files that are no hidden files, and have the right name, in the order of their reads."""
        pattern = self.pattern
        found = [
            info
            for info in listed
            if not is_hidden(info.path) and (pattern is None or fnmatch.fnmatchcase(info.name, pattern))
        ]
        return sorted(found, key=lambda info: (info.modified_ms, info.path))

    def _choice(self, wanted: Sequence[FileInfo], limit: int | None, now_ms: float) -> _Choice:
        """Choose the first files, whole milliseconds only, that are not too young."""
        old = [info for info in wanted if info.modified_ms <= now_ms - self.lag_seconds * 1000]
        chosen: list[FileInfo] = []
        count = size = 0
        for _, group in groupby(old, lambda info: info.modified_ms):
            same = [*group]
            is_first = not count
            count += sum(info.size_bytes > 0 for info in same)
            size += sum(info.size_bytes for info in same)
            is_full = (limit is not None and count > limit) or (self.bytes_max is not None and size > self.bytes_max)
            if is_full and not is_first:
                break
            chosen += same
        return _Choice(tuple(chosen), tuple(info for info in wanted[len(chosen) :] if info.size_bytes), now_ms)

    def _batch(self, store: Store, choice: _Choice, place: int, request: Request) -> Batch:
        files, left = choice.read, choice.left
        size = sum(info.size_bytes for info in files)
        return Batch(
            place=str(place),
            read=self._reading(store, files, request),
            about=f"{len(files)} files of {size:,} bytes in {self.path}, {len(left)} files are left",
            lag_seconds=max(0.0, (choice.now_ms - left[0].modified_ms) / 1000) if left else 0.0,
            notes=choice.notes(),
        )

    def _reading(self, store: Store, infos: Sequence[FileInfo], request: Request) -> Callable[[], Any]:
        found = self.format or _only_format(store, infos)
        files = [
            RowFile(
                name=store.uri(info.path),
                kind=f".{found}",
                ending=endings(info.path)[1],
                open=partial(store.open_input, info.path),
                size_bytes=info.size_bytes,
            )
            for info in infos
        ]
        types = request.schema if request.schema is not None else pa.schema([])
        ignores_others = not self.new_columns and bool(types.names)
        rules = InputOptions(types=types, ignores_others=ignores_others, null_texts=tuple(self.null_texts))
        if request.spark is None:
            if found == "orc":
                raise UnsupportedError("format: ORC files are read by Spark only: give the flow a Spark session")
            return lambda: read_files(files, rules)
        if found == "csv" and len(rules.null_texts) > 1:
            raise UnsupportedError(f"null_texts: Spark accepts one text, found {list(rules.null_texts)}")
        options = {name: text_of(value) for name, value in self.options.items()}
        return SparkRead(session=request.spark, format=found, files=files, options=options, rules=rules).rows

    def _store(self) -> Store:
        return open_store(self.path, self.storage_options)


@dataclass(frozen=True, slots=True)
class _Choice:
    """The files of a batch in their order, with files without content, and the files behind the batch."""

    files: tuple[FileInfo, ...]
    left: tuple[FileInfo, ...]
    now_ms: float

    @property
    def read(self) -> list[FileInfo]:
        return [info for info in self.files if info.size_bytes]

    def notes(self) -> tuple[str, ...]:
        empty = [info.path for info in self.files if not info.size_bytes]
        later = [info.path for info in self.left if info.modified_ms > self.now_ms]
        notes = []
        if empty:
            notes.append(f"{len(empty)} files without content are not read: {_shown(empty)}")
        if later:
            found = f"{len(later)} files have a change time after now"
            notes.append(f"{found}, and are left until then: {_shown(later)}; check the clocks")
        return tuple(notes)


def _only_format(store: Store, infos: Sequence[FileInfo]) -> str:
    first: dict[str, FileInfo] = {}
    for info in infos:
        found = _ENDINGS.get(endings(info.path)[0])
        if found is None:
            raise SourceError(
                f"{store.uri(info.path)}: expected a name that ends with one of {', '.join(_ENDINGS)}; set format, or "
                "set pattern so that this file is not read"
            )
        first.setdefault(found, info)
    if len(first) > 1:
        one, other, *_ = (store.uri(info.path) for info in first.values())
        raise SourceError(f"expected files of one format, found {one} and {other}; set pattern, with one flow each")
    return next(iter(first))


def _parsed(place: str | None) -> int | None:
    if place is None:
        return None
    if not _PLACE.fullmatch(place):
        raise SourceError(
            f"the place is {place[:100]!r}: expected a time in epoch milliseconds, such as '1700000000000'; it may be "
            "the place of another kind of source: start the flow with a place of its own"
        )
    return int(place)


def _shown(paths: Sequence[str]) -> str:
    return ", ".join(paths[:_SHOWN]) + (", …" if len(paths) > _SHOWN else "")
