"""The paths of data files that files of the table name: in plans, commits, markers and listings.

Such a path decides which file is read or deleted, so it is checked before it reaches the store. The store checks it a
second time (`storage/paths.py`), and follows no symbolic link out of the table's folder.
"""

from __future__ import annotations

from hoodie.errors import CorruptFileError, PartitionPathError
from hoodie.format.filenames import parse_data_file
from hoodie.storage import Store
from hoodie.storage.paths import checked_path

_OWN_FOLDER = ".hoodie"


def named_data_file(store: Store, named: str, *, by: str) -> str:
    """Return the path, relative to the base path, of a data file that the file `by` of the table names.

    Accepted forms are an absolute path or URI below the base path (`/t/f`, `file:/t/f`, `file:///t/f`, `s3a://b/t/f`),
    and a path relative to it (`p/f`).

    Raises: CorruptFileError if the path is outside the table's folder or in `.hoodie`, has a `..` component, or is not
        the name of a base or log file.
    """
    path = _relative(named, store.uri(""))
    if path is None:
        raise _refusal(named, by, "it is not below the table's folder")
    try:
        checked_path(path)
    except PartitionPathError as error:
        raise _refusal(named, by, str(error)) from error
    if path.partition("/")[0] == _OWN_FOLDER:
        raise _refusal(named, by, "it is in the table's own folder .hoodie, where no data file is")
    if parse_data_file(path) is None:
        raise _refusal(named, by, "it has not the name of a base or log file")
    return path


def _relative(named: str, base: str) -> str | None:
    """Return the path relative to the base path; None for an absolute path or URI that is not below it."""
    if not named.startswith("/") and not _scheme(named):
        return named
    path, root = _without_scheme(named), _without_scheme(base).rstrip("/") + "/"
    return path[len(root) :] if path.startswith(root) else None


def _without_scheme(uri: str) -> str:
    """Return the path of a URI, with its bucket or host if there is one; local files have several URI forms."""
    scheme = _scheme(uri)
    return "/" + (uri[len(scheme) + 1 :] if scheme else uri).lstrip("/")


def _scheme(uri: str) -> str:
    """Return the scheme of a URI; empty for a path: the name of a partition may end with a colon."""
    scheme, separator, rest = uri.partition(":")
    is_uri = rest.startswith("//") or (scheme == "file" and rest.startswith("/"))
    return scheme if separator and is_uri and "/" not in scheme else ""


def _refusal(named: str, by: str, why: str) -> CorruptFileError:
    return CorruptFileError(
        f"expected the path of a data file of this table, found {named[:300]!r}: {why}. Nothing was read or deleted "
        "there; if the file was changed by hand, restore it, or delete the pending instant that it belongs to",
        path=by,
    )
