"""Opens the store that a path or URI names."""

from __future__ import annotations

import os
from collections.abc import Mapping

from hoodie.errors import InvalidConfigError
from hoodie.storage import faults, memory, objects
from hoodie.storage.api import Store, StoreSpec
from hoodie.storage.local import LocalStore


def open_store(spec_or_uri: StoreSpec | str | os.PathLike[str], options: Mapping[str, str] | None = None) -> Store:
    """Open the folder that a path, URI or `StoreSpec` names; nothing is read or created.

    Takes plain paths, `file://` (the rest is the path as it is, not percent-encoded, as Hadoop takes it), `s3://`
    (also `s3a`, `s3n`), `gs://`, `az://` (also `abfs`, `abfss`), `memory://name`, and stores that
    `FaultStore.register` made known to this process.

    Args:
        spec_or_uri: what to open.
        options: settings of the object store, such as `aws_endpoint` or `aws_region`; they come on top of those of
            a `StoreSpec`. Local paths take none.

    Raises:
        InvalidConfigError: nothing here opens this kind of URI, or an option is not known.
    """
    spec = spec_or_uri if isinstance(spec_or_uri, StoreSpec) else StoreSpec(os.fspath(spec_or_uri))
    merged = {**dict(spec.options), **(options or {})}
    scheme, separator, rest = spec.uri.partition("://")
    if spec.uri.startswith(faults.SCHEME):
        return faults.registered(spec)
    if separator and scheme in objects.SCHEMES:
        return objects.open_objects(spec.uri, merged)
    if merged:
        raise InvalidConfigError(f"{spec.uri!r} takes no storage options, got {sorted(merged)}: remove them")
    if spec.uri.startswith(memory.SCHEME):
        return memory.MemoryStore(rest.rstrip("/"))
    return LocalStore(_local_path(spec.uri))


def _local_path(uri: str) -> str:
    """The local path of a plain path, `file:///path`, `file://localhost/path` or `file:/path`."""
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
