"""Read change data: an operation, the time of the commit, and the images of a row before and after it.

Implements the output of Hudi's change data capture queries (RFC-51), with images as structs instead of JSON text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.engine import LocalEngine, TaskContext
from hoodie.files.merged_slice import written_keys
from hoodie.files.slices import FileSlice
from hoodie.format.log.cdc_block import CdcOperation
from hoodie.format.schema.arrow_types import blanks
from hoodie.read.cdc_plan import CdcPlan, GroupChange, logged_rows
from hoodie.read.local import KeySet, SliceScan
from hoodie.records.change import RECORD_KEY
from hoodie.records.differences import differing_rows
from hoodie.records.keys.sorting import KeyLookup
from hoodie.records.row_json import json_texts
from hoodie.storage import Store

if TYPE_CHECKING:
    from hoodie.records.condition import Condition
    from hoodie.records.expression import RowExpression

BEFORE = "before"
AFTER = "after"


def cdc_schema(images: pa.Schema, *, flat: bool) -> pa.Schema:
    """Return the schema of change data: `op`, `ts_ms`, and the two images, as structs or as columns with a prefix."""
    head = [pa.field("op", pa.string(), nullable=False), pa.field("ts_ms", pa.string(), nullable=False)]
    columns = [column.with_nullable(True) for column in images]
    if flat:
        named = [column.with_name(f"{image}_{column.name}") for image in (BEFORE, AFTER) for column in columns]
        return pa.schema([*head, *named])
    return pa.schema([*head, *(pa.field(image, pa.struct(columns)) for image in (BEFORE, AFTER))])


def with_json_images(schema: pa.Schema) -> pa.Schema:
    """Return a schema of `cdc_schema` with images as JSON text, as in the queries of JVM Hudi."""
    images = {name: schema.get_field_index(name) for name in (BEFORE, AFTER)}
    for name, place in images.items():
        schema = schema.set(place, pa.field(name, pa.string()))
    return schema


def json_images(changes: pa.RecordBatch) -> pa.RecordBatch:
    """Return changes with struct images as changes with a schema of `with_json_images`."""
    columns = [json_texts(column) if pa.types.is_struct(column.type) else column for column in changes.columns]
    return pa.RecordBatch.from_arrays(columns, schema=with_json_images(changes.schema))


def flat_images(changes: pa.RecordBatch, images: pa.Schema) -> pa.RecordBatch:
    """Return changes with struct images of these columns as changes with a column for each column of an image."""
    op, time, before, after = changes.columns
    return pa.RecordBatch.from_arrays(
        [op, time, *before.flatten(), *after.flatten()], schema=cdc_schema(images, flat=True)
    )


def read_cdc(plan: CdcPlan, *, flat: bool = False) -> pa.Table:
    """Read all changes of the plan, commit by commit. Memory: all changes.

    Raises: as `change_batches`; UnsupportedError for a condition that only Spark evaluates.
    """
    schema = cdc_schema(plan.schema, flat=flat)
    matching = None if plan.where is None else _matching(plan.where, plan.read)

    def read(change: GroupChange, context: TaskContext) -> pa.Table:
        found = []
        for batch in change_batches(plan.view.store, change, plan.read):
            rows = pa.Table.from_batches([batch])
            rows = rows if matching is None else matching.matching(rows)
            found += [_chosen(one, plan) for one in rows.to_batches()]
        return pa.Table.from_batches([flat_images(one, plan.schema) if flat else one for one in found], schema)

    tables = LocalEngine().run(read, plan.changes)
    return pa.concat_tables(tables) if tables else schema.empty_table()


def _matching(where: Condition, images: pa.Schema) -> RowExpression:
    """Return the condition on changes with struct images."""
    # Only a read with a condition loads the parser (decision 0015).
    from hoodie.read.image_condition import condition_on_images
    from hoodie.records.expression import RowExpression

    where.row_filter(images)
    return RowExpression.parse(condition_on_images(where, images), cdc_schema(images, flat=False), as_type=pa.bool_())


def _chosen(changes: pa.RecordBatch, plan: CdcPlan) -> pa.RecordBatch:
    """Return the changes with the chosen columns of the images."""
    if plan.schema.equals(plan.read):
        return changes
    schema = cdc_schema(plan.schema, flat=False)
    images = []
    for name in (BEFORE, AFTER):
        image = changes[name]
        columns = [pc.struct_field(image, list(path)) for path in plan.paths]
        images.append(pa.StructArray.from_arrays(columns, fields=list(schema.field(name).type), mask=pc.is_null(image)))
    return pa.RecordBatch.from_arrays([*changes.columns[:2], *images], schema=schema)


def change_batches(store: Store, change: GroupChange, images: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield the changed rows of one file group and one commit; the images are structs of these columns.

    They are read from CDC log files if these have both images with the columns of the table; else computed from slices:
    a row that the commit wrote is an update if its key was in the file group before, otherwise an insert. A key that is
    no longer in the file group is a delete. A record that moves to another partition is a delete and an insert. A row
    with another commit time is an update if the commit logged its key and its images differ (`CommitScans.late`).

    `images` may begin with the record key, which logged changes lack.

    Memory: the rows that the commit wrote into the file group, the record keys of the file group, and a row group; or
    the CDC log files and the rows of a block.

    Raises: MissingFileError, CorruptFileError; HistoryLostError if the log does not have the columns of the table, and
        the slice before the commit was cleaned.
    """
    scans, after, shape = change.scans, change.after, _Shape(images)
    logged = logged_rows(store, change.logged, list(scans.logged)) if change.logged else None
    if logged is not None:
        for rows in logged:
            yield from shape.logged(scans.instant_time, rows)
        return
    if change.lost is not None:
        raise change.lost
    written = _rows(store, after, scans.after)
    left = KeyLookup(_rows(store, after, scans.keys)[RECORD_KEY].combine_chunks())
    yield from _compared(_batches(store, change.before, scans.before), written, left, scans.instant_time, shape)
    if scans.late is None or after is None:
        return
    keys, (before_late, after_late) = written[RECORD_KEY].combine_chunks(), scans.late
    late = _scan_of_late_rows(store, after, after_late, scans.instant_time, keys, left)
    if late is not None:
        older = _numbered_keys(_rows(store, change.before, replace(before_late, keys=late.keys)))
        newer = _numbered_keys(_rows(store, after, late))
        left = KeyLookup(newer[RECORD_KEY].combine_chunks())
        shape = _Shape(shape.images, has_numbered_keys=True)
        yield from _compared(iter(older.to_batches()), newer, left, scans.instant_time, shape, only_differing=True)


def _compared(
    before: Iterator[pa.RecordBatch],
    written: pa.Table,
    left: KeyLookup,
    instant_time: str,
    shape: _Shape,
    *,
    only_differing: bool = False,
) -> Iterator[pa.RecordBatch]:
    """Yield the changes that lead from the rows before the commit to those that it wrote.

    `left` are all keys after the commit. With `only_differing`, a row whose images are the same is no change.
    """
    changed = KeyLookup(written[RECORD_KEY].combine_chunks())
    met = np.zeros(written.num_rows, np.bool_)
    for batch in before:
        stored = pa.Table.from_batches([batch])
        here, places = changed.find(stored[RECORD_KEY])
        met[places] = True
        older, newer = stored.take(pa.array(here)), written.take(pa.array(places))
        if only_differing:
            differs = pa.array(differing_rows(older, newer))
            older, newer = older.filter(differs), newer.filter(differs)
        yield from shape.rows(CdcOperation.UPDATE, instant_time, older, newer)
        stays, _ = left.find(stored[RECORD_KEY])
        is_gone = np.ones(stored.num_rows, np.bool_)
        is_gone[stays] = False
        yield from shape.rows(CdcOperation.DELETE, instant_time, stored.filter(pa.array(is_gone)), None)
    # Of several written rows with a key, one was met.
    keys = written[RECORD_KEY].combine_chunks()
    is_new = pc.invert(pc.is_in(keys, value_set=keys.filter(pa.array(met))))
    yield from shape.rows(CdcOperation.INSERT, instant_time, None, written.filter(is_new))


def _batches(store: Store, found: FileSlice | None, scan: SliceScan) -> Iterator[pa.RecordBatch]:
    return iter(()) if found is None else scan.batches(store, found)


def _rows(store: Store, found: FileSlice | None, scan: SliceScan) -> pa.Table:
    schema = pa.schema([scan.schema.field(name) for name in scan.columns])
    return pa.Table.from_batches(list(_batches(store, found, scan)), schema)


class _Shape:
    """Makes batches of change data from images, which are structs of columns."""

    def __init__(self, images: pa.Schema, *, has_numbered_keys: bool = False) -> None:
        """`has_numbered_keys`: `_numbered_keys` has made the record keys of the rows."""
        self.images, self._has_numbered_keys = images, has_numbered_keys
        self._schema = cdc_schema(images, flat=False)
        self._image_type = self._schema.field(BEFORE).type

    def logged(self, instant_time: str, rows: pa.Table) -> Iterator[pa.RecordBatch]:
        """Yield logged changes, with the columns `op`, `before` and `after`, which have the columns of the images."""
        columns = [rows["op"].combine_chunks(), pa.repeat(pa.scalar(instant_time), rows.num_rows)]
        for image in (BEFORE, AFTER):
            found = rows[image].combine_chunks()
            children = {child.name: values for child, values in zip(found.type, found.flatten(), strict=True)}
            columns.append(self._struct(children, mask=pc.is_null(found)))
        yield from pa.Table.from_arrays(columns, schema=self._schema).to_batches()

    def rows(
        self, operation: CdcOperation, instant_time: str, before: pa.Table | None, after: pa.Table | None
    ) -> Iterator[pa.RecordBatch]:
        """Yield the changes; one image may be missing, and both have the same rows otherwise."""
        found = before if before is not None else after
        assert found is not None
        if not found.num_rows:
            return
        head = [pa.repeat(pa.scalar(text), found.num_rows) for text in (str(operation), instant_time)]
        images = [self._image(rows, found.num_rows) for rows in (before, after)]
        yield from pa.Table.from_arrays([*head, *images], schema=self._schema).to_batches()

    def _image(self, rows: pa.Table | None, count: int) -> pa.Array:
        if rows is None:
            return blanks(self._image_type, count, is_null=True)
        if self._has_numbered_keys and RECORD_KEY in self.images.names:
            place = rows.schema.get_field_index(RECORD_KEY)
            keys = pc.replace_substring_regex(rows[RECORD_KEY], r":\d+$", "")
            rows = rows.set_column(place, rows.schema.field(place), keys)
        return self._struct({child.name: rows[child.name].combine_chunks() for child in self._image_type})

    def _struct(self, columns: Mapping[str, pa.Array], mask: pa.BooleanArray | None = None) -> pa.StructArray:
        fields = list(self._image_type)
        return pa.StructArray.from_arrays([columns[child.name] for child in fields], fields=fields, mask=mask)


def _scan_of_late_rows(
    store: Store, after: FileSlice, scan: SliceScan, instant_time: str, written: pa.StringArray, left: KeyLookup
) -> SliceScan | None:
    """Return `scan`, limited to the keys in the commit's log blocks whose rows have another commit time; None if none.

    In a merge-on-read table with ordering columns, a late row may fill fields of the row that wins, or make a deleted
    row visible again (docs/format/table.md §6.4, §6.5). The log blocks of the commit contain the keys of these rows.

    `after` is the slice after the commit. `written` are the keys of the rows with the commit's time, `left` all keys
    after the commit. Memory: the keys that the commit logged.
    """
    if not after.log_files or scan.merge is None:
        return None
    keys = written_keys(store, after, scan.merge, instant_time)
    keys = keys.filter(pc.invert(pc.is_in(keys, value_set=written)))
    found, _ = left.find(pa.chunked_array([keys]))
    return replace(scan, keys=KeySet.of(pa.table({RECORD_KEY: keys.take(pa.array(found))}))) if len(found) else None


def _numbered_keys(rows: pa.Table) -> pa.Table:
    """Return the rows with record keys that occur once: a number is appended, which counts the rows with the key.

    So rows of a key that a file group holds twice are compared in their order.

    >>> _numbered_keys(pa.table({RECORD_KEY: ["a", "b", "a"]}))[RECORD_KEY].to_pylist()
    ['a:0', 'b:0', 'a:1']
    """
    keys = rows[RECORD_KEY].combine_chunks()
    codes = np.asarray(keys.dictionary_encode().indices)
    order = np.argsort(codes, kind="stable")
    ordered, places = codes[order], np.arange(len(codes))
    numbers = np.empty_like(places)
    numbers[order] = places - np.searchsorted(ordered, ordered)
    numbered = pc.binary_join_element_wise(keys, pa.array(numbers).cast(pa.string()), ":")
    place = rows.schema.get_field_index(RECORD_KEY)
    return rows.set_column(place, rows.schema.field(place), numbered)
