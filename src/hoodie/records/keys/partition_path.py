"""Make partition paths from texts, and read the texts back from partition paths.

A partition path is the folder of a row, relative to the table's base path. On-disk format: docs/format/table.md §3.4;
checked by tests/golden/keys.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import PartitionPathError
from hoodie.format.table.table_keys import HIVE_STYLE, URL_ENCODE

DEFAULT_PARTITION: Final = "__HIVE_DEFAULT_PARTITION__"
"""Represents null and empty text. On disk: do not change."""

_ESCAPED: Final = [*(chr(code) for code in range(0x20)), *"\"#'*/:=?\\{[]^", "\x7f"]
_ESCAPED_PATTERN: Final = r"[%\x00-\x1f\x7f\"#'*/:=?\\{\[\]^]"

# Paths outside the table's folder, paths with a second spelling, and paths in the folder of the table's own files.
_REFUSED: Final = (
    (r"^/", "begins with /"),
    (r"/$", "ends with /"),
    (r"//", "has an empty component"),
    (r"(^|/)\.\.?(/|$)", "has a component . or .."),
    (r"^\.hoodie(/|$)", "is the folder of the table's own files"),
    (r"^[^/]*:", "has a colon that Hadoop reads as the end of a scheme"),
    (r"\x00", "has a NUL character"),
)
_WHOLE_NAME: Final = r"(^|/)(\.\.?|\.hoodie)(/|$)"
_ANY_REFUSED: Final = "|".join(f"(?:{pattern})" for pattern, _ in _REFUSED)


def partition_component(text: pa.StringArray, field: str, *, hive_style: bool, url_encode: bool) -> pa.StringArray:
    """Return a field's part of the path for each text.

    `url_encode` escapes the text, `hive_style` adds the prefix `field=`; null and empty text become the default
    partition.
    """
    missing = is_missing(text)
    text = escape(text) if url_encode else text
    text = pc.if_else(missing, DEFAULT_PARTITION, text)
    return pc.binary_join_element_wise(f"{field}=", text, "") if hive_style else text


def is_missing(text: pa.StringArray) -> pa.BooleanArray:
    """Mark null and empty texts."""
    return pc.fill_null(pc.equal(pc.binary_length(text), 0), True)


def escape(text: pa.StringArray) -> pa.StringArray:
    """Return the text with Hive's special characters as `%XX`; spaces, `}` and characters beyond ASCII stay."""
    if not pc.any(pc.match_substring_regex(text, _ESCAPED_PATTERN)).as_py():
        return text
    text = pc.replace_substring(text, "%", "%25")
    for char in _ESCAPED:
        text = pc.replace_substring(text, char, f"%{ord(char):02X}")
    return text


def check_paths(paths: pa.StringArray, *, limits: tuple[int, int] | None = None, url_encode: bool = False) -> None:
    """Refuse paths outside the table's folder, paths among its own files, and paths that the JVM cannot open.

    `limits` are the greatest bytes of a component and of a path that the table's storage has; None: no limit.
    `url_encode`: special characters are escaped already.

    Raises: PartitionPathError if there are such paths; the error contains their count, three examples and the remedy.
    """
    if limits is not None:
        _check_lengths(paths, *limits)
    bad = pc.match_substring_regex(paths, _ANY_REFUSED)
    count = pc.sum(bad).as_py() or 0
    if not count:
        return
    examples = paths.filter(bad).slice(0, 3).to_pylist()
    shown = "; ".join(f"{path!r} {_problem(path)}" for path in examples)
    # No escape changes a component of dots; the name of its column in front does.
    is_whole = url_encode or pc.all(pc.match_substring_regex(paths.filter(bad), _WHOLE_NAME)).as_py()
    raise PartitionPathError(
        f"{count} partition paths cannot be folders of a table ({shown}); clean the values, or create the table with "
        f"{HIVE_STYLE if is_whole else URL_ENCODE}=true"
    )


def _problem(path: str) -> str:
    return next(problem for pattern, problem in _REFUSED if re.search(pattern, path))


def _check_lengths(paths: pa.StringArray, name_bytes_max: int, path_bytes_max: int) -> None:
    longest = pc.max(pc.binary_length(paths)).as_py() or 0
    if longest <= min(name_bytes_max, path_bytes_max):
        return
    names = pc.list_flatten(pc.split_pattern(paths, "/"))
    for texts, bytes_max, what in ((names, name_bytes_max, "folder names"), (paths, path_bytes_max, "paths")):
        long = texts.filter(pc.greater(pc.binary_length(texts), bytes_max))
        if len(long):
            example = f"{long[0].as_py()[:60]!r}… of {len(long[0].as_py().encode())} bytes"
            raise PartitionPathError(
                f"partition {what} of at most {bytes_max} bytes expected, which the table's storage can store, found "
                f"{len(long)} longer ones ({example}); shorten the values, or partition by another column"
            )


def component_texts(
    path: str, fields: Sequence[str], *, hive_style: bool, url_encode: bool
) -> dict[str, str | None] | None:
    """Return the text of each field in a partition path; None if the texts cannot be read from the path.

    A text of None means the default partition. A value with slashes can be read if there is only one field, or if hive
    style marks the fields and no other values make the same path.
    """
    plain = [path] if len(fields) == 1 else path.split("/")
    texts = _split_hive(path, fields) if hive_style else plain
    if texts is None or len(texts) != len(fields):
        return None
    try:
        decoded = [unquote(text, errors="strict") if url_encode else text for text in texts]
    except UnicodeDecodeError:
        return None
    return {field: None if text == DEFAULT_PARTITION else text for field, text in zip(fields, decoded, strict=True)}


def _split_hive(path: str, fields: Sequence[str]) -> list[str] | None:
    """Cut the path before each name; None if a name is missing, or if the path can be cut in several ways."""
    marks = [f"/{field}=" for field in fields]
    path = f"/{path}"
    if not fields or not path.startswith(marks[0]):
        return None
    starts, first = [0], len(marks[0])
    for mark in marks[1:]:
        starts.append(path.find(mark, first))
        first = starts[-1] + len(mark)
    end = len(path)
    for mark, start in zip(reversed(marks), reversed(starts), strict=True):
        # The last place of each name: if it is not the first place too, there are several ways.
        if start < 0 or (start and path.rfind(mark, 0, end) != start):
            return None
        end = start
    ends = [*starts[1:], len(path)]
    return [path[start + len(mark) : stop] for mark, start, stop in zip(marks, starts, ends, strict=True)]
