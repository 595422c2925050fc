"""Table versions and their differences on disk: the facts of each version.

On-disk format: docs/format/table.md, version table and §8.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final

from hoodie.errors import UnsupportedError
from hoodie.format.table.table_keys import ORDERING_FIELDS, PRECOMBINE_FIELD


@dataclass(frozen=True, slots=True, kw_only=True)
class TableVersion:
    """`hoodie.table.version`. Code reads a property, and compares no numbers."""

    SIX: ClassVar[TableVersion]
    EIGHT: ClassVar[TableVersion]
    NINE: ClassVar[TableVersion]

    value: int
    """The number. On disk: do not change."""
    layout_version: int
    """`hoodie.timeline.layout.version` of this table version."""
    archive_folder: str
    """Default of `hoodie.archivelog.folder` or `hoodie.timeline.history.path`."""
    has_completion_time_in_name: bool
    """Whether a completed instant file is named `<requested>_<completion>.<action>`."""
    commit_metadata_is_avro: bool
    """Whether commit, deltacommit and replacecommit files are Avro containers (JSON otherwise)."""
    inflight_clean_has_plan: bool
    """Whether readers expect the plan of a clean in its inflight file too."""
    log_name_has_base_instant: bool
    """Whether the instant in a log file's name is the base instant of its file slice (else the writing instant)."""
    validates_log_blocks: bool
    """Whether a reader must check the instant of every log block, and apply rollback blocks."""
    ordering_key: str
    """The property of the ordering columns in a new table; readers accept both names."""
    has_several_ordering_fields: bool
    """Whether all releases that write this version have several ordering columns."""
    has_log_compaction: bool
    """Whether log files can be compacted into one, and rows with some of the columns can be logged."""
    logs_avro: bool
    """Whether data blocks of log files are Avro by default: Hudi 0.15 reads no Parquet block of a column that is wider
    since."""
    pre_combines: bool
    """Whether the payload's `preCombine` chooses among versions in logs and records of a batch: Hudi 0.x."""
    stores_merge_mode: bool
    """Whether `hoodie.record.merge.mode` and `hoodie.table.initial.version` are stored."""
    stores_payload_class: bool
    """Whether a payload class and a merge strategy id are also stored for built-in merge modes."""
    stores_key_generator_class: bool
    """Whether the class of the key generator is stored too: releases before 1.0 have no type."""
    stores_partition_field_types: bool
    """Whether partition fields of a custom key generator are stored as `field:TYPE`."""
    names_single_complex_key: bool
    """Whether a COMPLEX key of one field is always `field:value`; else it depends on the writer's release."""
    has_typed_statistics: bool
    """Whether rows of column statistics have the type of their values: the index version V2."""
    has_partitioned_record_index: bool
    """Whether the releases of this version read a record index with file groups of its own for each data partition."""
    keeps_record_index: bool
    """Whether writers of the version keep a record index that only the table's properties enable."""
    has_index_definitions: bool
    """Whether the releases of this version read index definitions, and the indexes that came with them."""

    @classmethod
    def of(cls, number: int | TableVersion, *, path: str = "<memory>") -> TableVersion:
        """Return the version with this number.

        Raises: UnsupportedError if this release does not support the version; the message names the tool that changes
            the version.
        """
        if isinstance(number, TableVersion):
            return number
        if number in _BY_NUMBER:
            return _BY_NUMBER[number]
        if number > max(_BY_NUMBER):
            advice = "it was written by a newer Hudi: upgrade hoodie, or downgrade the table with that Hudi"
        elif number == 7:
            advice = "version 7 exists only during an upgrade: finish the upgrade with the Hudi release that began it"
        else:
            advice = "upgrade the table with Hudi 0.14 or newer first"
        raise UnsupportedError(f"{path}: table version 6, 8 or 9 expected, found {number}; {advice}")

    def __reduce__(self) -> tuple[Any, ...]:
        """Make a copy the version itself."""
        return TableVersion.of, (self.value,)


TableVersion.SIX = TableVersion(
    value=6,
    layout_version=1,
    archive_folder="archived",
    has_completion_time_in_name=False,
    commit_metadata_is_avro=False,
    inflight_clean_has_plan=True,
    log_name_has_base_instant=True,
    validates_log_blocks=True,
    ordering_key=PRECOMBINE_FIELD,
    has_several_ordering_fields=False,
    has_log_compaction=False,
    logs_avro=True,
    pre_combines=True,
    stores_merge_mode=False,
    stores_payload_class=True,
    stores_key_generator_class=True,
    stores_partition_field_types=False,
    names_single_complex_key=False,
    has_typed_statistics=False,
    has_partitioned_record_index=False,
    keeps_record_index=False,
    has_index_definitions=False,
)
TableVersion.EIGHT = TableVersion(
    value=8,
    layout_version=2,
    archive_folder="history",
    has_completion_time_in_name=True,
    commit_metadata_is_avro=True,
    inflight_clean_has_plan=False,
    log_name_has_base_instant=False,
    validates_log_blocks=False,
    ordering_key=PRECOMBINE_FIELD,
    has_several_ordering_fields=False,
    has_log_compaction=True,
    logs_avro=False,
    pre_combines=False,
    stores_merge_mode=True,
    stores_payload_class=True,
    stores_key_generator_class=False,
    stores_partition_field_types=True,
    names_single_complex_key=False,
    has_typed_statistics=False,
    has_partitioned_record_index=False,
    keeps_record_index=True,
    has_index_definitions=True,
)
TableVersion.NINE = replace(
    TableVersion.EIGHT,
    value=9,
    ordering_key=ORDERING_FIELDS,
    has_several_ordering_fields=True,
    stores_payload_class=False,
    names_single_complex_key=True,
    has_typed_statistics=True,
    has_partitioned_record_index=True,
)

VERSIONS: Final = (TableVersion.SIX, TableVersion.EIGHT, TableVersion.NINE)
"""The versions that this release reads and writes, oldest first."""
_BY_NUMBER: Final = {version.value: version for version in VERSIONS}
