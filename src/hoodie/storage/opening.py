"""Open the store of a path or URI."""

from __future__ import annotations

import os
from collections.abc import Mapping

from hoodie.errors import InvalidConfigError
from hoodie.storage import faults, memory, objects
from hoodie.storage.api import Store, StoreSpec
from hoodie.storage.local import LocalStore


def open_store(spec_or_uri: StoreSpec | str | os.PathLike[str], options: Mapping[str, str] | None = None) -> Store:
    """Open the folder of a path, URI or `StoreSpec`; nothing is read or created.

    Accepts plain paths, `file://` (the rest is the path without percent-encoding, as in Hadoop), `s3://` (also `s3a`,
    `s3n`), `gs://`, `az://` (also `abfs`, `abfss`), `memory://name`, and stores that `FaultStore.register` registered
    in this process.

    Args:
        spec_or_uri: the folder to open.
        options: settings of the object store, such as `aws_endpoint` or `aws_region`. They are added to the options
            of a `StoreSpec` and replace equal keys. Local paths accept no options.

    Raises:
        InvalidConfigError: there is no store for this kind of URI, or an option is unknown.
    """
    spec = spec_or_uri if isinstance(spec_or_uri, StoreSpec) else StoreSpec(os.fspath(spec_or_uri))
    merged = {**dict(spec.options), **(options or {})}
    scheme, separator, rest = spec.uri.partition("://")
    if spec.uri.startswith(faults.SCHEME):
        return faults.registered(spec)
    if separator and scheme in objects.SCHEMES:
        return objects.open_objects(spec.uri, merged)
    if merged:
        raise InvalidConfigError(f"{spec.uri!r} accepts no storage options, got {sorted(merged)}: remove them")
    if spec.uri.startswith(memory.SCHEME):
        return memory.MemoryStore(rest.rstrip("/"))
    return LocalStore(_local_path(spec.uri))


def _local_path(uri: str) -> str:
    """Return the local path of a plain path, `file:///path`, `file://localhost/path` or `file:/path`."""
    if not uri:
        raise InvalidConfigError("the table's path is empty: give a path or URI")
    if uri.startswith("file:"):
        rest = uri.removeprefix("file:")
        path = rest.removeprefix("//").removeprefix("localhost") if rest.startswith("//") else rest
        if not path.startswith("/"):
            raise InvalidConfigError(f"{uri!r} names another host or a relative path: expected file:///absolute/path")
        return path
    scheme, separator, _ = uri.partition("://")
    if separator and "/" not in scheme:
        known = ", ".join(sorted({"file", "memory", *objects.SCHEMES}))
        raise InvalidConfigError(f"{uri!r}: no store for {scheme!r}; expected a path or one of {known}")
    return uri
