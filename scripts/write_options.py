"""Write `docs/options.md`: the options of `hoodie.config`, and the table properties of `table_keys`.

Usage: python scripts/write_options.py docs/options.md (or `make docs`). A test of tests/tidy fails if the page is
stale.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from hoodie.config import OPTIONS, Option
from hoodie.config.hudi_options import Fate, HudiOption, hudi_options
from hoodie.format.table import table_keys as keys

INTRODUCTION = """# Options and table properties

`make docs` writes this page from `hoodie.config` and `hoodie.format.table.table_keys`; a test fails if it is stale.

## Options

Options are strings. `hoodie.create(…, properties={…})` stores them in the table, for all later writes, of the JVM too;
`properties=` of one call takes precedence for that call. An option that is not on this page is refused, with the most
similar known name.

*since* is the Hudi release that introduced the option. Options with `hoodie` in this column exist only here; JVM Hudi
ignores them.

"""

PROPERTIES = """
## Table properties

`.hoodie/hoodie.properties` holds them. They are fixed when the table is created; a call that gives another value is
refused. *default* is the value for a file that lacks the property. *since* is the lowest table version that may store
it. *set by* names the argument of `hoodie.create`; `properties`: `hoodie.create(…, properties={…})` may have it;
`always`: every new table has it; `writes`: writes and index builds store it; `read`: other writers store it, and
`hoodie` reads it. [§1.2 of the format page](format/table.md) has the details, and what the JVM does.

"""

# For each property: default, since, set by, what for.
TABLE_PROPERTIES: dict[str, tuple[str, str, str, str]] = {
    keys.NAME: ("required", "6", "`name`", "Name of the table."),
    keys.DATABASE: ("none", "6", "`properties`", "Database of the table; part of the checksum."),
    keys.TYPE: ("`COPY_ON_WRITE`", "6", "`type`", "`COPY_ON_WRITE` or `MERGE_ON_READ`."),
    keys.VERSION: ("required", "6", "`table_version`", "Table version: 6, 8 or 9."),
    keys.INITIAL_VERSION: ("none", "8", "`table_version`", "Table version at creation."),
    keys.LAYOUT_VERSION: (
        "required",
        "6",
        "`table_version`",
        "Version of the timeline's layout: 1 for table version 6, else 2.",
    ),
    keys.CHECKSUM: ("none", "6", "`name`", "Checksum of the names of database and table."),
    keys.TABLE_FORMAT: ("`native`", "6", "always", "Format of the table; others than `native` are refused."),
    keys.RECORD_KEY_FIELDS: (
        "none",
        "6",
        "`record_key`",
        "Columns of the record key; without it rows get [automatic keys](automatic-keys.md).",
    ),
    keys.PARTITION_FIELDS: (
        "none",
        "6",
        "`partition_by`",
        "Columns of the partition path, with types for the custom key generator.",
    ),
    keys.TYPED_PARTITION_FIELDS: (
        "none",
        "6",
        "`partition_by`",
        "The same with types, in a table of version 6 with the custom key generator; JVM Hudi ignores it.",
    ),
    keys.ORDERING_FIELDS: (
        "none",
        "6",
        "`ordering`",
        "Columns whose greater value marks the newer version of a record.",
    ),
    keys.PRECOMBINE_FIELD: ("none", "6", "read", f"Older name of `{keys.ORDERING_FIELDS}`."),
    keys.KEY_GENERATOR_TYPE: (
        "by the columns",
        "6",
        "`key_generator`",
        "How record key and partition path are made from the columns.",
    ),
    keys.KEY_GENERATOR_CLASS: ("none", "6", "read", "Class name of the key generator, of older writers."),
    keys.TIMEBASED_PREFIX: ("none", "6", "`properties`", "Prefix of the options of the timestamp key generator."),
    keys.OLD_TIMEBASED_PREFIX: ("none", "6", "read", f"Older prefix of `{keys.TIMEBASED_PREFIX}`."),
    keys.HIVE_STYLE: (
        "`false`",
        "6",
        "`properties`",
        "Partition folders are named `column=value`; `hoodie.create` stores `true`.",
    ),
    keys.URL_ENCODE: ("`false`", "6", "`properties`", "Partition values are encoded as in a URL."),
    keys.SLASH_SEPARATED_DATES: ("`false`", "6", "`properties`", "Dates are folders `yyyy/MM/dd`."),
    keys.DROP_PARTITION_COLUMNS: (
        "`false`",
        "6",
        "`properties`",
        "Data files lack the partition columns ([files without](stored-columns.md)).",
    ),
    keys.PARTITION_EXTRACTOR_CLASS: (
        "none",
        "6",
        "always",
        "Class by which the JVM's catalog sync reads partition values.",
    ),
    keys.PARTITION_METAFILE_IN_BASE_FORMAT: ("`false`", "6", "always", "Partition metadata files are Parquet files."),
    keys.POPULATE_META_FIELDS: (
        "`true`",
        "6",
        "`properties`",
        "The five `_hoodie_*` columns have values ([files without](stored-columns.md)).",
    ),
    keys.BASE_FILE_FORMAT: ("`PARQUET`", "6", "always", "Format of base files."),
    keys.OLD_BASE_FILE_FORMAT: ("none", "6", "read", f"Older name of `{keys.BASE_FILE_FORMAT}`."),
    keys.MULTIPLE_BASE_FILE_FORMATS: (
        "`false`",
        "8",
        "always",
        "Base files of several formats; `hoodie` stores `false`.",
    ),
    keys.MERGE_MODE: ("by the payload class", "8", "`merge_mode`", "How two versions of a record become one."),
    keys.MERGE_STRATEGY_ID: ("none", "6", "`merge_mode`", "Identifier of the merge strategy."),
    keys.OLD_MERGE_STRATEGY_ID: ("none", "6", "read", f"Older name of `{keys.MERGE_STRATEGY_ID}`."),
    keys.MERGE_PROPERTY_PREFIX: ("none", "9", "`properties`", "Prefix of properties of the merge rule."),
    keys.PAYLOAD_CLASS: (
        "none",
        "6",
        "`merge_mode`",
        "Class of the JVM that merges records; in version 9 for custom merge rules only.",
    ),
    keys.LEGACY_PAYLOAD_CLASS: ("none", "9", "read", "The payload class that merge mode and properties replace."),
    keys.PARTIAL_UPDATE_MODE: (
        "none",
        "9",
        "read",
        "`IGNORE_DEFAULTS` or `FILL_UNAVAILABLE`: values that the later version does not replace.",
    ),
    keys.DELETE_FIELD: (
        "none",
        "6",
        "`properties`",
        "Column that marks deleted records, with the value of the next property.",
    ),
    keys.DELETE_MARKER: ("none", "6", "`properties`", "Value of that column for a deleted record."),
    keys.UNAVAILABLE_VALUE: ("none", "6", "read", "Placeholder of values that a partial row lacks."),
    keys.CDC_ENABLED: ("`false`", "6", "`properties`", "Writes log change data, for JVM Hudi's change data queries."),
    keys.CDC_LOGGING_MODE: (
        "`DATA_BEFORE_AFTER`",
        "6",
        "`properties`",
        "What is logged of a change: also `DATA_BEFORE` and `OP_KEY_ONLY`.",
    ),
    keys.CREATE_SCHEMA: ("none", "6", "`schema`", "Schema at creation, as Avro JSON."),
    keys.TIMEZONE: ("`LOCAL`", "6", "`properties`", "Zone of instant times; `hoodie.create` stores `UTC`."),
    keys.TIMELINE_PATH: (
        "`timeline`",
        "6",
        "always",
        "Folder of the active timeline, below `.hoodie`; version 6 ignores it.",
    ),
    keys.HISTORY_PATH: (
        "`history`",
        "6",
        "always",
        "Folder of the archived timeline, below the active one; version 6 ignores it.",
    ),
    keys.ARCHIVE_FOLDER: (
        "`archived`",
        "6",
        "always",
        "Folder of the archived timeline of version 6, below `.hoodie`.",
    ),
    keys.METADATA_PARTITIONS: ("none", "6", "writes", "Partitions of the metadata table that readers may use."),
    keys.METADATA_PARTITIONS_INFLIGHT: ("none", "6", "writes", "Partitions of the metadata table that are built now."),
    keys.INDEX_DEFINITIONS_PATH: (
        "none",
        "6",
        "writes",
        "File with the definitions of the indexes, relative to the table.",
    ),
    keys.BOOTSTRAP_BASE_PATH: (
        "none",
        "6",
        "created by `hoodie.adopt`",
        "Folder of the source files of a bootstrapped table.",
    ),
    keys.BOOTSTRAP_INDEX_ENABLE: (
        "none",
        "6",
        "created by `hoodie.adopt`",
        "Always true; read by JVM writers: skeleton files have source files.",
    ),
    keys.BOOTSTRAP_INDEX_TYPE: ("none", "8", "created by `hoodie.adopt`", "Always `HFILE`; read by JVM writers."),
}


def page() -> str:
    """Return the content of the page. Raises: KeyError for a table property without an entry in this script."""
    known = sorted(value for name, value in vars(keys).items() if name.isupper() and isinstance(value, str))
    options = (_option_row(OPTIONS[key]) for key in sorted(OPTIONS))
    properties = ((f"`{key}`" + ("…" if key.endswith(".") else ""), *TABLE_PROPERTIES[key]) for key in known)
    return (
        INTRODUCTION
        + _table(("name", "default", "since", "what for"), options)
        + PROPERTIES
        + _table(("name", "default", "since", "set by", "what for"), properties)
        + _of_hudi()
    )


HUDI = """
## Options of JVM Hudi

Every key of JVM Hudi 1.2, old and second names too, is on this page or in these lists; `properties=` and
`format("hoodie")` take them. A key that is in none of them is refused as unknown.

"""

_HEADINGS = {
    Fate.NAME: "### Second names\n\nThe option on the left means the one on the right.\n",
    Fate.CLASS: "### Java classes\n\nThe value is a Java class that stands for a value of the option on the right.\n",
    Fate.CALL: "### Arguments and methods\n\nRefused in `properties=`, unless the value is the JVM's default.\n",
    Fate.REFUSED: "### Refused\n\nRefused, unless the value is the JVM's default, which is in parentheses.\n",
}


def _of_hudi() -> str:
    """Return the lists of what becomes of the options of JVM Hudi."""
    options = hudi_options().values()
    text = HUDI
    for fate, heading in _HEADINGS.items():
        found = [option for option in options if option.fate is fate]
        text += heading + "\n" + "".join(f"- {_hudi_line(option)}\n" for option in found) + "\n"
    text += "### Without effect\n\nAccepted; the notes of the result name them.\n\n"
    reasons: dict[str, list[str]] = {}
    for option in options:
        if option.fate is Fate.IDLE:
            reasons.setdefault(option.text, []).append(option.key)
    return text + "".join(f"- {why}: {', '.join(f'`{key}`' for key in found)}\n" for why, found in reasons.items())


def _hudi_line(option: HudiOption) -> str:
    if option.fate in (Fate.NAME, Fate.CLASS):
        return f"`{option.key}`: `{option.text}`"
    default = f" (`{option.default}`)" if option.default and option.fate is Fate.REFUSED else ""
    return f"`{option.key}`{default}: {option.text}"


def _option_row(option: Option[object]) -> tuple[str, str, str, str]:
    default = "" if option.default is None else str(option.default)
    if isinstance(option.default, bool):
        default = default.lower()
    if isinstance(option.default, tuple):
        default = ",".join(option.default)
    return f"`{option.key}`", f"`{default}`" if default else "none", option.since, option.doc


def _table(heading: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [heading, ["---"] * len(heading), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(page(), encoding="utf-8")
