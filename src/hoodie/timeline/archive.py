"""The archived timeline of table versions 8 and 9: instants that the active timeline no longer lists.

A folder of Parquet files in layers, as an LSM tree, and manifests that say which of them count. On-disk format:
docs/format/table.md §2.7. One writer at a time (the table's lock); readers need nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from hoodie.errors import CorruptFileError
from hoodie.format.instants.archive import (
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
"""Files of one layer at which they are merged into one of the next (`hoodie.timeline.compaction.batch.size`)."""
MANIFESTS_KEPT = 3
"""Snapshots whose files stay (`hoodie.timeline.manifest.retained.versions`)."""
_LAYER_MAX = 9
# The layer is one digit of the file name.

_KEEPS_PLAN = {
    Action.CLEAN: (Action.CLEAN,),
    Action.COMMIT: (Action.COMPACTION,),
    Action.DELTA_COMMIT: (Action.LOG_COMPACTION,),
    Action.REPLACE_COMMIT: (Action.REPLACE_COMMIT, Action.CLUSTERING),
}


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What the archive holds: the number of its manifest (0: there is none yet) and the manifest."""

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
        """The archive of a timeline; `folder` as for `load_timeline`, `history_path` as the table's properties say."""
        return cls(store, f"{layout.instant_folder(folder)}/{history_path}")

    def snapshot(self) -> Snapshot:
        """The newest snapshot; an archive that was never written is empty.

        Raises:
            CorruptFileError: its manifest is gone or does not parse.
        """
        version = self._version()
        if version == 0:
            return Snapshot(0, ArchiveManifest())
        return Snapshot(version, self._manifest(version))

    def append(self, instants: Sequence[ArchivedInstant]) -> None:
        """Add instants; those that are there already are left out. They count once this returns."""
        if not instants:
            return
        ordered = sorted(instants, key=lambda instant: (instant.requested_time, instant.action))
        known = self.snapshot()
        overlapping = _overlapping(known.manifest.files, ordered[0].requested_time, ordered[-1].requested_time)
        # A writer that died before it had deleted what it archived leaves it to the next one.
        there = {key for file in overlapping for key in self._completions_in(file)}
        added = [instant for instant in ordered if (instant.requested_time, instant.action) not in there]
        if not added:
            return
        name = ArchiveFileName(added[0].requested_time, added[-1].requested_time).name
        data = archived_to_bytes(added)
        self.store.replace(self._path(name), data)
        self._publish(known.version + 1, (*known.manifest.files, ArchiveFile(name, len(data))))

    def compact(self, *, layer_files_max: int = LAYER_FILES_MAX) -> None:
        """Merge layers that have too many files, and delete files that only old snapshots named."""
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

    def instants(self) -> list[ArchivedInstant]:
        """All archived instants by requested time, with their content: for histories, not for hot paths."""
        files = self.snapshot().manifest.files
        found = {
            (instant.requested_time, instant.action): instant
            for file in files
            for instant in parse_archived(self._read(file), path=self._path(file.name))
        }
        return [found[key] for key in sorted(found)]

    def completion_times(self, requested_times: Collection[str]) -> dict[str, str]:
        """Completion times of those of the write instants that are archived; reads the files that may hold them."""
        if not requested_times:
            return {}
        wanted = set(requested_times)
        found: dict[str, str] = {}
        for parts, file in _by_name(self.snapshot().manifest.files):
            if any(parts.first_time <= time <= parts.last_time for time in wanted):
                for (time, action), completion_time in self._completions_in(file).items():
                    if time in wanted and Action(action).writes_data:
                        found[time] = completion_time
        return found

    def _version(self) -> int:
        """The newest snapshot's number. Of a JVM that died while it replaced the version file, manifests tell it."""
        try:
            text = self.store.read(self._path(VERSION_FILE)).strip()
        except FileNotFoundError:
            text = b""
        return int(text) if text.isdigit() else max(self._versions(), default=0)

    def _versions(self) -> list[int]:
        versions = (manifest_version(info.name) for info in self.store.list(self.folder))
        return [version for version in versions if version is not None]

    def _manifest(self, version: int) -> ArchiveManifest:
        path = self._path(manifest_name(version))
        try:
            return ArchiveManifest.parse(self.store.read(path), path=self.store.uri(path))
        except FileNotFoundError as error:
            raise CorruptFileError("the archived timeline has lost its manifest", path=self.store.uri(path)) from error

    def _publish(self, version: int, files: tuple[ArchiveFile, ...]) -> None:
        # A manifest of this number without its version file is what a dead writer left: nobody believes it.
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

    def _read(self, file: ArchiveFile) -> bytes:
        try:
            return self.store.read(self._path(file.name))
        except FileNotFoundError as error:
            where = self.store.uri(self._path(file.name))
            raise CorruptFileError("a file that the archive's manifest names is gone", path=where) from error

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
    """Move completed instants, the oldest of a timeline, to its archive. Under the table's lock; safe to repeat.

    The archive names them before the active timeline forgets them, and that forgets the oldest first: whoever reads
    meanwhile, or after a crash, takes them for completed.
    """
    files = _files_of(store, layout, instants, folder)
    archive = TimelineArchive.of(store, layout, folder=folder, history_path=history_path)
    archive.append([_archived(store, instant, files[instant]) for instant in instants if files[instant]])
    # Pending files first: an instant without its completed file would look pending again.
    for is_completed in (False, True):
        for instant in instants:
            for found, info in files[instant]:
                if found.is_completed is is_completed:
                    store.delete(info.path)
    archive.compact()


def _files_of(
    store: Store, layout: Layout, instants: Sequence[Instant], folder: str
) -> dict[Instant, list[tuple[Instant, FileInfo]]]:
    """The files of each instant, with what their names say."""
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
    """What the archive keeps of an instant: its result, and the plan if its kind has one."""
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
