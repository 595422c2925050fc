"""The numbers of buckets by partition that a table with a simple bucket index stores.

docs/format/table.md §5.5. Each change of the numbers is one JSON file, named after its instant.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from hoodie.config.patterns import check_pattern, is_found
from hoodie.errors import CorruptFileError, UnsupportedError
from hoodie.format.json_text import parse_json_object

BUCKET_FOLDER: Final = ".hoodie/.bucket_index"
HASHING_CONFIG_FOLDER: Final = f"{BUCKET_FOLDER}/partition_bucket_index_meta/configs"
CONSISTENT_HASHING_FOLDER: Final = f"{BUCKET_FOLDER}/consistent_hashing_metadata"
HASHING_CONFIG_SUFFIX: Final = ".hashing_config"


@dataclass(frozen=True, slots=True)
class BucketCounts:
    """The number of buckets of each partition: that of the first rule whose pattern is found in its path, or `default`.

    `rules` are pairs of a pattern and a number.
    """

    default: int
    rules: tuple[tuple[str, int], ...] = ()

    def of(self, partition_path: str) -> int:
        """Return the number of buckets of a partition.

        >>> BucketCounts(8, (("2026-0[1-3]", 32),)).of("day=2026-02-07")
        32
        """
        return next((count for pattern, count in self.rules if is_found(pattern, partition_path)), self.default)

    @classmethod
    def parse(cls, expressions: str, default: int, *, where: str) -> BucketCounts:
        """Parse `pattern,number;pattern,number`. Raises: UnsupportedError if it has another form."""
        rules: list[tuple[str, int]] = []
        for expression in filter(None, expressions.split(";")):
            parts = [part.strip() for part in expression.strip().split(",")]
            if len(parts) != 2 or not parts[1].isdecimal() or int(parts[1]) == 0 or not _is_understood(parts[0]):
                raise UnsupportedError(
                    f"{where}: the number of buckets {expression!r} is not understood: expected a regular expression, "
                    "a comma and a number; write to the table with JVM Hudi"
                )
            rules.append((parts[0], int(parts[1])))
        return cls(default, tuple(rules))

    @classmethod
    def parse_file(cls, data: bytes, *, path: str) -> BucketCounts:
        """Parse a `.hashing_config` file. Raises: CorruptFileError; UnsupportedError for rules that are not known."""
        content = parse_json_object(data, path=path)
        expressions, default, rule = (content.get(name) for name in ("expressions", "defaultBucketNumber", "rule"))
        if not isinstance(expressions, str) or not isinstance(default, int) or default <= 0:
            raise CorruptFileError(
                f"expected expressions and defaultBucketNumber, found {expressions!r} and {default!r}", path=path
            )
        if str(rule).lower() != "regex":
            raise UnsupportedError(f"{path}: the rule {rule!r} is not known: expected regex; write with JVM Hudi")
        return cls.parse(expressions, default, where=path)


def _is_understood(pattern: str) -> bool:
    try:
        check_pattern(pattern)
    except ValueError:
        return False
    return True
