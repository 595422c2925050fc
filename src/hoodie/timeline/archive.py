"""The archived timeline of table versions 8 and 9: instants that the active timeline no longer lists.

The archive is a folder of Parquet files in layers (an LSM tree) and of manifests that list the valid files. On-disk
format: docs/format/table.md §2.7. Writers must hold the table's lock; readers need no lock.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from hoodie.config import retention
from hoodie.errors import CommitConflictError, CorruptFileError
from hoodie.format.instants.archive import (
    MANIFEST_PREFIX,
    VERSION_FILE,
    ArchivedInstant,
    ArchiveFile,
    ArchiveFileName,
    ArchiveManifest,
    archived_to_bytes,
    completion_times,
    manifest_name,
    manifest_version,
    merged_to_bytes,
    parse_archived,
    requested_range,
)
from hoodie.storage import Store
from hoodie.timeline.instant import Action
from hoodie.timeline.layout import Layout

_T = TypeVar("_T")

_LAYER_MAX = 9
# The file name has one digit for the layer.


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveLimits:
    """When files of the archive are merged, and how many of its snapshots are kept.

    `layer_files`: files of one layer that are merged into one file of the next layer. `manifests`: snapshots whose
    files are kept. `file_bytes`: a larger file is not merged any more; this bounds the memory of a merge.
    """

    layer_files: int = retention.ARCHIVE_LAYER_FILES.default
    manifests: int = retention.ARCHIVE_MANIFESTS.default
    file_bytes: int = retention.ARCHIVE_FILE_BYTES.default

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> ArchiveLimits:
        """Return the limits that these properties define. Raises: InvalidConfigError if a value does not parse."""
        return cls(
            layer_files=retention.ARCHIVE_LAYER_FILES.get(properties),
            manifests=retention.ARCHIVE_MANIFESTS.get(properties),
            file_bytes=retention.ARCHIVE_FILE_BYTES.get(properties),
        )


class Fence(Protocol):
    """The table's lock while a writer holds it, for changes that a writer without the lock must not make."""

    def ensure_held(self) -> None:
        """Raise CommitConflictError if the lock was lost."""

    def create_last(self, path: str, content: bytes, /) -> None:
        """Write a file in one atomic step that fails if the lock was lost before the step."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One state of the archive: the number of its manifest (0: no manifest exists yet) and the manifest."""

    version: int
    manifest: ArchiveManifest


@dataclass(frozen=True, slots=True)
class TimelineArchive:
    """The archive in one folder, `.hoodie/timeline/history` of a table.

    `names_are_ranges`: all instants of a file are between the two of its name. Not if JVM Hudi upgraded the table from
    version 6: then the range of a file comes from its footer, which is read once.
    """

    store: Store
    folder: str
    names_are_ranges: bool = True
    _ranges: dict[str, ArchiveFileName] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def of(
        cls, store: Store, layout: Layout, *, history_path: str = "history", names_are_ranges: bool = True
    ) -> TimelineArchive:
        """Return the archive of a timeline; `history_path` is from hoodie.properties."""
        return cls(store, f"{layout.instant_folder()}/{history_path}", names_are_ranges)

    def snapshot(self) -> Snapshot:
        """Return the newest snapshot; it is empty if nothing was archived yet.

        Raises: CorruptFileError if the manifest is missing or does not parse, or the version file contains no number.
        """
        version = self._version()
        if version == 0:
            return Snapshot(0, ArchiveManifest())
        return Snapshot(version, self._manifest(version))

    def append(self, instants: Sequence[ArchivedInstant], fence: Fence | None = None) -> None:
        """Add instants and skip those that are archived already. Readers see them when this function returns.

        `fence` is the table's lock, which the caller holds; without it nothing else may change the archive.

        Raises: CommitConflictError if another process changes the archive at the same time.
        """
        if not instants:
            return
        ordered = sorted(instants, key=lambda instant: (instant.requested_time, instant.action))
        known = self.snapshot()
        first, last = ordered[0].requested_time, ordered[-1].requested_time
        overlapping = [file for file in known.manifest.files if self._ranged(file).may_have(first, last)]
        # A writer that stopped between archiving instants and deleting their files leaves the deletion to the next
        # writer, which archives the same instants again.
        there = {key for file in overlapping for key in self._completions_in(file)}
        added = [instant for instant in ordered if (instant.requested_time, instant.action) not in there]
        if not added:
            return
        name = ArchiveFileName(added[0].requested_time, added[-1].requested_time).name
        if _lists(known, name):
            raise CorruptFileError(
                f"expected in it the instants {added[0].requested_time} and {added[-1].requested_time}, found others",
                path=self._uri(name),
            )
        data = archived_to_bytes(added)
        self.store.replace(self._path(name), data)
        self._publish(known.version + 1, (*known.manifest.files, ArchiveFile(name, len(data))), fence)

    def compact(self, limits: ArchiveLimits | None = None, fence: Fence | None = None) -> None:
        """Merge layers that have too many files, and delete files that only old snapshots list.

        Memory: the rows of the files that are merged, at most twice `file_bytes` as stored.

        Raises: as `append`.
        """
        limits = limits or ArchiveLimits()
        known = self.snapshot()
        merged = 0
        for layer in range(_LAYER_MAX):
            batch = _to_merge(known.manifest.files, layer, limits)
            if not batch:
                break
            data = merged_to_bytes((self.store.read(self._path(file.name)) for file in batch), path=self.folder)
            first, last = requested_range(pq.ParquetFile(pa.BufferReader(data))) or ("", "")
            name = ArchiveFileName(first, last, layer + 1).name
            if _lists(known, name):
                # Readers use that file. The next batch has another range.
                break
            self.store.replace(self._path(name), data)
            kept = (*(file for file in known.manifest.files if file not in batch), ArchiveFile(name, len(data)))
            self._publish(known.version + 1, kept, fence)
            known = Snapshot(known.version + 1, ArchiveManifest(kept))
            merged += 1
        self._clean(limits.manifests + merged, fence)

    def give_up_damaged(self, fence: Fence | None = None) -> list[str]:
        """Publish a snapshot of the files that can be read; return the names of the others, or of a damaged manifest.

        Without a manifest that can be read, the files in the folder count, except files whose instants are all in a
        higher layer. Reads every file.
        """
        damaged = []
        try:
            listed = [file.parsed_name for file in self.snapshot().manifest.files]
        except CorruptFileError as error:
            damaged.append(error.path.rpartition("/")[2])
            found = (ArchiveFileName.parse(info.name) for info in self.store.list(self.folder))
            listed = [parts for parts in found if parts is not None]
        whole = []
        for parts in listed:
            if self.names_are_ranges and any(parts.layer < other.layer and _covers(other, parts) for other in listed):
                continue
            try:
                data = self.store.read(self._path(parts.name))
                completion_times(data, path=self._path(parts.name))
                whole.append(ArchiveFile(parts.name, len(data)))
            except (FileNotFoundError, CorruptFileError):
                damaged.append(parts.name)
        if damaged:
            self._publish(max(self._versions(), default=0) + 1, tuple(whole), fence)
        return damaged

    def newest_time(self) -> str:
        """Return the greatest requested time of the archived instants; empty if nothing is archived."""
        return max((self._ranged(file).last_time for file in self.snapshot().manifest.files), default="")

    def ranged(self, file: ArchiveFile) -> ArchiveFileName:
        """Return the name of a file with its least and its greatest requested time; see `names_are_ranges`.

        A damaged file may have any instant up to its last one. Raises: FileNotFoundError if a writer merged the file.
        """
        parts = file.parsed_name
        if self.names_are_ranges and parts.first_time <= parts.last_time:
            return parts
        found = self._ranges.get(file.name)
        if found is None:
            try:
                with self.open(file) as source:
                    first, last = self.parsed(file, lambda: requested_range(source)) or ("", "")
            except CorruptFileError:
                return ArchiveFileName("", parts.last_time, parts.layer)  # it fails if it is read
            found = self._ranges[file.name] = ArchiveFileName(first, last, parts.layer)
        return found

    def open(self, file: ArchiveFile) -> pq.ParquetFile:
        """Open a file that the manifest lists. Raises: FileNotFoundError; CorruptFileError."""
        # The name comes from the manifest: it must not lead to another folder.
        source = self.store.open_input(self._path(file.parsed_name.name))
        return self.parsed(file, lambda: pq.ParquetFile(source, page_checksum_verification=True))

    def parsed(self, file: ArchiveFile, read: Callable[[], _T]) -> _T:
        """Return what `read` returns of a file. Raises: CorruptFileError for what Arrow raises."""
        try:
            return read()
        except FileNotFoundError:
            raise
        except (pa.ArrowException, OSError, ValueError, KeyError) as error:
            path = self._uri(file.name)
            raise CorruptFileError(f"not a Parquet file of archived instants: {error}", path=path) from error

    def instants(self, requested_time: str | None = None) -> list[ArchivedInstant]:
        """Return all archived instants with their content, or those of one requested time; sorted by requested time.

        Reads every archive file; for one time only the files whose range of instants contains it.
        """
        found = {
            (instant.requested_time, instant.action): instant
            for file in self.snapshot().manifest.files
            if requested_time is None or self._ranged(file).may_have(requested_time, requested_time)
            for instant in parse_archived(self._read(file), path=self._path(file.name), requested_time=requested_time)
        }
        return [found[key] for key in sorted(found)]

    def completion_times(self, requested_times: Collection[str]) -> dict[str, str]:
        """Return the completion times of the archived write instants with these requested times.

        Reads only the files whose range of instants contains one of the times.
        """
        if not requested_times:
            return {}
        wanted = set(requested_times)
        found: dict[str, str] = {}
        for file in self.snapshot().manifest.files:
            if any(self._ranged(file).may_have(time, time) for time in wanted):
                for (time, action), completion_time in self._completions_in(file).items():
                    if time in wanted and completed_action(action, self._uri(file.name)).writes_data:
                        found[time] = completion_time
        return found

    def _version(self) -> int:
        """Return the newest snapshot's number. It is taken from the manifests if the version file contains none.

        A JVM that stops while it replaces the version file leaves no version file or an empty one.
        """
        try:
            text = self.store.read(self._path(VERSION_FILE)).strip()
        except FileNotFoundError:
            text = b""
        if not text:
            return max(self._versions(), default=0)
        version = manifest_version(MANIFEST_PREFIX + text.decode("ascii", "replace"))
        if version is None:
            message = f"the number of a manifest expected, found {text[:50]!r}; delete the file to read the newest one"
            raise CorruptFileError(message, path=self._uri(VERSION_FILE))
        return version

    def _versions(self) -> list[int]:
        versions = (manifest_version(info.name) for info in self.store.list(self.folder))
        return [version for version in versions if version is not None]

    def _manifest(self, version: int) -> ArchiveManifest:
        path = self._path(manifest_name(version))
        try:
            return ArchiveManifest.parse(self.store.read(path), path=self.store.uri(path))
        except FileNotFoundError as error:
            message = "the manifest of the archived timeline is missing; restore the file"
            raise CorruptFileError(message, path=self.store.uri(path)) from error

    def _publish(self, version: int, files: tuple[ArchiveFile, ...], fence: Fence | None) -> None:
        """Make these files the snapshot `version`, unless another process has published it or a later one."""
        _check(fence)
        path, data = self._path(manifest_name(version)), ArchiveManifest(files).to_bytes()
        try:
            self.store.create(path, data)
        except FileExistsError:
            # A dead writer may have left a manifest of this number. Readers ignore it: the version file does not name
            # it. (Without a version file they go by the greatest number; then `version` is greater.)
            self._ensure_newest_is_before(version)
            _check(fence)
            self.store.replace(path, data)
        publish = self.store.replace if fence is None else fence.create_last
        publish(self._path(VERSION_FILE), str(version).encode())

    def _ensure_newest_is_before(self, version: int) -> None:
        newest = self._version()
        if newest >= version:
            raise CommitConflictError(
                f"expected snapshot {version - 1} of the archived timeline {self.store.uri(self.folder)}, found "
                f"{newest}: another process archives instants without the table's lock; nothing was deleted, try again"
            )

    def _clean(self, manifests_kept: int, fence: Fence | None) -> None:
        infos = self.store.list(self.folder)
        versions = sorted(version for info in infos if (version := manifest_version(info.name)) is not None)
        if len(versions) <= manifests_kept:
            return
        _check(fence)
        kept = set(versions[-manifests_kept:])
        live = {file.name for version in kept for file in self._manifest(version).files}
        live |= {manifest_name(version) for version in kept}
        for info in infos:
            is_ours = manifest_version(info.name) is not None or ArchiveFileName.parse(info.name) is not None
            if is_ours and info.name not in live:
                self.store.delete(info.path)

    def _completions_in(self, file: ArchiveFile) -> dict[tuple[str, str], str]:
        return completion_times(self._read(file), path=self._uri(file.name))

    def _ranged(self, file: ArchiveFile) -> ArchiveFileName:
        try:
            return self.ranged(file)
        except FileNotFoundError as error:
            raise self._missing(file) from error

    def _read(self, file: ArchiveFile) -> bytes:
        # The name comes from the manifest: it must not lead to another folder.
        try:
            return self.store.read(self._path(file.parsed_name.name))
        except FileNotFoundError as error:
            raise self._missing(file) from error

    def _missing(self, file: ArchiveFile) -> CorruptFileError:
        message = "a file that the manifest of the archived timeline lists is missing; restore the file"
        return CorruptFileError(message, path=self._uri(file.name))

    def _path(self, name: str) -> str:
        return f"{self.folder}/{name}"

    def _uri(self, name: str) -> str:
        return self.store.uri(self._path(name))


def completed_action(name: str | None, path: str) -> Action:
    """Return the action of an archived instant. Raises: CorruptFileError for another text in the file `path`."""
    try:
        return Action(name or "")
    except ValueError as error:
        message = f"a completed action expected, found {str(name)[:50]!r}; restore the file"
        raise CorruptFileError(message, path=path) from error


def _covers(file: ArchiveFileName, other: ArchiveFileName) -> bool:
    return file.first_time <= other.first_time and other.last_time <= file.last_time


def _check(fence: Fence | None) -> None:
    if fence is not None:
        fence.ensure_held()


def _lists(known: Snapshot, name: str) -> bool:
    return any(file.name == name for file in known.manifest.files)


def _to_merge(files: Iterable[ArchiveFile], layer: int, limits: ArchiveLimits) -> list[ArchiveFile]:
    """Return the oldest files of a layer that become one file of the next; none if the layer has too few.

    As in the JVM, files that are too large stay, and a batch ends when it is large enough.
    """
    found = sorted((file.parsed_name, file) for file in files if file.parsed_name.layer == layer)
    if len(found) < limits.layer_files:
        return []
    batch: list[ArchiveFile] = []
    total_bytes = 0
    for _, file in found:
        batch.append(file)
        total_bytes += file.size_bytes
        if len(batch) >= limits.layer_files:
            break
        if total_bytes > limits.file_bytes:
            if len(batch) > 1:
                break
            batch, total_bytes = [], 0
    return batch if len(batch) > 1 else []
