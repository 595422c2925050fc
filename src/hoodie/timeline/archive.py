"""The archived timeline of table versions 8 and 9: instants that the active timeline no longer lists.

The archive is a folder of Parquet files in layers (an LSM tree) and of manifests that list the valid files. On-disk
format: docs/format/table.md §2.7. Writers must hold the table's lock; readers need no lock.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from hoodie.errors import CorruptFileError
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
)
from hoodie.storage import FileInfo, Store
from hoodie.timeline.instant import Action, Instant, State
from hoodie.timeline.layout import HOODIE_FOLDER, Layout

LAYER_FILES_MAX = 10
"""Files of one layer that are merged into one file of the next layer (`hoodie.timeline.compaction.batch.size`)."""
MANIFESTS_KEPT = 3
"""Number of snapshots whose files are kept (`hoodie.timeline.manifest.retained.versions`)."""
_LAYER_MAX = 9
# The file name has one digit for the layer.

_KEEPS_PLAN = {
    Action.CLEAN: (Action.CLEAN,),
    Action.COMMIT: (Action.COMPACTION,),
    Action.DELTA_COMMIT: (Action.LOG_COMPACTION,),
    Action.REPLACE_COMMIT: (Action.REPLACE_COMMIT, Action.CLUSTERING),
}


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One state of the archive: the number of its manifest (0: no manifest exists yet) and the manifest."""

    version: int
    manifest: ArchiveManifest


@dataclass(frozen=True, slots=True)
class TimelineArchive:
    """The archive in one folder, `.hoodie/timeline/history` of a table."""

    store: Store
    folder: str

    @classmethod
    def of(
        cls, store: Store, layout: Layout, *, folder: str = HOODIE_FOLDER, history_path: str = "history"
    ) -> TimelineArchive:
        """Return the archive of a timeline; `folder` as for `load_timeline`, `history_path` from hoodie.properties."""
        return cls(store, f"{layout.instant_folder(folder)}/{history_path}")

    def snapshot(self) -> Snapshot:
        """Return the newest snapshot; it is empty if nothing was archived yet.

        Raises:
            CorruptFileError: the manifest is missing or does not parse, or the version file contains no number.
        """
        version = self._version()
        if version == 0:
            return Snapshot(0, ArchiveManifest())
        return Snapshot(version, self._manifest(version))

    def append(self, instants: Sequence[ArchivedInstant]) -> None:
        """Add instants and skip those that are archived already. Readers see them when this function returns."""
        if not instants:
            return
        ordered = sorted(instants, key=lambda instant: (instant.requested_time, instant.action))
        known = self.snapshot()
        overlapping = _overlapping(known.manifest.files, ordered[0].requested_time, ordered[-1].requested_time)
        # A writer that stopped between archiving instants and deleting their files leaves the deletion to the next
        # writer, which archives the same instants again.
        there = {key for file in overlapping for key in self._completions_in(file)}
        added = [instant for instant in ordered if (instant.requested_time, instant.action) not in there]
        if not added:
            return
        name = ArchiveFileName(added[0].requested_time, added[-1].requested_time).name
        data = archived_to_bytes(added)
        self.store.replace(self._path(name), data)
        self._publish(known.version + 1, (*known.manifest.files, ArchiveFile(name, len(data))))

    def compact(self, *, layer_files_max: int = LAYER_FILES_MAX) -> None:
        """Merge layers that have too many files, and delete files that only old snapshots list."""
        known = self.snapshot()
        merged = 0
        for layer in range(_LAYER_MAX):
            files = sorted((found for found in _by_name(known.manifest.files) if found[0].layer == layer), key=_parts)
            if len(files) < layer_files_max:
                break
            batch = files[:layer_files_max]
            name = ArchiveFileName(batch[0][0].first_time, max(parts.last_time for parts, _ in batch), layer + 1).name
            data = merged_to_bytes((self.store.read(self._path(file.name)) for _, file in batch), path=self._path(name))
            self.store.replace(self._path(name), data)
            gone = {file.name for _, file in batch}
            kept = tuple(file for file in known.manifest.files if file.name not in gone)
            self._publish(known.version + 1, (*kept, ArchiveFile(name, len(data))))
            known = Snapshot(known.version + 1, ArchiveManifest((*kept, ArchiveFile(name, len(data)))))
            merged += 1
        self._clean(MANIFESTS_KEPT + merged)

    def newest_time(self) -> str:
        """Return the greatest requested time of the archived instants; empty if nothing is archived. Reads no rows."""
        return max((parts.last_time for parts, _ in _by_name(self.snapshot().manifest.files)), default="")

    def instants(self, requested_time: str | None = None) -> list[ArchivedInstant]:
        """Return all archived instants with their content, or those of one requested time; sorted by requested time.

        Reads every archive file; for one time only the files whose range of instants contains it.
        """
        found = {
            (instant.requested_time, instant.action): instant
            for parts, file in _by_name(self.snapshot().manifest.files)
            if requested_time is None or parts.first_time <= requested_time <= parts.last_time
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
        for parts, file in _by_name(self.snapshot().manifest.files):
            if any(parts.first_time <= time <= parts.last_time for time in wanted):
                for (time, action), completion_time in self._completions_in(file).items():
                    if time in wanted and self._action(action, file).writes_data:
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
            raise CorruptFileError(message, path=self.store.uri(self._path(VERSION_FILE)))
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

    def _publish(self, version: int, files: tuple[ArchiveFile, ...]) -> None:
        # A dead writer may have left a manifest of this number. Readers ignore it: the version file does not name it.
        self.store.replace(self._path(manifest_name(version)), ArchiveManifest(files).to_bytes())
        self.store.replace(self._path(VERSION_FILE), str(version).encode())

    def _clean(self, manifests_kept: int) -> None:
        infos = self.store.list(self.folder)
        versions = sorted(version for info in infos if (version := manifest_version(info.name)) is not None)
        if len(versions) <= manifests_kept:
            return
        kept = set(versions[-manifests_kept:])
        live = {file.name for version in kept for file in self._manifest(version).files}
        live |= {manifest_name(version) for version in kept}
        for info in infos:
            is_ours = manifest_version(info.name) is not None or ArchiveFileName.parse(info.name) is not None
            if is_ours and info.name not in live:
                self.store.delete(info.path)

    def _completions_in(self, file: ArchiveFile) -> dict[tuple[str, str], str]:
        return completion_times(self._read(file), path=self.store.uri(self._path(file.name)))

    def _action(self, name: str, file: ArchiveFile) -> Action:
        try:
            return Action(name)
        except ValueError as error:
            message = f"a completed action expected, found {name[:50]!r}; restore the file"
            raise CorruptFileError(message, path=self.store.uri(self._path(file.name))) from error

    def _read(self, file: ArchiveFile) -> bytes:
        # The name comes from the manifest: it must not lead to another folder.
        try:
            return self.store.read(self._path(file.parsed_name.name))
        except FileNotFoundError as error:
            where = self.store.uri(self._path(file.name))
            message = "a file that the manifest of the archived timeline lists is missing; restore the file"
            raise CorruptFileError(message, path=where) from error

    def _path(self, name: str) -> str:
        return f"{self.folder}/{name}"


def archive_instants(
    store: Store,
    layout: Layout,
    instants: Sequence[Instant],
    *,
    folder: str = HOODIE_FOLDER,
    history_path: str = "history",
) -> None:
    """Move completed instants, the oldest of a timeline, to its archive. Call it under the table's lock.

    The instants are added to the archive first. Then their files are deleted from the active timeline, the oldest
    first. A reader therefore sees the instants as completed at any moment, also after a crash. Repeating is safe.
    """
    files = _files_of(store, layout, instants, folder)
    archive = TimelineArchive.of(store, layout, folder=folder, history_path=history_path)
    archive.append([_archived(store, instant, files[instant]) for instant in instants if files[instant]])
    # Delete pending files first: an instant that has only pending files would be read as pending again.
    for is_completed in (False, True):
        for instant in instants:
            for found, info in files[instant]:
                if found.is_completed is is_completed:
                    store.delete(info.path)
    archive.compact()


def _files_of(
    store: Store, layout: Layout, instants: Sequence[Instant], folder: str
) -> dict[Instant, list[tuple[Instant, FileInfo]]]:
    """Return the files of each instant, each with the instant parsed from its name."""
    found: dict[Instant, list[tuple[Instant, FileInfo]]] = {instant: [] for instant in instants}
    by_key = {(instant.requested_time, instant.action.completed_as): instant for instant in instants}
    for info in store.list(layout.instant_folder(folder)):
        parsed = layout.parse(info)
        if parsed is not None:
            instant = by_key.get((parsed.requested_time, parsed.action.completed_as))
            if instant is not None:
                found[instant].append((parsed, info))
    return found


def _archived(store: Store, instant: Instant, files: Iterable[tuple[Instant, FileInfo]]) -> ArchivedInstant:
    """Return the archive's row of an instant: its completed content, and its plan if its action has one."""
    contents = {(found.action, found.state): info for found, info in files}
    completed = contents.get((instant.action, State.COMPLETED))
    plan: bytes | None = None
    for action in _KEEPS_PLAN.get(instant.action, ()):
        states = (State.REQUESTED, State.INFLIGHT) if instant.action is Action.REPLACE_COMMIT else (State.REQUESTED,)
        for state in states:
            info = contents.get((action, state))
            if info is not None and info.size_bytes:
                plan = store.read(info.path)
    return ArchivedInstant(
        requested_time=instant.requested_time,
        completion_time=instant.completion_time or instant.requested_time,
        action=instant.action.value,
        metadata=None if completed is None else store.read(completed.path),
        plan=plan,
    )


def _by_name(files: Iterable[ArchiveFile]) -> list[tuple[ArchiveFileName, ArchiveFile]]:
    return [(file.parsed_name, file) for file in files]


def _parts(found: tuple[ArchiveFileName, ArchiveFile]) -> ArchiveFileName:
    return found[0]


def _overlapping(files: Iterable[ArchiveFile], first_time: str, last_time: str) -> list[ArchiveFile]:
    return [file for parts, file in _by_name(files) if parts.first_time <= last_time and parts.last_time >= first_time]
