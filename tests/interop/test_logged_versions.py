"""Logged versions of records in many orders: the JVM and we read the rows that the model of the unit tests expects.

One log file holds all versions, step by step: whole rows, rows of some columns, rows that say that they are deletes,
and deletes with and without an ordering value. No writer makes such logs on request, so the test writes the blocks.
tests/unit/records/test_fold.py checks the fold against the same model.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hoodie
from hoodie.commit.write_instant import write_instant
from hoodie.files.logs.log_file import LogFileWriter
from hoodie.files.table_properties import update_table_config
from hoodie.format.avro.schema import META_FIELDS
from hoodie.format.filenames import LogFileName
from hoodie.format.instants.commit_metadata import WriteOperation, WriteStat
from hoodie.format.log.data_block import DataFormat, data_block, log_schema
from hoodie.format.log.delete_block import DeleteRecords
from hoodie.format.log.log_block import BlockType, HeaderKey, LogBlock
from hoodie.format.schema.table_schema import arrow_to_avro
from hoodie.format.table import table_keys
from hoodie.format.table.merge_config import MergeMode, PartialUpdateMode
from hoodie.index.simple import SimpleIndex
from hoodie.records.merging.fold import VersionKind
from hoodie.timeline import Action
from hoodie.view.slices import list_slices
from hoodie.view.table_state import TableState
from tests.interop.judges import Jvm
from tests.support.record_versions import (
    COMMIT,
    DELETE,
    EVENT,
    FIELDS,
    IN_ORDER,
    RECORD,
    ROW,
    UNAVAILABLE,
    Model,
    Version,
    rule_of,
    shown,
)
from tests.support.seeds import seeded

IS_DELETED = "_hoodie_is_deleted"
NAME = "versions"
KEYS = 400
STORED = Version(ROW, 1, {"a": "A", "b": "B"})
Shown = tuple[int | None, str | None, str | None]


@dataclass(frozen=True)
class Kind:
    """A kind of table, and the versions that its logs may hold."""

    mode: MergeMode
    update_mode: PartialUpdateMode | None = None
    is_partial: bool = False
    """Some rows have some of the columns. The JVM reads none of them beside a column `_hoodie_is_deleted`."""
    ordering: pa.DataType = pa.int64()  # noqa: RUF009
    orderings: tuple[int | None, ...] = (0, 1, 2, 3)

    @property
    def kinds(self) -> tuple[VersionKind, ...]:
        """Deletes that may be logged; by commit time the JVM fails on a row of some columns that follows one."""
        if self.mode is COMMIT:
            return () if self.is_partial else (DELETE, IN_ORDER)
        return (DELETE, RECORD) if self.is_partial else (DELETE, RECORD, IN_ORDER)

    @property
    def schema(self) -> pa.Schema:
        """The table's columns."""
        fields = [("id", pa.string()), ("ord", self.ordering), *((name, pa.string()) for name in FIELDS)]
        return pa.schema(fields if self.is_partial else [*fields, (IS_DELETED, pa.bool_())])

    def model(self) -> Model:
        """What merging must give."""
        rule = rule_of(self.mode, is_partial=self.is_partial, update_mode=self.update_mode)
        return Model(rule, null_rank=0 if pa.types.is_int32(self.ordering) else -1)


class Logged:
    """A table of one file group: a base file with some of the records, and one log file with all the versions."""

    def __init__(
        self, path: Path, kind: Kind, stored: Mapping[str, Version], logged: Mapping[str, Sequence[Version]]
    ) -> None:
        self.path, self._kind = path, kind
        ordering = "ord" if kind.mode is EVENT else None
        table = hoodie.create(
            path, kind.schema, record_key="id", ordering=ordering, type="merge_on_read", index="simple", name=NAME
        )
        rows = [{"id": key, "ord": row.ordering, **row.fields, IS_DELETED: False} for key, row in stored.items()]
        table.upsert(pa.Table.from_pylist(rows, schema=kind.schema))
        (found,) = list_slices(table.view())
        self._avro = arrow_to_avro(kind.schema, table_name=NAME)
        store = table.view().store
        with write_instant(
            TableState(store), Action.DELTA_COMMIT, WriteOperation.UPSERT, index=SimpleIndex(table.view())
        ) as write:
            log = LogFileName(found.file_id, write.instant_time, 1, "0-0-0").name
            with LogFileWriter(store, log) as writer:
                for step in range(max(map(len, logged.values()))):
                    now = {key: versions[step] for key, versions in logged.items() if step < len(versions)}
                    for block in self._blocks(now, write.instant_time):
                        writer.write(block)
            size = writer.size_bytes
            stat = WriteStat(file_id=found.file_id, path=log, partition_path="", log_files=(log,), file_size_bytes=size)
            write.commit([stat], schema=self._avro, extra_metadata={})
        if kind.update_mode is not None:
            unavailable = table_keys.MERGE_PROPERTY_PREFIX + table_keys.UNAVAILABLE_VALUE
            properties: dict[str, str | None] = {
                table_keys.PARTIAL_UPDATE_MODE: kind.update_mode.value,
                unavailable: UNAVAILABLE,
            }
            update_table_config(store, properties)

    def _blocks(self, now: Mapping[str, Version], instant_time: str) -> Iterator[LogBlock]:
        """One version of each key."""
        headers = {HeaderKey.INSTANT_TIME: instant_time, HeaderKey.SCHEMA: log_schema(self._avro, table_name=NAME)}
        for fields in {tuple(version.fields) for version in now.values() if version.kind in (ROW, IN_ORDER)}:
            rows = {
                key: version
                for key, version in now.items()
                if version.kind in (ROW, IN_ORDER) and tuple(version.fields) == fields
            }
            yield self._rows(rows, fields, instant_time)
        for kind in (DELETE, RECORD):
            gone = {key: version.ordering for key, version in now.items() if version.kind is kind}
            if gone:
                ordering = pa.array(gone.values(), self._kind.ordering if kind is RECORD else pa.int32())
                records = DeleteRecords(pa.array(gone), pa.array([""] * len(gone)), ordering)
                yield LogBlock(block_type=BlockType.DELETE, headers=headers, content=records.to_bytes())

    def _rows(self, rows: Mapping[str, Version], fields: tuple[str, ...], instant_time: str) -> LogBlock:
        """A data block of rows that all have these fields; a partial one if those are not all."""
        count, is_partial = len(rows), fields != FIELDS
        numbers = [f"{instant_time}_0_{number}" for number in range(count)]
        meta = [[instant_time] * count, numbers, list(rows), [""] * count, ["f"] * count]
        columns = {name: pa.array(texts, pa.string()) for name, texts in zip(META_FIELDS, meta, strict=True)}
        if not is_partial:
            columns["id"] = pa.array(rows)
        columns["ord"] = pa.array([row.ordering for row in rows.values()], self._kind.ordering)
        columns |= {name: pa.array([row.fields[name] for row in rows.values()], pa.string()) for name in fields}
        if IS_DELETED in self._kind.schema.names:
            columns[IS_DELETED] = pa.array([row.kind is IN_ORDER for row in rows.values()])
        named = ["ord", *fields] if is_partial else None
        return data_block(
            pa.table(columns),
            instant_time=instant_time,
            avro_schema=log_schema(self._avro, table_name=NAME, columns=named),
            data_format=DataFormat.AVRO,
            is_partial=is_partial,
        )

    def ours(self) -> dict[str, Shown]:
        """The rows as we read them."""
        return _shown(hoodie.open(self.path).to_arrow())

    def theirs(self, jvm: Jvm) -> dict[str, Shown]:
        """The rows as the JVM reads them."""
        return _shown(jvm.read(self.path))


def _shown(rows: pa.Table) -> dict[str, Shown]:
    return {row["id"]: (row["ord"], row["a"], row["b"]) for row in rows.to_pylist()}


def drawn(chooser: random.Random, kind: Kind) -> Version:
    """Any version that a log of such a table may hold."""
    chosen = chooser.choice([ROW] * 4 + list(kind.kinds))
    if chosen is DELETE:
        return Version(DELETE)
    values: dict[str, str | None] = {name: chooser.choice([None, "1", "2", UNAVAILABLE]) for name in FIELDS}
    if chosen is not ROW:
        # Of an int column, 0 and null stand for no ordering value.
        wanted = [value for value in kind.orderings if value]
        return Version(chosen, chooser.choice(wanted), {} if chosen is RECORD else values)
    if kind.is_partial and chooser.random() < 0.7:
        values = {name: value for name, value in values.items() if chooser.random() < 0.5}
    return Version(ROW, chooser.choice(kind.orderings), values)


def counterexamples(kind: Kind) -> dict[str, list[Version]]:
    """A row that loses to a delete before one that does not bring all fields; a plain delete in front, or none."""
    late: dict[str, str | None] = {"a": "late", "b": "late"}
    last: dict[str, str | None] = {} if kind.is_partial else {"a": None, "b": UNAVAILABLE}
    found: dict[str, list[Version]] = {}
    for delete in kind.kinds if kind.mode is EVENT else ():
        steps = [
            Version(delete, None if delete is DELETE else 1, dict.fromkeys(FIELDS) if delete is IN_ORDER else {}),
            Version(ROW, 0, late),
            Version(ROW, 1, last),
        ]
        found |= {f"{delete.name}, late, last": steps, f"delete, {delete.name}, late, last": [Version(DELETE), *steps]}
    return found


INT: dict[str, Any] = {"ordering": pa.int32(), "orderings": (None, -2, -1, 0, 1, 2)}
NOT_NEGATIVE: dict[str, Any] = {"ordering": pa.int32(), "orderings": (None, 0, 1, 2)}
KINDS = {
    "event time": Kind(EVENT),
    "event time, nulls": Kind(EVENT, **INT),
    "event time, ignore defaults": Kind(EVENT, PartialUpdateMode.IGNORE_DEFAULTS),
    "event time, nulls, ignore defaults": Kind(EVENT, PartialUpdateMode.IGNORE_DEFAULTS, **NOT_NEGATIVE),
    "event time, fill unavailable": Kind(EVENT, PartialUpdateMode.FILL_UNAVAILABLE),
    "event time, some columns": Kind(EVENT, is_partial=True),
    "event time, nulls, some columns": Kind(EVENT, is_partial=True, **INT),
    "commit time, ignore defaults": Kind(COMMIT, PartialUpdateMode.IGNORE_DEFAULTS),
    "commit time, fill unavailable": Kind(COMMIT, PartialUpdateMode.FILL_UNAVAILABLE),
    "commit time, some columns": Kind(COMMIT, is_partial=True),
}


@pytest.mark.matrix(keep=2)
@seeded(1)
@pytest.mark.parametrize("name", KINDS)
def test_versions_merge_one_after_the_other(jvm: Jvm, tmp_path: Path, name: str, seed: int) -> None:
    kind = KINDS[name]
    chooser = random.Random(seed)
    logged = {f"{n}": [drawn(chooser, kind) for _ in range(chooser.randint(1, 6))] for n in range(KEYS)}
    logged |= counterexamples(kind)
    # The JVM reads garbage where a row of some columns has no whole row under it.
    with_base = [key for key in logged if kind.is_partial or chooser.random() < 0.6]
    stored = {key: replace(STORED, ordering=chooser.choice(kind.orderings)) for key in with_base}
    model = kind.model()
    expected = {}
    for key, versions in logged.items():
        final = model.merge(stored.get(key), model.fold(versions), is_final=True)
        if (row := shown(final)) is not None:
            expected[key] = row
    table = Logged(tmp_path / "versions", kind, stored, logged)
    theirs = table.theirs(jvm)
    wrong = [key for key in logged if theirs.get(key) != expected.get(key)]
    assert not wrong, [(stored.get(key), logged[key], expected.get(key), theirs.get(key)) for key in wrong]
    assert table.ours() == theirs
    jvm.compact(table.path)
    assert table.ours() == table.theirs(jvm) == theirs
