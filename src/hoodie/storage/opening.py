"""Open the store of a path or URI."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping

from hoodie.config import flag
from hoodie.config.option import checked_text
from hoodie.errors import InvalidConfigError
from hoodie.storage import memory
from hoodie.storage.api import Store, StoreSpec
from hoodie.storage.local import DURABLE, LocalStore
from hoodie.storage.options import normalised
from hoodie.storage.paths import OBJECT_SCHEMES

_DRIVE = re.compile(r"[A-Za-z]:[\\/]")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):/")
_INSTEAD = {
    "dbfs": "a folder of DBFS is also the local folder /dbfs/…",
    "hdfs": "mount HDFS as a local folder, for example with its NFS gateway",
    "http": "give the URI of the bucket",
    "https": "give the URI of the bucket",
}
_FINDERS: dict[str, Callable[[StoreSpec], Store]] = {}


def register_store(prefix: str, find: Callable[[StoreSpec], Store]) -> None:
    """Let `open_store` in this process open URIs that begin with `prefix` by `find`; tests add their doubles."""
    _FINDERS[prefix] = find


def open_store(spec_or_uri: StoreSpec | str | os.PathLike[str], options: Mapping[str, str] | None = None) -> Store:
    """Open the folder of a path, URI or `StoreSpec`; nothing is read or created.

    Accepts plain paths, `file://` (the rest is the path without percent-encoding, as in Hadoop), `s3://` (also `s3a`,
    `s3n`), `gs://` (also `gcs`), `az://` (also `abfs`, `abfss`), `memory://name`, and what `register_store` added in
    this process.

    A leading `~` is the home folder, as in a shell.

    Args:
        spec_or_uri: the folder to open.
        options: settings of the object store, such as `aws_endpoint` or `aws_region`, in upper or lower case. They are
            added to the options of a `StoreSpec` and replace equal names. Local paths accept only `durable`.

    Raises:
        InvalidConfigError: there is no store for this kind of URI, or an option is unknown. The message has no values
            of options.
    """
    spec = spec_or_uri if isinstance(spec_or_uri, StoreSpec) else StoreSpec(_text(spec_or_uri))
    merged = {**normalised(dict(spec.options)), **normalised(options or {})}
    scheme, separator, rest = spec.uri.partition("://")
    for prefix, find in _FINDERS.items():
        if spec.uri.startswith(prefix):
            return find(spec)
    if separator and scheme in OBJECT_SCHEMES:
        # Here, so that a worker of Spark needs obstore for tables in an object store only.
        from hoodie.storage.objects import open_objects

        return open_objects(spec.uri, merged)
    is_memory = spec.uri.startswith(memory.SCHEME)
    refused = sorted(merged) if is_memory else sorted(merged.keys() - {DURABLE})
    if refused:
        raise InvalidConfigError(
            f"{_without_secrets(spec.uri)!r} accepts no storage options{'' if is_memory else f' but {DURABLE!r}'}, "
            f"got {refused}: remove them"
        )
    if is_memory:
        return memory.MemoryStore(rest.rstrip("/"))
    return LocalStore(_local_path(spec.uri), durable=_is_durable(merged))


def _text(path: str | os.PathLike[str]) -> str:
    found = os.fspath(path)
    if not isinstance(found, str):
        raise InvalidConfigError(f"the table's path is {type(found).__name__}: expected a text or a path object")
    return checked_text("the table's path", found)


def _is_durable(options: Mapping[str, str]) -> bool:
    try:
        return flag(options.get(DURABLE, "false"))
    except ValueError as error:
        raise InvalidConfigError(f"storage option {DURABLE!r}: {error}") from error


def _local_path(uri: str) -> str:
    """Return the local path of a plain path, `file:///path`, `file://localhost/path` or `file:/path`."""
    if not uri or "\0" in uri:
        raise InvalidConfigError(f"the table's path is {uri!r}: give a path or URI")
    if uri.startswith("file:"):
        rest = uri.removeprefix("file:")
        path = rest.removeprefix("//").removeprefix("localhost") if rest.startswith("//") else rest
        if not path.startswith("/"):
            raise InvalidConfigError(f"{uri!r} names another host or a relative path: expected file:///absolute/path")
        return path
    if _DRIVE.match(uri) and os.name != "nt":
        raise InvalidConfigError(f"{uri!r} is a path of Windows: expected a path of this machine, or a URI")
    found = _SCHEME.match(uri)
    if found:
        scheme = found[1]
        known = ", ".join(f"{name}://" for name in sorted({"file", "memory", *OBJECT_SCHEMES}))
        advice = _INSTEAD.get(scheme.lower(), f"write ./{_without_secrets(uri)} if this is a local folder")
        raise InvalidConfigError(
            f"{_without_secrets(uri)!r}: no store for {scheme!r}; expected a path or one of {known}; {advice}"
        )
    return _with_home(uri)


def _without_secrets(uri: str) -> str:
    """Return a URI for a message: without the user and password, and without the query, which may be a signature."""
    return re.sub(r"(?<=://)[^/@]*@", "***@", re.sub(r"(?s)\?.*", "?***", uri) if "://" in uri else uri)


def _with_home(path: str) -> str:
    expanded = os.path.expanduser(path)
    if path.startswith("~") and expanded == path:
        raise InvalidConfigError(f"{path!r}: no such user on this machine; write ./{path} if this is a local folder")
    return expanded
