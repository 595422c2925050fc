"""Table versions and what differs between them on disk.

On-disk format: docs/format/table.md, version table and §8.
"""

from __future__ import annotations

from enum import IntEnum

from hoodie.errors import UnsupportedError


class TableVersion(IntEnum):
    """`hoodie.table.version`. On disk: do not change.

    Code asks a predicate below instead of comparing numbers.
    """

    SIX = 6
    EIGHT = 8
    NINE = 9

    @classmethod
    def of(cls, number: int, *, path: str = "<memory>") -> TableVersion:
        """Return the version with this number.

        Raises:
            UnsupportedError: a version that this release neither reads nor writes; says which tool upgrades it.
        """
        if number in _KNOWN:
            return cls(number)
        if number > cls.NINE:
            advice = "it was written by a newer Hudi: upgrade hoodie, or downgrade the table with that Hudi"
        elif number == 7:
            advice = "7 is a half-way state of an upgrade: finish it with the Hudi release that began it"
        else:
            advice = "upgrade the table with Hudi 0.14 or newer first"
        raise UnsupportedError(f"{path}: table version 6, 8 or 9 expected, found {number}; {advice}")

    @property
    def layout_version(self) -> int:
        """`hoodie.timeline.layout.version` that belongs to it."""
        return 1 if self is TableVersion.SIX else 2

    @property
    def has_completion_time_in_name(self) -> bool:
        """Whether a completed instant file is named `<requested>_<completion>.<action>`."""
        return self is not TableVersion.SIX

    @property
    def commit_metadata_is_avro(self) -> bool:
        """Whether commit, deltacommit and replacecommit files are Avro containers (JSON otherwise)."""
        return self is not TableVersion.SIX

    @property
    def log_name_has_base_instant(self) -> bool:
        """Whether the instant in a log file's name is its slice's base instant (the writing instant otherwise)."""
        return self is TableVersion.SIX

    @property
    def validates_log_blocks(self) -> bool:
        """Whether a reader must check the instant of every log block, and obey rollback blocks."""
        return self is TableVersion.SIX

    @property
    def stores_merge_mode(self) -> bool:
        """Whether `hoodie.record.merge.mode` and `hoodie.table.initial.version` are stored."""
        return self is not TableVersion.SIX

    @property
    def stores_payload_class(self) -> bool:
        """Whether built-in merge modes are stored with a payload class and a merge strategy id besides."""
        return self is not TableVersion.NINE

    @property
    def stores_partition_field_types(self) -> bool:
        """Whether partition fields of a custom key generator are stored as `field:TYPE`."""
        return self is not TableVersion.SIX

    @property
    def names_single_complex_key(self) -> bool:
        """Whether a COMPLEX key of one field is always `field:value`; else the writer's release decides."""
        return self is TableVersion.NINE

    @property
    def is_written(self) -> bool:
        """Whether this release creates tables of this version, and writes to them."""
        return self is TableVersion.NINE

    @property
    def can_be_rolled_back(self) -> bool:
        """Whether this release takes back failed writes: in version 6 a log file may hold blocks of other writes."""
        return self is not TableVersion.SIX

    @property
    def has_known_metadata_table(self) -> bool:
        """Whether this release reads and writes its metadata table."""
        return self is not TableVersion.SIX


_KNOWN = frozenset(int(version) for version in TableVersion)
