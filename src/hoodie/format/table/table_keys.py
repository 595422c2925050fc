"""Keys of hoodie.properties. On disk: do not change.

On-disk format: docs/format/table.md §1.2.
"""

from __future__ import annotations

from typing import Final

NAME: Final = "hoodie.table.name"
DATABASE: Final = "hoodie.database.name"
TYPE: Final = "hoodie.table.type"
VERSION: Final = "hoodie.table.version"
INITIAL_VERSION: Final = "hoodie.table.initial.version"
LAYOUT_VERSION: Final = "hoodie.timeline.layout.version"
CHECKSUM: Final = "hoodie.table.checksum"
TABLE_FORMAT: Final = "hoodie.table.format"

RECORD_KEY_FIELDS: Final = "hoodie.table.recordkey.fields"
PARTITION_FIELDS: Final = "hoodie.table.partition.fields"
TYPED_PARTITION_FIELDS: Final = "hoodie.python.partition.fields"
"""The partition fields of a custom key generator as `field:TYPE`, in versions whose `PARTITION_FIELDS` has no types."""
ORDERING_FIELDS: Final = "hoodie.table.ordering.fields"
PRECOMBINE_FIELD: Final = "hoodie.table.precombine.field"
KEY_GENERATOR_TYPE: Final = "hoodie.table.keygenerator.type"
KEY_GENERATOR_CLASS: Final = "hoodie.table.keygenerator.class"
TIMEBASED_PREFIX: Final = "hoodie.keygen.timebased."
OLD_TIMEBASED_PREFIX: Final = "hoodie.deltastreamer.keygen.timebased."

HIVE_STYLE: Final = "hoodie.datasource.write.hive_style_partitioning"
URL_ENCODE: Final = "hoodie.datasource.write.partitionpath.urlencode"
SLASH_SEPARATED_DATES: Final = "hoodie.datasource.write.slash.separated.date.partitioning"
DROP_PARTITION_COLUMNS: Final = "hoodie.datasource.write.drop.partition.columns"
PARTITION_EXTRACTOR_CLASS: Final = "hoodie.table.partition_extractor_class"
PARTITION_METAFILE_IN_BASE_FORMAT: Final = "hoodie.partition.metafile.use.base.format"

POPULATE_META_FIELDS: Final = "hoodie.populate.meta.fields"
BASE_FILE_FORMAT: Final = "hoodie.table.base.file.format"
OLD_BASE_FILE_FORMAT: Final = "hoodie.table.ro.file.format"
MULTIPLE_BASE_FILE_FORMATS: Final = "hoodie.table.multiple.base.file.formats.enable"

MERGE_MODE: Final = "hoodie.record.merge.mode"
MERGE_STRATEGY_ID: Final = "hoodie.record.merge.strategy.id"
OLD_MERGE_STRATEGY_ID: Final = "hoodie.compaction.record.merger.strategy"
MERGE_PROPERTY_PREFIX: Final = "hoodie.record.merge.property."
PAYLOAD_CLASS: Final = "hoodie.compaction.payload.class"
LEGACY_PAYLOAD_CLASS: Final = "hoodie.table.legacy.payload.class"
PARTIAL_UPDATE_MODE: Final = "hoodie.table.partial.update.mode"
DELETE_FIELD: Final = "hoodie.payload.delete.field"
DELETE_MARKER: Final = "hoodie.payload.delete.marker"
UNAVAILABLE_VALUE: Final = "hoodie.write.partial.update.unavailable.value"

CDC_ENABLED: Final = "hoodie.table.cdc.enabled"
CDC_LOGGING_MODE: Final = "hoodie.table.cdc.supplemental.logging.mode"
CREATE_SCHEMA: Final = "hoodie.table.create.schema"
TIMEZONE: Final = "hoodie.table.timeline.timezone"
TIMELINE_PATH: Final = "hoodie.timeline.path"
HISTORY_PATH: Final = "hoodie.timeline.history.path"
ARCHIVE_FOLDER: Final = "hoodie.archivelog.folder"
METADATA_PARTITIONS: Final = "hoodie.table.metadata.partitions"
METADATA_PARTITIONS_INFLIGHT: Final = "hoodie.table.metadata.partitions.inflight"
INDEX_DEFINITIONS_PATH: Final = "hoodie.table.index.defs.path"
BOOTSTRAP_BASE_PATH: Final = "hoodie.bootstrap.base.path"
BOOTSTRAP_INDEX_ENABLE: Final = "hoodie.bootstrap.index.enable"
BOOTSTRAP_INDEX_TYPE: Final = "hoodie.bootstrap.index.type"
