"""Files that leave their folder once a batch is committed: archived or deleted, each of them after exactly one read.

A file that is older than the place may have arrived late, or its batch may have been committed before the process
died; the place is a time, which is the same in both cases. So the read of a batch first creates a *list*: a file
`.hoodie-ingest-<before>-<place>.json` in the folder, with the files of the batch. The next planning finds the lists. If
the place of the newest commit is the place of a list, then the batch of the list is committed, and its files leave now.
A batch that is planned again from the same place is the batch of its list. Every list has a place of its own, so no
other batch has it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from posixpath import commonprefix
from typing import Final

from hoodie.errors import InvalidConfigError, SourceError
from hoodie.storage import ExistingFileError, FileInfo, Store, open_store

_NAME: Final = re.compile(r"\.hoodie-ingest-(start|-?\d+)-(-?\d+)\.json")
_START: Final = "start"


@dataclass(frozen=True, slots=True)
class FileList:
    """The files of one batch; `before` is the place before it (None: the first batch), `place` the place behind it."""

    before: int | None
    place: int
    files: tuple[FileInfo, ...]

    @property
    def name(self) -> str:
        return f".hoodie-ingest-{_START if self.before is None else self.before}-{self.place}.json"

    def to_bytes(self) -> bytes:
        return json.dumps([[file.path, file.size_bytes, file.modified_ms] for file in self.files]).encode()


def lists_in(store: Store, listed: Iterable[FileInfo]) -> list[FileList]:
    """Return the lists of a folder, by their places. Raises: SourceError if a list cannot be parsed."""
    found = []
    for info in listed:
        match = _NAME.fullmatch(info.path)
        if match is None:
            continue
        try:
            files = tuple(
                FileInfo(str(path), int(size), int(at)) for path, size, at in json.loads(store.read(info.path))
            )
        except FileNotFoundError:
            continue
        except (ValueError, TypeError) as error:
            raise SourceError(
                f"{store.uri(info.path)}: expected the list of files of a batch, found other content ({error}); check "
                "which files the newest commit has, remove those from the folder, and then delete this file"
            ) from error
        found.append(FileList(None if match[1] == _START else int(match[1]), int(match[2]), files))
    return sorted(found, key=lambda one: one.place)


def write_list(store: Store, new: FileList) -> None:
    """Create the list of a batch before its files are read. Raises: SourceError if another process has a list of other
    files for this place: the caller plans again.
    """
    try:
        store.create(new.name, new.to_bytes())
    except ExistingFileError as error:
        if store.read(new.name) != new.to_bytes():
            raise SourceError(
                f"{store.uri(new.name)}: another process planned a batch of other files from this place; run the flow "
                "again, in one process"
            ) from error


@dataclass(frozen=True, slots=True)
class Removal:
    """Where files go: `archive` is a folder below the source's folder, or a path or URI; None: they are deleted."""

    store: Store
    archive: str | None

    def finish(self, done: FileList, listed: Sequence[FileInfo]) -> None:
        """Archive or delete the files of a committed batch, and then its list; may be repeated.

        A file that has changed since the batch was planned stays: it is a new file.

        Raises: StorageError, even if a file was archived and only its source cannot be deleted; the list then stays, so
            that the file is not read again.
        """
        now = {info.path: info for info in listed}
        leaving = [file.path for file in done.files if now.get(file.path) == file]
        if self.archive is None:
            self.store.delete_all(leaving)
        else:
            store, source, target = self._roots(self.archive)
            for path in leaving:
                _move(store, f"{source}{path}", f"{target}{path}", now[path].modified_ms)
            if store.spec.is_remote:  # there, a move whose delete fails raises no error
                unmoved = {info._replace(tag=None) for info in self.store.list("", recursive=True)}
                self.store.delete_all([path for path in leaving if now[path] in unmoved])
        self.store.delete(done.name)

    def check(self) -> None:
        """Raise InvalidConfigError for an archive that the source would read again, or that files cannot move to."""
        if self.archive is not None:
            _, source, target = self._roots(self.archive)
            inner = target.removeprefix(source) if target.startswith(source) else None
            if (inner is not None and not is_hidden(inner)) or not {".", ".."}.isdisjoint(target.split("/")):
                raise InvalidConfigError(
                    f"archive: expected a folder outside of {self.store.spec.uri}, or below it with a name that begins "
                    f"with '_', found {self.archive!r}"
                )

    def _roots(self, archive: str) -> tuple[Store, str, str]:
        """Return a store that has both folders, and the prefixes of the files' paths in it."""
        if "://" not in archive and not archive.startswith(("/", "~", "file:")):
            return self.store, "", f"{archive.strip('/')}/"
        spec = self.store.spec
        one, other = (
            store.spec.uri.rstrip("/").split("/") for store in (self.store, open_store(archive, dict(spec.options)))
        )
        count = len(commonprefix([one, other]))
        if count < (3 if "://" in spec.uri else 1) or spec.uri.startswith("memory://"):
            raise InvalidConfigError(
                f"archive: expected a folder in the same storage as {spec.uri}, found {archive!r}; name a folder in "
                "the same bucket, or a folder such as '_archive', which is created below the source's folder"
            )
        source, target = ("".join(f"{part}/" for part in parts[count:]) for parts in (one, other))
        return open_store("/".join(one[:count]) or "/", dict(spec.options)), source, target


def is_hidden(path: str) -> bool:
    """Return whether a listing of Spark skips the file: a folder or its name begins with `.` or `_`.

    >>> is_hidden("a/_tmp/x.csv"), is_hidden("_day=1/x.csv")
    (True, False)
    """
    return any(part[:1] == "." or (part[:1] == "_" and "=" not in part) for part in path.split("/"))


def _move(store: Store, source: str, target: str, modified_ms: int) -> None:
    """Move a file that may have been moved already; a file of the target's name stays beside it."""
    if store.head(target) is not None:
        stem, dot, end = target.rpartition(".")
        target = f"{stem}.{modified_ms}{dot}{end}" if dot and "/" not in end else f"{target}.{modified_ms}"
    try:
        store.move(source, target)
    except FileNotFoundError:
        return
