"""Tables in an object store (S3, Google Cloud Storage, Azure), accessed with obstore.

Errors of the service become one sentence: its answer, and what to do. obstore gives the answer, a dump of its own
types, and all requests it made, in forty lines. It may also raise `PanicException`, which is no `Exception`; nothing
above this room could handle it.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, cast

import obstore
import pyarrow as pa
from obstore.exceptions import AlreadyExistsError, BaseError, PreconditionError, UnknownConfigurationKeyError
from obstore.store import from_url

from hoodie.errors import InvalidConfigError, PartitionPathError, StorageError
from hoodie.storage.api import ExistingFileError, FileInfo, FileVersion, Store, StoreSpec
from hoodie.storage.options import CLIENT_OPTIONS, check_endpoints_of, client_environment, masked, normalised
from hoodie.storage.paths import checked_deletable, checked_folder, checked_path, is_listed, native_scheme
from hoodie.storage.waves import AsksAhead, later

if TYPE_CHECKING:
    from obstore import ObjectMeta, UpdateVersion
    from obstore.store import ObjectStore as Backend

_DELETE_BATCH = 1000
_PUT_TOKEN = "hoodieput"
"""The user-defined metadata that names a conditional put. Azure permits letters, digits and underscores only."""
_REASONS = (
    (("NoSuchBucket", "ContainerNotFound", "specified bucket does not exist"), "the bucket does not exist; check its "
     "name, the endpoint and the region"),
    (("PermanentRedirect", "AuthorizationHeaderMalformed", "IllegalLocationConstraint", "without a `Location`"),
     "the bucket is in another region; set the storage option aws_region to its region"),
    (("InvalidAccessKeyId", "SignatureDoesNotMatch", "InvalidToken", "ExpiredToken", "AuthenticationFailed"),
     "the service refused the credentials; check the storage options or environment variables that hold them"),
    (("169.254.169.254", "metadata.google.internal", "MissingCredentials"), "no credentials were found; set them as "
     "storage options or environment variables, or set skip_signature=true for a public bucket"),
    (("BadScheme",), "the endpoint is not encrypted (http); set the storage option allow_http=true if that is meant"),
    (("kind: Connect", "dns error", "ConnectError"), "no connection to the service; check the endpoint, the network "
     "and the proxy"),
    (("kind: Timeout", "operation timed out"), "the service did not answer in time; check the network, or set the "
     "storage option timeout"),
    (("AccessDenied", "PermissionDenied", "403 Forbidden", "Unauthenticated", "401 Unauthorized"), "access is denied; "
     "give the credentials the right to list, read, write and delete there"),
    (("SlowDown", "503 Service Unavailable"), "the service refuses so many requests; try again later"),
)  # fmt: skip
_LENGTH_MAX = 200


Infos = list[FileInfo]
"""A list, in a class that has a method of this name."""


class ObjectStore(AsksAhead, Store):
    """A table's prefix in a bucket (see `Store`). Folders exist only as parts of the names of objects.

    `create` requires conditional puts, which all supported services have.
    """

    def __init__(self, backend: Backend, spec: StoreSpec) -> None:
        """Wrap an obstore store whose prefix is the table's base path."""
        self._backend = backend
        self._spec = StoreSpec(spec.uri.rstrip("/"), spec.options)

    def __repr__(self) -> str:
        # The options are not shown: they may contain credentials.
        return f"ObjectStore({self._spec.uri!r})"

    @property
    def spec(self) -> StoreSpec:
        return self._spec

    def uri(self, path: str) -> str:
        """Return the URI of an object, with the scheme with which the table was opened."""
        return f"{self._spec.uri}/{checked_folder(path)}".rstrip("/")

    def _request(self, kind: str, path: str) -> Any:
        """Send the request of a method (see `waves.ask`)."""
        if kind.startswith("range "):
            start, length = map(int, kind.split()[1:])
            return self._read_range(path, start, length)
        calls: dict[str, Callable[[str], Any]] = {
            "folders": self._folders,
            "list": self._list,
            "list_all": partial(self._list, recursive=True),
            "head": self._head,
            "read": self._read,
        }
        return calls[kind](path)

    def folders(self, folder: str) -> list[str]:
        return cast(list[str], self._answer("folders", folder))

    def _folders(self, folder: str) -> list[str]:
        with self._translated(folder):
            return sorted(self._backend.list_with_delimiter(checked_folder(folder) or None)["common_prefixes"])

    def list(self, folder: str, *, recursive: bool = False) -> list[FileInfo]:
        return cast(Infos, self._answer("list_all" if recursive else "list", folder))

    def _list(self, folder: str, *, recursive: bool = False) -> Infos:
        prefix = checked_folder(folder) or None
        with self._translated(folder):
            if recursive:
                metas = [meta for chunk in self._backend.list(prefix) for meta in chunk]
            else:
                metas = list(self._backend.list_with_delimiter(prefix)["objects"])
        infos = (_file_info(meta["path"], meta) for meta in metas if meta["path"] != prefix)
        return sorted((info for info in infos if is_listed(info.name)), key=lambda info: info.path)

    def temporary_files(self) -> tuple[FileInfo, ...]:
        """Return nothing: an object appears with all its bytes, so that this store writes no temporary objects."""
        return ()

    def head(self, path: str) -> FileInfo | None:
        return cast("FileInfo | None", self._answer("head", path))

    def _head(self, path: str) -> FileInfo | None:
        try:
            with self._translated(path):
                return _file_info(path, self._backend.head(checked_path(path)))
        except FileNotFoundError:
            return None
        except StorageError:
            # The answer to HEAD has no text; the answer to GET has the reason.
            with suppress(FileNotFoundError), self._translated(path):
                self._backend.get(checked_path(path))
            raise

    def read(self, path: str) -> bytes:
        return cast(bytes, self._answer("read", path))

    def _read(self, path: str) -> bytes:
        with self._translated(path):
            return bytes(self._backend.get(checked_path(path)).bytes())

    def read_range(self, path: str, start: int, length: int) -> bytes:
        return cast(bytes, self._answer(f"range {start} {length}", path))

    def _read_range(self, path: str, start: int, length: int) -> bytes:
        if length > 0:
            try:
                with self._translated(path):
                    return bytes(self._backend.get_range(checked_path(path), start=start, length=length))
            except OSError:
                info = self.head(path)
                if info is None or start < info.size_bytes:
                    raise
                return b""  # services refuse a range that begins at or after the end
        if self.head(path) is None:
            raise FileNotFoundError(self.uri(path))
        return b""

    def create(self, path: str, data: bytes) -> None:
        if self._put_if(path, data, "create") is None:
            raise ExistingFileError(self.uri(path))

    def replace(self, path: str, data: bytes) -> None:
        self._changes(path)
        with self._translated(path):
            self._backend.put(checked_path(path), data)

    def refresh(self, path: str, expected: bytes) -> bool:
        """Write the object again if its content is `expected`; return whether it was."""
        try:
            found, version = self.read_version(path)
        except FileNotFoundError:
            return False
        return found == expected and self._put_if(path, expected, _if_unchanged(version)) is not None

    def set_modified_ms(self, path: str, modified_ms: int) -> None:
        """Do nothing: the services set the time of each change."""

    def read_version(self, path: str) -> tuple[bytes, FileVersion]:
        with self._translated(path):
            found = self._backend.get(checked_path(path))
            meta = found.meta
            return bytes(found.bytes()), FileVersion(meta["e_tag"], meta["version"])

    def replace_version(self, path: str, data: bytes, version: FileVersion | None) -> FileVersion | None:
        return self._put_if(path, data, "create" if version is None else _if_unchanged(version))

    def move(self, source: str, target: str) -> None:
        """Copy the object inside the service, in one atomic step; then delete `source` if the service permits it."""
        self._changes(source, target)
        with self._translated(source):
            self._backend.copy(checked_path(source), checked_path(target))
        later(self, partial(self.delete, source))

    def delete(self, path: str) -> None:
        self._delete([checked_path(path)])

    def delete_all(self, paths: Sequence[str]) -> None:
        """Delete the objects, up to a thousand with one request where the service has such a request."""
        checked = [checked_path(path) for path in paths]
        for start in range(0, len(checked), _DELETE_BATCH):
            self._delete(checked[start : start + _DELETE_BATCH])

    def delete_folder(self, folder: str) -> None:
        """Delete all objects below the folder, hidden objects too; does nothing if there are none."""
        self._changes(folder)
        with self._translated(folder):
            paths = [meta["path"] for chunk in self._backend.list(checked_deletable(folder)) for meta in chunk]
        for start in range(0, len(paths), _DELETE_BATCH):
            self._delete(paths[start : start + _DELETE_BATCH])

    def open_input(self, path: str) -> pa.NativeFile:
        """Open a random-access reader. Each read is one ranged request, so set `pre_buffer` for Parquet reads."""
        info = self.head(path)
        if info is None:
            raise FileNotFoundError(self.uri(path))
        return pa.PythonFile(_RangedInput(self, info), mode="r")

    def open_output(self, path: str) -> pa.NativeFile:
        """Open a streaming (multipart) writer; the object exists once the writer is closed."""
        self._changes(path)
        return pa.PythonFile(_MultipartOutput(self, checked_path(path)), mode="w")

    def check_links(self, paths: Iterable[str]) -> None:
        """Do nothing: there are no links."""

    def check_writable(self) -> None:
        """Do nothing: the services create objects in one step."""

    def _put_if(self, path: str, data: bytes, condition: Literal["create"] | UpdateVersion) -> FileVersion | None:
        """Put the object if the condition holds; return its new version, or None if the condition does not hold.

        The client repeats a put whose answer was lost, and then the service refuses the repetition because of the
        object that the first request put. Each put stores a token of its own beside the object: the content cannot show
        who put it, because two writers may put the same bytes.
        """
        self._changes(path)
        token = uuid.uuid4().hex
        try:
            with self._translated(path):
                put = self._backend.put(
                    checked_path(path), data, mode=condition, attributes={_PUT_TOKEN: token}, use_multipart=False
                )
            return FileVersion(put["e_tag"], put["version"])
        except OSError as error:
            is_refusal = isinstance(error, FileExistsError | FileNotFoundError)
            if not is_refusal and not isinstance(error.__cause__, PreconditionError):
                raise
        with suppress(FileNotFoundError), self._translated(path):
            found = self._backend.get(path, options={"head": True})
            if found.attributes.get(_PUT_TOKEN) == token:
                return FileVersion(found.meta["e_tag"], found.meta["version"])
        return None

    def _delete(self, paths: Sequence[str]) -> None:
        self._changes(*paths)
        try:
            with self._translated(paths[0]):
                self._backend.delete(paths)
        except FileNotFoundError:
            if len(paths) > 1:
                for path in paths:
                    self._delete([path])

    @contextmanager
    def _translated(self, path: str) -> Iterator[None]:
        """Replace errors of obstore by the standard errors of `Store`, also those that are no `Exception`.

        Raises: StorageError in a process that was forked after obstore was used; it would wait for ever.
        """
        if _user_of_obstore.setdefault("process", os.getpid()) != os.getpid():
            raise StorageError(
                f"{self.uri(path)}: this process was forked from a process that had used object stores, and a fork "
                "lacks the threads of their client: start processes by spawn or forkserver "
                "(multiprocessing.set_start_method('spawn')), or fork before the first use"
            )
        try:
            yield
        except AlreadyExistsError as error:
            raise ExistingFileError(self.uri(path)) from error
        except FileNotFoundError as error:
            if _reason(error) is not None:  # the bucket is missing, not the object
                raise _explanation(self.uri(path), error) from error
            raise FileNotFoundError(self.uri(path)) from error
        except BaseError as error:
            raise _explanation(self.uri(path), error) from error
        except ValueError as error:
            # obstore raises ValueError for a character that object names cannot contain.
            raise PartitionPathError(f"{self.uri(path)!r} cannot be the name of an object: {error}") from error
        except BaseException as error:
            if not _is_panic(error):
                raise
            raise _explanation(self.uri(path), error) from None


_user_of_obstore: dict[str, int] = {}
"""The process that began to use obstore, whose threads a fork does not have."""


class _RangedInput:
    """A seekable Python file that requests exactly the bytes of each read."""

    def __init__(self, store: ObjectStore, info: FileInfo) -> None:
        self._store = store
        self._info = info
        self._position = 0
        self.closed = False

    def read(self, length: int = -1) -> bytes:
        """Read up to `length` bytes from the position; all remaining bytes if `length` is negative."""
        left = max(self._info.size_bytes - self._position, 0)
        wanted = left if length < 0 else min(length, left)
        if wanted == 0:
            return b""
        data = self._store.read_range(self._info.path, self._position, wanted)
        self._position += len(data)
        return data

    def seek(self, offset: int, whence: int = 0) -> int:
        """Move to `offset` from the start (0), the position (1) or the end (2)."""
        self._position = offset + (0, self._position, self._info.size_bytes)[whence]
        return self._position

    def tell(self) -> int:
        """Return the position."""
        return self._position

    def seekable(self) -> bool:
        """Return True."""
        return True

    def close(self) -> None:
        """Mark the file as closed; there is no connection to release."""
        self.closed = True


class _MultipartOutput:
    """A writable Python file over obstore's multipart writer, with the errors of `Store`."""

    def __init__(self, store: ObjectStore, path: str) -> None:
        self._store = store
        self._path = path
        with store._translated(path):
            self._writer = obstore.open_writer(store._backend, path)
        self.closed = False

    def write(self, data: bytes) -> int:
        """Append the bytes, which are sent in parts."""
        with self._store._translated(self._path):
            # Arrow's buffers have signed bytes, but obstore accepts unsigned bytes only.
            return self._writer.write(memoryview(data).cast("B"))

    def flush(self) -> None:
        """Do nothing: parts are sent when they are full."""

    def close(self) -> None:
        """Complete the upload; a second call does nothing."""
        if not self.closed:
            self.closed = True
            with self._store._translated(self._path):
                self._writer.close()


def open_objects(uri: str, options: Mapping[str, object]) -> ObjectStore:
    """Open `scheme://bucket/prefix`; credentials that are not in `options` are read from the environment.

    The prefix is taken as it is: `%20` is three characters, as in Hadoop.

    Raises:
        InvalidConfigError: an option is not known to the object store, or the URI has no bucket, or has credentials, a
            query or a fragment. The message has no values of options.
    """
    given = normalised(options)
    scheme, _, rest = uri.rstrip("/").partition("://")
    bucket = rest.partition("/")[0]
    if ":" in bucket.rpartition("@")[0] or "?" in rest or "#" in rest:
        raise InvalidConfigError(
            f"{scheme}://…: expected {scheme}://bucket/folder without credentials, '?' and '#'; give credentials as "
            "storage options"
        )
    check_endpoints_of(native_scheme(scheme), os.environ)
    client = client_environment(native_scheme(scheme), os.environ)
    client |= {key: value for key, value in given.items() if key in CLIENT_OPTIONS}
    try:
        # The set of options depends on the service, so it has no static type; obstore refuses unknown options.
        backend = from_url(
            f"{native_scheme(scheme)}://{rest.replace('%', '%25')}",
            config=cast(Any, {key: value for key, value in given.items() if key not in CLIENT_OPTIONS}),
            client_options=cast(Any, client),
        )
    except BaseException as error:
        if not (isinstance(error, BaseError | ValueError | TypeError) or _is_panic(error)):
            raise
        # Not chained: the text of obstore may have the value of a misspelt option.
        raise _cannot_open(uri, given, {**client, **given}, error) from None
    return ObjectStore(backend, StoreSpec(uri, tuple(sorted(given.items()))))


def _cannot_open(
    uri: str, options: Mapping[str, str], values: Mapping[str, str], error: BaseException
) -> InvalidConfigError:
    text = masked("obstore failed" if _is_panic(error) else _first_line(error), values)
    unknown = isinstance(error, UnknownConfigurationKeyError)
    advice = "; see https://docs.rs/object_store for the names of options" if unknown else ""
    return InvalidConfigError(f"cannot open {uri!r} with the storage options {sorted(options)}: {text}{advice}")


def _if_unchanged(found: FileVersion) -> UpdateVersion:
    """Return the mode of a put that fails if the object is not this version any more."""
    version: UpdateVersion = {}
    if found.e_tag is not None:
        version["e_tag"] = found.e_tag
    if found.version is not None:
        version["version"] = found.version
    return version


def _file_info(path: str, meta: ObjectMeta) -> FileInfo:
    return FileInfo(path, meta["size"], int(meta["last_modified"].timestamp() * 1000), FileVersion(meta["e_tag"]).tag)


def _is_panic(error: BaseException) -> bool:
    """Return whether obstore's native code failed: such an error is no `Exception`."""
    return type(error).__name__ == "PanicException"


def _explanation(uri: str, error: BaseException) -> StorageError:
    """Return the error to raise instead of obstore's."""
    reason = _reason(error)
    if reason is None:
        text = _first_line(error)
        reason = f"obstore failed ({text}); report this" if _is_panic(error) else f"{text}; try again"
    return StorageError(f"{uri}: {reason}")


def _first_line(error: BaseException) -> str:
    """Return the part of obstore's text that names the cause."""
    text = (str(error).splitlines() or [type(error).__name__])[0]
    return text if len(text) <= _LENGTH_MAX else f"{text[:_LENGTH_MAX]}…"


def _reason(error: BaseException) -> str | None:
    text = f"{type(error).__name__}: {error}"
    return next((reason for signs, reason in _REASONS if any(sign in text for sign in signs)), None)
