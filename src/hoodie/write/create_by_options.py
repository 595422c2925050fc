"""Create the table of a write from its options, as JVM Hudi's data source does; docs/data-source.md."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

import pyarrow as pa

from hoodie.config.indexes import INDEX_TYPE_KEY, RECORD_UPDATE_PARTITION_PATH
from hoodie.config.translation import translated
from hoodie.config.writes import NEW_KEY_ENCODING
from hoodie.errors import InvalidConfigError, TableExistsError, TableNotFoundError
from hoodie.files.table_properties import read_table_config, table_exists
from hoodie.format.table import table_keys as keys
from hoodie.format.table.call_options import check_call_options, is_table_property
from hoodie.index import RECORD, IndexKind, index_kind, table_index
from hoodie.storage import Store
from hoodie.storage.memory import MemoryStore
from hoodie.view.table_state import TableState
from hoodie.view.table_view import TableView
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
_TIME_GENERATORS: Final = ("timestamp", "custom")
"""Key generators whose partition fields may be times."""
_OPERATION: Final = f"{_WRITE}.operation"
_VERSION: Final = ("hoodie.write.table.version", keys.VERSION)
_DEFINITION: Final = (
    keys.NAME,
    keys.TYPE,
    keys.RECORD_KEY_FIELDS,
    keys.PARTITION_FIELDS,
    keys.KEY_GENERATOR_TYPE,
    keys.HIVE_STYLE,
    keys.URL_ENCODE,
    keys.SLASH_SEPARATED_DATES,
    keys.POPULATE_META_FIELDS,
    keys.DROP_PARTITION_COLUMNS,
    keys.MERGE_MODE,
    keys.MERGE_STRATEGY_ID,
    keys.CDC_ENABLED,
    keys.CDC_LOGGING_MODE,
    keys.DELETE_FIELD,
    keys.DELETE_MARKER,
)
"""Properties by which two tables are the same to a write that overwrites one by the other."""
JVM_DEFAULTS: Final = {keys.HIVE_STYLE: "false"}
"""Table properties whose defaults differ in JVM Hudi."""
CREATION: Final = (*_LISTS, *_TEXTS, "table_version")
"""Options with the names and meanings of arguments of `hoodie.create`; lists are separated by commas."""


@dataclass(frozen=True, slots=True)
class TableOptions:
    """The options of a write that define its table: `arguments` of `hoodie.create`, and table properties.

    `idle`: the options of JVM Hudi that have no effect here. `defaults`: properties of new tables that the options do
    not have.
    """

    arguments: Mapping[str, Any] = field(default_factory=dict)
    properties: Mapping[str, str] = field(default_factory=dict)
    idle: Mapping[str, str] = field(default_factory=dict)
    defaults: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def split(cls, given: Mapping[str, str]) -> tuple[TableOptions, dict[str, str]]:
        """Return the options of the table, and the other ones. JVM Hudi's names are known beside those of `CREATION`.

        Table properties are options of the table if one of its arguments is given.

        Raises: InvalidConfigError for two values of one argument; as `translated`.
        """
        rest = dict(given)
        operation = _taken(rest, "operation", (_OPERATION,))
        version = _taken(rest, "table_version", _VERSION)
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
        if version:
            if not version.isdecimal():
                text = f"{_VERSION[0]}={version!r}"
                raise InvalidConfigError(f"{text}: expected the number of a table version, such as 9")
            arguments["table_version"] = int(version)
        if operation:
            rest["operation"] = operation.lower()
        properties = {name: rest.pop(name) for name in list(rest) if is_table_property(name)} if arguments else {}
        return cls(arguments, properties, known.idle), rest

    @property
    def of_calls(self) -> dict[str, str]:
        """The options that writes need in tables without them: types of partition fields, time formats, merge rule."""
        typed = [name for name in self.arguments.get("partition_by", ()) if ":" in name]
        types = {keys.PARTITION_FIELDS: ",".join(self.arguments["partition_by"])} if typed else {}
        times = {key: text for key, text in self.properties.items() if key.startswith(keys.TIMEBASED_PREFIX)}
        mode = self.arguments.get("merge_mode")
        merging = {} if mode is None else {keys.MERGE_MODE: f"{mode}_ordering".upper()}
        merging |= {key: text for key, text in self.properties.items() if key == keys.PAYLOAD_CLASS}
        return {**types, **times, **merging}

    def ensure(
        self, store: Store, schema: pa.Schema, call: Mapping[str, str], *, may_create: bool, compares: bool = True
    ) -> bool:
        """Create the table if there is none, an argument of it is given, and `may_create`; else compare it.

        `call` are the other options of the write, which are checked before. Two writers that come at once create one
        table. `compares`: a table that exists must have the arguments. Returns whether the table was created.

        Raises: TableNotFoundError; as `create_table` and `check_same_table`; InvalidConfigError for unknown options.
        """
        if not table_exists(store):
            if not may_create or not self.arguments.keys() - {"table_version"}:
                raise TableNotFoundError(
                    f"{store.uri('')} is not a Hudi table: create a table with hoodie.create(...), or name the columns "
                    f"of its record key with the option record_key (or {_WRITE}.recordkey.field) of a write that is "
                    f"no delete; with the option {keys.NAME} alone it has automatic keys"
                )
            check_call_options(call)
            try:
                create_table(store, schema, self._new_table(call))
            except TableExistsError:
                pass
            else:
                return True
        if self.arguments and compares:
            self._compare(store)
        return False

    def scratch(self, schema: pa.Schema, call: Mapping[str, str]) -> Store:
        """Return a store in memory with a new table of the arguments, and of the index that `call` chooses.

        Raises: as `create_table`.
        """
        store = MemoryStore()
        create_table(store, schema, replace(self._new_table(call), name=self.arguments.get("name", "table")))
        return store

    def defines(self, store: Store, schema: pa.Schema, call: Mapping[str, str]) -> bool:
        """Return whether a new table of the arguments and the schema would be as the table is; True without arguments.

        `call`: as for `ensure`. Raises: as `create_table`.
        """
        if not self.arguments:
            return True
        table = TableView.load(TableState(store))
        own = {"table_version": table.config.version.value, **self.arguments}
        # The keys of the rows show their encoding, which a new table needs as an option.
        likened = replace(self, arguments=own, properties={NEW_KEY_ENCODING.key: "false", **self.properties})
        wanted = TableView.load(TableState(likened.scratch(schema, call)))
        columns = [[(found.name, found.type) for found in view.schema().arrow] for view in (table, wanted)]
        defined = (key for key in _DEFINITION if key != keys.NAME or "name" in self.arguments)
        same = all(table.config.raw.get(key, "") == wanted.config.raw.get(key, "") for key in defined)
        same = same and table.config.ordering_fields == wanted.config.ordering_fields
        index = table_index(wanted.config)
        fixed = [option.key for option in index.own_options if option.key in call]
        same = same and all(table.config.raw.get(key) == wanted.config.raw.get(key) for key in fixed)
        return same and columns[0] == columns[1] and table_index(table.config) is index

    def _new_table(self, call: Mapping[str, str]) -> CreateOptions:
        named = self.arguments.get("index", call.get(INDEX_TYPE_KEY))
        encoding = {key: call[key] for key in (NEW_KEY_ENCODING.key,) if key in call}
        given = self.properties
        if str(self.arguments.get("key_generator")).lower() not in _TIME_GENERATORS:
            # Scripts pass the options of all their tables; a table without time formats stores none, as in JVM Hudi.
            given = {key: text for key, text in given.items() if not key.startswith(keys.TIMEBASED_PREFIX)}
        options = {} if named is None else self._index_options(index_kind(named), call)
        properties = {**self.defaults, **encoding, **options, **given}
        return CreateOptions(**{**self.arguments, "index": named}, properties=properties)

    def _index_options(self, kind: IndexKind, call: Mapping[str, str]) -> dict[str, str]:
        """Return the options of the call that its index stores in a new table.

        As in JVM Hudi, records of a record index that the options name and enable stay in their partition.
        """
        stored = [*kind.own_options, *filter(None, (kind.moves_option,))]
        found = {option.key: call[option.key] for option in stored if option.key in call}
        if self.defaults and kind is RECORD and any(switch.get(call) for switch in kind.switches):
            found.setdefault(RECORD_UPDATE_PARTITION_PATH.key, "false")
        return found

    def _compare(self, store: Store) -> None:
        config = read_table_config(store)
        own = {"type": config.table_type.value.lower(), "index": table_index(config).name}
        arguments = {**own, **self.arguments}
        if keys.PARTITION_FIELDS in self.of_calls and not config.partition_field_types:
            arguments["partition_by"] = tuple(name.partition(":")[0] for name in arguments["partition_by"])
        times = {key for key in self.properties if key.startswith(keys.TIMEBASED_PREFIX)}
        properties = {key: text for key, text in self.properties.items() if key in config.raw or key not in times}
        check_same_table(config, CreateOptions(**arguments, properties=properties))


def _taken(options: dict[str, str], name: str, aliases: tuple[str, ...]) -> str | None:
    """Take an option and its other names out of the options. Raises: InvalidConfigError if their values differ."""
    found = {key: options.pop(key).strip() for key in (name, *aliases) if key in options}
    if len(set(found.values())) > 1:
        raise InvalidConfigError(f"options {' and '.join(found)} are the same one, but have the values {found}")
    return next(iter(found.values()), None)
