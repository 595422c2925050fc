r"""Java `.properties` text, the format of hoodie.properties and .hoodie_partition_metadata.

ISO-8859-1 lines, `#` and `!` comments, `key=value`, backslash escapes, continuation lines, and `\uXXXX` for
UTF-16 code units.
On-disk format: docs/format/table.md §1.1, §3.5 (partition metadata).
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from hoodie.errors import CorruptFileError

BYTES_MAX = 16 * 1024 * 1024
"""The greatest size of a file of properties. The longest property is a schema."""
_BLANKS = " \t\f"
_LINE_END = re.compile(r"\r\n|\r|\n")
_KEY_END = re.compile(r"(?:\\.|[^\\=: \t\f])*", re.DOTALL)
_SEPARATOR = re.compile(r"[ \t\f]*[=:]?[ \t\f]*")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)?", re.DOTALL)
_UNESCAPED = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_ESCAPED = {
    "\t": "\\t",
    "\n": "\\n",
    "\r": "\\r",
    "\f": "\\f",
    "\\": "\\\\",
    "=": "\\=",
    ":": "\\:",
    "#": "\\#",
    "!": "\\!",
}
_TO_ESCAPE = re.compile("[^\x20-\x7e]|[\\\\=:#!]")
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_COMMIT_TIME = "commitTime"
_PARTITION_DEPTH = "partitionDepth"
_DIGITS_MAX = 9


def parse_properties(data: bytes, *, path: str = "<memory>") -> dict[str, str]:
    """Parse a `.properties` file; the last value of a repeated key is used, as in Java.

    Raises: CorruptFileError if a unicode escape is malformed or half of a surrogate pair, or the file is no text or
        larger than `BYTES_MAX`.
    """
    if len(data) > BYTES_MAX:
        raise CorruptFileError(f"at most {BYTES_MAX} bytes of properties expected, found {len(data)}", path=path)
    if b"\0" in data:
        message = "properties are text; restore the file from a copy: a NUL byte found"
        raise CorruptFileError(message, path=path, offset=data.index(b"\0"))
    found: dict[str, str] = {}
    for line in _logical_lines(data.decode("latin-1")):
        key = _KEY_END.match(line)
        key_text = key.group() if key else ""
        separator = _SEPARATOR.match(line, len(key_text))
        start = separator.end() if separator else len(key_text)
        found[_unescape(key_text, path)] = _unescape(line[start:], path)
    return found


def properties_to_bytes(properties: Mapping[str, str], comments: Iterable[str] = ()) -> bytes:
    """Return the text of the properties in the given order, after one line `#<text>` for each of `comments`.

    Escapes exactly the characters that Java's writer escapes, so that both write the same line for the same property.
    """
    lines = [f"#{_escape_comment(text)}\n" for text in comments]
    lines += [f"{_escape_key(key)}={_escape_value(value)}\n" for key, value in properties.items()]
    return "".join(lines).encode("ascii")


def java_date(now: datetime) -> str:
    """Return the date line of Java's properties writer in UTC, such as `Sat Nov 21 12:34:49 UTC 2026`."""
    utc = now.astimezone(UTC)
    return f"{_DAYS[utc.weekday()]} {_MONTHS[utc.month - 1]} {utc:%d %H:%M:%S} UTC {utc.year:04d}"


def table_checksum(database: str | None, name: str) -> int:
    """Return the required value of `hoodie.table.checksum`: the CRC-32 of `<database>.<name>` and of nothing else."""
    return zlib.crc32(f"{database or ''}.{name}".encode())


def _logical_lines(text: str) -> Iterator[str]:
    """Drop comments and blank lines, and join continued lines."""
    pending = ""
    is_continued = False
    for natural in _LINE_END.split(text):
        line = natural.lstrip(_BLANKS)
        if not is_continued and (not line or line[0] in "#!"):
            continue
        backslashes = len(line) - len(line.rstrip("\\"))
        is_continued = backslashes % 2 == 1
        pending += line[:-1] if is_continued else line
        if not is_continued:
            if pending:
                yield pending
            pending = ""
    if pending:
        yield pending


def _unescape(text: str, path: str) -> str:
    if "\\" not in text:
        return text

    def replace(match: re.Match[str]) -> str:
        escape = match.group(1) or ""
        if len(escape) == 5:
            return chr(int(escape[1:], 16))
        if escape == "u":
            raise CorruptFileError(f"expected four hex digits after \\u, found {text[:100]!r}", path=path)
        return _UNESCAPED.get(escape, escape)

    # Escapes are UTF-16 code units: a surrogate pair becomes one character.
    units = _ESCAPE.sub(replace, text)
    try:
        return units.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
    except UnicodeDecodeError as error:
        message = f"both halves of a surrogate pair expected, found {text[:100]!r}"
        raise CorruptFileError(message, path=path) from error


def _escape_key(key: str) -> str:
    return _escape(key).replace(" ", "\\ ")


def _escape_value(value: str) -> str:
    escaped = _escape(value)
    # A reader would remove leading blanks only. Like Java, escape the first blank; then the reader keeps all blanks.
    return f"\\{escaped}" if escaped.startswith(" ") else escaped


def _escape(text: str) -> str:
    return _TO_ESCAPE.sub(lambda match: _ESCAPED.get(match.group()) or _unicode_escape(match.group()), text)


def _escape_comment(text: str) -> str:
    return re.sub("[^\x20-\x7e]", lambda match: _unicode_escape(match.group()), text)


def _unicode_escape(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i]:02X}{units[i + 1]:02X}" for i in range(0, len(units), 2))


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionMetadata:
    """First instant that wrote to a partition, and the number of folders between it and the base path.

    `commit_time` is None in files of a few old writers that did not store it. `partition_depth` is 0 in a
    non-partitioned table.
    """

    commit_time: str | None
    partition_depth: int

    @classmethod
    def parse(cls, data: bytes, *, path: str = "<memory>") -> PartitionMetadata:
        """Parse the file's content. Raises: CorruptFileError if the depth is missing or is not a number."""
        properties = parse_properties(data, path=path)
        depth = properties.get(_PARTITION_DEPTH, "")
        if not (depth.isascii() and depth.isdigit() and len(depth) <= _DIGITS_MAX):
            raise CorruptFileError(f"expected {_PARTITION_DEPTH}=<number>, found {depth[:100]!r}", path=path)
        return cls(commit_time=properties.get(_COMMIT_TIME), partition_depth=int(depth))

    def to_bytes(self, now: datetime) -> bytes:
        """Return the file's content in the JVM's form; `now` is the time in the date line."""
        properties = {} if self.commit_time is None else {_COMMIT_TIME: self.commit_time}
        properties[_PARTITION_DEPTH] = str(self.partition_depth)
        return properties_to_bytes(properties, ("partition metadata", java_date(now)))
