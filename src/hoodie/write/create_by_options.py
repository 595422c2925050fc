"""Create the table of a write from its options, as JVM Hudi's data source does; docs/data-source.md."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa

from hoodie.config.hudi_options import translated
from hoodie.config.indexes import INDEX_TYPE_KEY
from hoodie.errors import InvalidConfigError, TableExistsError, TableNotFoundError
from hoodie.files.table_properties import read_table_config, table_exists
from hoodie.format.table import table_keys as keys
from hoodie.format.table.call_options import check_call_options, is_table_property
from hoodie.index import table_index
from hoodie.storage import Store
from hoodie.write.create import CreateOptions, check_same_table, create_table

_WRITE = "hoodie.datasource.write"
_LISTS: Final = {
    "record_key": (keys.RECORD_KEY_FIELDS,),
    "partition_by": (keys.PARTITION_FIELDS,),
    "ordering": (keys.PRECOMBINE_FIELD, keys.ORDERING_FIELDS),
}
_TEXTS: Final = {
    "type": (keys.TYPE,),
    "name": (keys.NAME,),
    "index": (),
    "merge_mode": (keys.MERGE_MODE,),
    "key_generator": (keys.KEY_GENERATOR_TYPE,),
}
_OPERATION: Final = f"{_WRITE}.operation"
CREATION: Final = (*_LISTS, *_TEXTS)
"""Options with the names and meanings of arguments of `hoodie.create`; lists are separated by commas."""


@dataclass(frozen=True, slots=True)
class TableOptions:
    """The options of a write that tell what its table is: `arguments` of `hoodie.create`, and table properties.

    `idle`: the options of JVM Hudi that have no effect here.
    """

    arguments: Mapping[str, Any] = field(default_factory=dict)
    properties: Mapping[str, str] = field(default_factory=dict)
    idle: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def split(cls, given: Mapping[str, str]) -> tuple[TableOptions, dict[str, str]]:
        """Return the options of the table, and the other ones. JVM Hudi's names are known beside those of `CREATION`.

        Table properties are options of the table if one of its arguments is given.

        Raises: InvalidConfigError for two values of one argument; as `translated`.
        """
        rest = dict(given)
        operation = _taken(rest, "operation", (_OPERATION,))
        known = translated(rest)
        rest = dict(known.properties)
        lists = {name: _taken(rest, name, aliases) for name, aliases in _LISTS.items()}
        arguments: dict[str, Any] = {
            name: tuple(part.strip() for part in text.split(",")) for name, text in lists.items() if text
        }
        texts = {name: _taken(rest, name, aliases) for name, aliases in _TEXTS.items()}
        arguments |= {name: text for name, text in texts.items() if text}
        if mode := arguments.get("merge_mode"):
            arguments["merge_mode"] = mode.lower().removesuffix("_ordering")
        if operation:
            rest["operation"] = operation.lower()
        properties = {name: rest.pop(name) for name in list(rest) if is_table_property(name)} if arguments else {}
        return cls(arguments, properties, known.idle), rest

    def ensure(self, store: Store, schema: pa.Schema, call: Mapping[str, str], *, may_create: bool) -> None:
        """Create the table if there is none, the record key is given, and `may_create`; else compare it.

        `call` are the other options of the write, which are checked before. Two writers that come at once create one
        table.

        Raises: TableNotFoundError; as `create_table` and `check_same_table`; InvalidConfigError for unknown options.
        """
        if not table_exists(store):
            if not may_create or "record_key" not in self.arguments:
                raise TableNotFoundError(
                    f"{store.uri('')} is not a Hudi table: create a table with hoodie.create(...), or name the columns "
                    f"of its record key with the option record_key (or {_WRITE}.recordkey.field) of a write that is "
                    "no delete"
                )
            check_call_options(call)
            index = {"index": call[INDEX_TYPE_KEY]} if INDEX_TYPE_KEY in call else {}
            try:
                create_table(store, schema, CreateOptions(**{**index, **self.arguments}, properties=self.properties))
            except TableExistsError:
                pass
            else:
                return
        if self.arguments:
            self._compare(store)

    def _compare(self, store: Store) -> None:
        config = read_table_config(store)
        own = {"type": config.table_type.value.lower(), "index": table_index(config).name}
        check_same_table(config, CreateOptions(**{**own, **self.arguments}, properties=self.properties))
        name = self.arguments.get("name", config.name)
        if name != config.name:
            raise InvalidConfigError(f"the table exists with name={config.name}, but the call has {name}")


def _taken(options: dict[str, str], name: str, aliases: tuple[str, ...]) -> str | None:
    """Take an option and its other names out of the options. Raises: InvalidConfigError if their values differ."""
    found = {key: options.pop(key).strip() for key in (name, *aliases) if key in options}
    if len(set(found.values())) > 1:
        raise InvalidConfigError(f"options {' and '.join(found)} are the same one, but have the values {found}")
    return next(iter(found.values()), None)
