"""Types of key generators, and the properties of a table that select one.

On-disk format: docs/format/table.md §1.2 (`hoodie.table.keygenerator.*`), §3.3 and §3.4 (encoding of each type).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Final

from hoodie.errors import UnsupportedError
from hoodie.format.table import table_keys as keys


class KeyGeneratorType(StrEnum):
    """Type of a key generator, which makes record keys and partition paths from columns. On disk: do not change.

    The JVM's types with the suffix `_AVRO` encode in the same way and are read as the type without the suffix.
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
_CLASS_OF_TYPE: Final = {
    kind: f"org.apache.hudi.keygen.{name}"
    for name, kind in _TYPE_OF_CLASS.items()
    if kind not in (KeyGeneratorType.AUTO_RECORD, KeyGeneratorType.TABLE_METADATA) and not kind.startswith("SPARK_SQL")
}
_HUDI_PACKAGES = ("org.apache.hudi.", "org.apache.spark.sql.hudi.", "com.uber.hoodie.")


def key_generator_properties(kind: KeyGeneratorType, *, with_class: bool) -> dict[str, str]:
    """Return the properties that store a key generator: its type, and `with_class` also its class if Hudi has one."""
    of_class = {keys.KEY_GENERATOR_CLASS: _CLASS_OF_TYPE[kind]} if with_class and kind in _CLASS_OF_TYPE else {}
    return {keys.KEY_GENERATOR_TYPE: kind.value, **of_class}


def stored_key_generator(
    raw: Mapping[str, str], *, record_key_fields: Sequence[str], partition_fields: Sequence[str], path: str
) -> KeyGeneratorType:
    """Return a table's type: the stored type, else the type of the stored class, else inferred from the fields.

    Raises: UnsupportedError if the stored type does not exist in Hudi 1.2.
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
    if class_name.startswith(_HUDI_PACKAGES):
        return _TYPE_OF_CLASS.get(class_name.rpartition(".")[2].replace("Avro", ""), KeyGeneratorType.USER_PROVIDED)
    if class_name or text:
        return KeyGeneratorType.USER_PROVIDED
    return inferred_key_generator(record_key_fields, partition_fields)


def inferred_key_generator(record_key_fields: Sequence[str], partition_fields: Sequence[str]) -> KeyGeneratorType:
    """Return the type that Hudi selects if a table is created without a key generator type."""
    if not partition_fields:
        return KeyGeneratorType.NON_PARTITION
    if len(partition_fields) == 1 and len(record_key_fields) <= 1:
        return KeyGeneratorType.SIMPLE
    return KeyGeneratorType.COMPLEX
