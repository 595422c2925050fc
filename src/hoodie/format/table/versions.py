"""Table versions and their differences on disk.

On-disk format: docs/format/table.md, version table and §8.
"""

from __future__ import annotations

from enum import IntEnum

from hoodie.errors import UnsupportedError


class TableVersion(IntEnum):
    """`hoodie.table.version`. On disk: do not change.

    Use the properties below instead of comparing numbers.
    """

    SIX = 6
    EIGHT = 8
    NINE = 9

    @classmethod
    def of(cls, number: int, *, path: str = "<memory>") -> TableVersion:
        """Return the version with this number.

        Raises:
            UnsupportedError: this release neither reads nor writes the version; the message names the tool that
                changes the version.
        """
        if number in _KNOWN:
            return cls(number)
        if number > cls.NINE:
            advice = "it was written by a newer Hudi: upgrade hoodie, or downgrade the table with that Hudi"
        elif number == 7:
            advice = "version 7 exists only during an upgrade: finish the upgrade with the Hudi release that began it"
        else:
            advice = "upgrade the table with Hudi 0.14 or newer first"
        raise UnsupportedError(f"{path}: table version 6, 8 or 9 expected, found {number}; {advice}")

    @property
    def layout_version(self) -> int:
        """`hoodie.timeline.layout.version` of this table version."""
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
        """Whether the instant in a log file's name is the base instant of its file slice (else the writing instant)."""
        return self is TableVersion.SIX

    @property
    def validates_log_blocks(self) -> bool:
        """Whether a reader must check the instant of every log block, and apply rollback blocks."""
        return self is TableVersion.SIX

    @property
    def stores_merge_mode(self) -> bool:
        """Whether `hoodie.record.merge.mode` and `hoodie.table.initial.version` are stored."""
        return self is not TableVersion.SIX

    @property
    def stores_payload_class(self) -> bool:
        """Whether a payload class and a merge strategy id are also stored for built-in merge modes."""
        return self is not TableVersion.NINE

    @property
    def stores_partition_field_types(self) -> bool:
        """Whether partition fields of a custom key generator are stored as `field:TYPE`."""
        return self is not TableVersion.SIX

    @property
    def names_single_complex_key(self) -> bool:
        """Whether a COMPLEX key of one field is always `field:value`; else it depends on the writer's release."""
        return self is TableVersion.NINE

    @property
    def is_written(self) -> bool:
        """Whether this release creates tables of this version and writes to them."""
        return self is TableVersion.NINE

    @property
    def can_be_rolled_back(self) -> bool:
        """Whether this release rolls back failed writes. In version 6 a log file may contain blocks of other writes."""
        return self is not TableVersion.SIX

    @property
    def has_typed_statistics(self) -> bool:
        """Whether rows of column statistics have the type of their values: the index version V2."""
        return self is TableVersion.NINE

    @property
    def has_known_metadata_table(self) -> bool:
        """Whether this release reads and writes the metadata table of this version."""
        return self is not TableVersion.SIX


_KNOWN = frozenset(int(version) for version in TableVersion)
