"""Kinds of key generators, and how a table's properties name them.

On-disk format: docs/format/table.md §1.2 (`hoodie.table.keygenerator.*`), §3.3 and §3.4 (what each kind encodes).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Final

from hoodie.errors import UnsupportedError
from hoodie.format.table import table_keys as keys


class KeyGeneratorType(StrEnum):
    """How record keys and partition paths are made of columns. On disk: do not change.

    The `_AVRO` twins of the JVM encode alike and are read as the kind without the suffix.
    """

    SIMPLE = "SIMPLE"
    COMPLEX = "COMPLEX"
    TIMESTAMP = "TIMESTAMP"
    CUSTOM = "CUSTOM"
    NON_PARTITION = "NON_PARTITION"
    GLOBAL_DELETE = "GLOBAL_DELETE"
    AUTO_RECORD = "AUTO_RECORD"
    TABLE_METADATA = "HOODIE_TABLE_METADATA"
    SPARK_SQL = "SPARK_SQL"
    SPARK_SQL_UUID = "SPARK_SQL_UUID"
    SPARK_SQL_MERGE_INTO = "SPARK_SQL_MERGE_INTO"
    USER_PROVIDED = "USER_PROVIDED"


_TYPE_OF_CLASS: Final[Mapping[str, KeyGeneratorType]] = {
    "SimpleKeyGenerator": KeyGeneratorType.SIMPLE,
    "ComplexKeyGenerator": KeyGeneratorType.COMPLEX,
    "TimestampBasedKeyGenerator": KeyGeneratorType.TIMESTAMP,
    "CustomKeyGenerator": KeyGeneratorType.CUSTOM,
    "NonpartitionedKeyGenerator": KeyGeneratorType.NON_PARTITION,
    "GlobalDeleteKeyGenerator": KeyGeneratorType.GLOBAL_DELETE,
    "AutoRecordGenWrapperKeyGenerator": KeyGeneratorType.AUTO_RECORD,
    "HoodieTableMetadataKeyGenerator": KeyGeneratorType.TABLE_METADATA,
    "SqlKeyGenerator": KeyGeneratorType.SPARK_SQL,
    "UuidKeyGenerator": KeyGeneratorType.SPARK_SQL_UUID,
    "MergeIntoKeyGenerator": KeyGeneratorType.SPARK_SQL_MERGE_INTO,
}
_HUDI_PACKAGES = ("org.apache.hudi.", "org.apache.spark.sql.hudi.", "com.uber.hoodie.")


def stored_key_generator(
    raw: Mapping[str, str], *, record_key_fields: Sequence[str], partition_fields: Sequence[str], path: str
) -> KeyGeneratorType:
    """Return the kind a table uses: the stored type, else told by the stored class, else by the number of fields.

    Raises:
        UnsupportedError: the stored type is none that Hudi 1.2 knows.
    """
    text = raw.get(keys.KEY_GENERATOR_TYPE, "").strip().upper()
    if text:
        kind = text.removesuffix("_AVRO")
        if kind not in list(KeyGeneratorType):
            expected = ", ".join(KeyGeneratorType)
            raise UnsupportedError(f"{path}: {keys.KEY_GENERATOR_TYPE}: one of {expected} expected, found {text!r}")
        if kind != KeyGeneratorType.USER_PROVIDED:
            return KeyGeneratorType(kind)
    class_name = raw.get(keys.KEY_GENERATOR_CLASS, "").strip()
    if class_name:
        return _type_of_class(class_name)
    if text:
        return KeyGeneratorType.USER_PROVIDED
    return inferred_key_generator(record_key_fields, partition_fields)


def inferred_key_generator(record_key_fields: Sequence[str], partition_fields: Sequence[str]) -> KeyGeneratorType:
    """Return the kind that Hudi picks when a table is created without naming one."""
    if not partition_fields:
        return KeyGeneratorType.NON_PARTITION
    if len(partition_fields) == 1 and len(record_key_fields) <= 1:
        return KeyGeneratorType.SIMPLE
    return KeyGeneratorType.COMPLEX


def _type_of_class(class_name: str) -> KeyGeneratorType:
    if not class_name.startswith(_HUDI_PACKAGES):
        return KeyGeneratorType.USER_PROVIDED
    simple_name = class_name.rpartition(".")[2].replace("Avro", "")
    return _TYPE_OF_CLASS.get(simple_name, KeyGeneratorType.USER_PROVIDED)
