"""Read every file of the newest file slices, and compare keys and the record index. Runs on the engine of the table.

Workers run plain functions over Arrow batches. Memory of a task that reads files: one row group, or for a slice with
log files as `read_file_slice`; of a task that compares keys: see `services.indexing.key_check`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.commit.call import Call
from hoodie.engine import TaskContext
from hoodie.engine.packing import chunks
from hoodie.errors import CorruptFileError, HoodieError, IndexUnavailableError, PartitionPathError, UnsupportedError
from hoodie.files.base_file import open_base_file, stored_rows
from hoodie.files.merged_slice import SliceRead, read_file_slice
from hoodie.files.slices import BaseFile, FileSlice, LogFile
from hoodie.format.filenames import bucket_of_file_id
from hoodie.format.table.table_config import TableConfig
from hoodie.index import HBASE, RECORD, index_of_view, stored_index
from hoodie.index.bucket import BucketRule, rule_of_reads
from hoodie.index.hbase.client import has_client_library
from hoodie.index.record.building.check import IndexProblem
from hoodie.metadata.kinds.partition_kind import PartitionKind
from hoodie.metadata.kinds.registry import KINDS
from hoodie.records.change import RECORD_KEY
from hoodie.records.keys.key_generator import KeyGenerator
from hoodie.results import EXAMPLES_MAX, Report
from hoodie.services.check import kinds
from hoodie.services.check.survey import Problem, Survey
from hoodie.services.indexing.file_builds import verify_partition
from hoodie.services.indexing.hbase import verify_hbase_index
from hoodie.services.indexing.key_check import KeyRule, keys_that_break, partition_generator
from hoodie.services.indexing.verify import verify_record_index
from hoodie.storage import Store, StoreSpec, open_store
from hoodie.view.columns import whole_read
from hoodie.view.slices import data_table
from hoodie.view.table_view import TableView

_TASK_BYTES = 256 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class DataCheck:
    """The problems of the data, the number of rows that were read, and what was not checked.

    `misplaced` are the rows whose partition columns have other values than their folder; `examples` are a few keys.
    """

    problems: tuple[Problem, ...]
    rows: int = 0
    notes: tuple[str, ...] = ()
    misplaced: int = 0
    examples: tuple[str, ...] = ()


def check_data(call: Call, survey: Survey, slices: Sequence[FileSlice], *, reads_index: bool = True) -> DataCheck:
    """Read the files of `slices` that exist; then compare keys and index, unless a file is damaged or missing.

    `reads_index`: the metadata table is whole, so that the record index can be read.
    """
    whole = [found for found in slices if all(path in survey.data_files for path in found.paths)]
    try:
        read = whole_read(survey.view)
    except HoodieError as error:
        return DataCheck((), notes=(f"no file was read: {error}",))
    generator, index = partition_generator(survey.view.config), stored_index(survey.view.config)
    rule = rule_of_reads(survey.view) if index is not None and index.places_rows else None
    tasks = [
        _Task(survey.view.store.spec, group, _rows_of(survey, group), read, generator, rule)
        for group in chunks(whole, _TASK_BYTES)
    ]
    engine = call.engine_for(sum(found.size_bytes for found in whole))
    results = engine.run(_read_slices, tasks)
    problems = tuple(problem for found in results for problem in found.problems)
    notes = tuple(dict.fromkeys(note for found in results for note in found.notes))
    notes += _misplaced_note(results, survey.view.config)
    rows = sum(found.rows for found in results)
    is_damaged = any(problem.kind is kinds.FILE_DAMAGED for problem in problems)
    if is_damaged or len(whole) < len(slices) or not reads_index:
        return DataCheck(problems, rows, (*notes, "keys were not compared, as files are damaged or missing"))
    keys = _check_keys(call, survey, whole, read)
    found = (keys, *(_check_partition(call, survey, kind) for kind in KINDS.built))
    problems += tuple(problem for check in found for problem in check.problems)
    return DataCheck(problems, rows, (*notes, *(note for check in found for note in check.notes)))


@dataclass(frozen=True, slots=True)
class _Task:
    """Slices to read, and the rows that their commits recorded for base files, by path.

    `generator` makes the partition path of a row from its columns; None if that is not known, or there are no
    partitions. `rule`: the bucket rule of the table; None for tables with another index.
    """

    store: StoreSpec
    slices: tuple[FileSlice, ...]
    recorded: Mapping[str, int]
    read: SliceRead
    generator: KeyGenerator | None = None
    rule: BucketRule | None = None


@dataclass(slots=True)
class _Rows:
    """Counts the rows of a slice, those whose columns name another partition, and those whose key has another bucket.

    Without `generator` and `rule` it counts only rows.
    """

    file_slice: FileSlice
    generator: KeyGenerator | None = None
    rule: BucketRule | None = None
    count: int = 0
    misplaced: int = 0
    examples: list[str] = field(default_factory=list)
    strange: int = 0
    strange_keys: list[str] = field(default_factory=list)

    def add(self, rows: pa.Table) -> None:
        """Count rows. Those of a file without the partition columns are in the right partition."""
        self.count += rows.num_rows
        self._find_strange(rows)
        if self.generator is None:
            return
        for batch in rows.to_batches():
            try:
                wrong = pc.not_equal(self.generator.partition_paths(batch), self.file_slice.partition_path)
            except PartitionPathError:
                return
            found = wrong.true_count
            self.misplaced += found
            if found and RECORD_KEY in batch.schema.names and not self.examples:
                self.examples = batch.column(RECORD_KEY).filter(wrong).slice(0, EXAMPLES_MAX).to_pylist()

    def _find_strange(self, rows: pa.Table) -> None:
        if self.rule is None or RECORD_KEY not in rows.column_names:
            return
        path, bucket = self.file_slice.partition_path, bucket_of_file_id(self.file_slice.file_id)
        for keys in rows.column(RECORD_KEY).chunks:
            wrong = self.rule.buckets(keys, path) != bucket
            self.strange += int(wrong.sum())
            if len(self.strange_keys) < EXAMPLES_MAX:
                self.strange_keys += keys.filter(pa.array(wrong)).slice(0, EXAMPLES_MAX).to_pylist()

    def problems(self) -> Iterator[Problem]:
        """Yield the finding of a slice with keys of other buckets."""
        if self.strange:
            bucket = bucket_of_file_id(self.file_slice.file_id)
            expected = "the bucket of a file id" if bucket is None else f"only keys of bucket {bucket}"
            found = f"{self.strange:,} others, e.g. {self.strange_keys[:EXAMPLES_MAX]}"
            yield Problem(kinds.BUCKET_WRONG, self.file_slice.paths[0], expected, found)


def _misplaced_note(results: Sequence[DataCheck], config: TableConfig) -> tuple[str, ...]:
    count = sum(found.misplaced for found in results)
    if not count:
        return ()
    keys = [key for found in results for key in found.examples][:EXAMPLES_MAX]
    return (
        f"{count:,} rows have other values of {', '.join(config.partition_fields)} than their partition, e.g. the rows "
        f"with the keys {keys}: JVM Hudi shows the values of the partition, this library and hudi-rs the stored ones",
    )


def _rows_of(survey: Survey, slices: Sequence[FileSlice]) -> dict[str, int]:
    if survey.view.config.bootstrap_base_path:
        return {}  # a skeleton file has other rows than its commit recorded
    paths = {found.base_file.path for found in slices if found.base_file is not None}
    return {
        stat.path: stat.num_writes
        for commit in survey.commits.values()
        for stat in commit.write_stats()
        if stat.path in paths and stat.path is not None
    }


def _read_slices(task: _Task, _context: TaskContext) -> DataCheck:
    store = open_store(task.store)
    problems: list[Problem] = []
    notes: list[str] = []
    read: list[_Rows] = []
    for found in task.slices:
        path = found.paths[0]
        try:
            rows = _Rows(found) if found.log_files else _Rows(found, task.generator, task.rule)
            if found.base_file is not None:
                other_rows = _read_base(store, found.base_file, task.recorded.get(path), rows)
                if other_rows is not None:
                    problems.append(other_rows)
                    continue
            if found.log_files:
                path = found.log_files[-1].path
                rows = _Rows(found, task.generator, task.rule)
                for piece in read_file_slice(store, found, task.read):
                    rows.add(piece)
            read.append(rows)
            problems += rows.problems()
        except UnsupportedError as error:
            notes.append(f"not read: {error}")
        except (HoodieError, FileNotFoundError) as error:
            problems.append(_damage(store, found, path, error))
    return DataCheck(
        tuple(problems),
        sum(rows.count for rows in read),
        tuple(notes),
        sum(rows.misplaced for rows in read),
        tuple(key for rows in read for key in rows.examples)[:EXAMPLES_MAX],
    )


def is_damaged(view: TableView, found: FileSlice, path: str) -> bool:
    """Return whether a file of a slice cannot be read, or has another length than in the listing."""
    if found.base_file is not None and found.base_file.path == path:
        file: BaseFile | LogFile = found.base_file
        alone = replace(found, log_files=())
    else:
        file = next(log for log in found.log_files if log.path == path)
        alone = replace(found, base_file=None, log_files=(file,))
    info = view.store.head(path)
    if info is None or info.size_bytes != file.size_bytes:
        return True
    return bool(_read_slices(_Task(view.store.spec, (alone,), {}, whole_read(view)), TaskContext(0, 0, 0)).problems)


def damaged_logs(call: Call, view: TableView, slices: Sequence[FileSlice]) -> tuple[Problem, ...]:
    """Read the log files of slices, without their base files; return one problem for each slice with a damaged one.

    Raises: as `whole_read`.
    """
    logs = [replace(found, base_file=None) for found in slices if found.log_files]
    read = whole_read(view)
    tasks = [_Task(view.store.spec, group, {}, read) for group in chunks(logs, _TASK_BYTES)]
    results = call.engine_for(sum(found.size_bytes for found in logs)).run(_read_slices, tasks)
    return tuple(problem for found in results for problem in found.problems)


def _read_base(store: Store, file: BaseFile, recorded: int | None, rows: _Rows) -> Problem | None:
    """Read all pages of a base file, which have checksums; return a problem if its rows are more or fewer."""
    if not file.name.endswith(".parquet"):
        raise UnsupportedError(f"{store.uri(file.path)}: this release reads base files in Parquet only")
    with open_base_file(store, file) as (parquet, _):
        for piece in stored_rows(parquet, parquet.schema_arrow, where=store.uri(file.path)):
            rows.add(piece)
        stored = parquet.metadata.num_rows
    if rows.count == stored and recorded in (None, stored):
        return None
    expected = stored if recorded is None else recorded
    return Problem(kinds.FILE_DAMAGED, file.path, f"{expected} rows", f"{rows.count} rows")


def _check_keys(call: Call, survey: Survey, slices: Sequence[FileSlice], read: SliceRead) -> DataCheck:
    """Compare the record index with the data if the table has one for the whole table; otherwise only the keys."""
    config = survey.view.config
    if not config.populates_meta_fields:
        return DataCheck((), notes=("keys were not compared, as the files store none",))
    kind = index_of_view(survey.view)
    if kind is RECORD and RECORD.needs_one_of(config.metadata_partitions):
        return _check_index(call)
    found, is_compared = _check_hbase(call) if kind is HBASE else (DataCheck(()), False)
    if is_compared:
        return found
    # Find keys of several rows: in the whole table, or in each partition.
    rule = KeyRule.ONE_ROW if kind.is_global else KeyRule.ONE_ROW_IN_PARTITION
    doubled = keys_that_break(rule, survey.view, call.engine_for, slices, read)
    problems = [
        Problem(kinds.KEY_DOUBLED, key, "one row", f"several rows, one in {'/'.join(group)}")
        for key, group in doubled.examples
    ]
    notes = (f"{doubled.count:,} keys have several rows",) if doubled.count else ()
    return DataCheck((*found.problems, *problems), notes=(*found.notes, *notes))


def _check_index(call: Call) -> DataCheck:
    try:
        report = verify_record_index(call.state, call.engine_for)
    except HoodieError as error:
        return DataCheck((Problem(kinds.INDEX_DIFFERS, "record_index", found=str(error)),))
    return _of_index(report, kinds.INDEX_DIFFERS)


def _check_hbase(call: Call) -> tuple[DataCheck, bool]:
    """Compare the HBase index with the data; return also whether the keys of the data were compared."""
    if not has_client_library():
        return DataCheck((), notes=("the HBase index was not compared: pip install 'hoodie[hbase]'",)), False
    try:
        report = verify_hbase_index(call.state, call.engine_for)
    except IndexUnavailableError as error:
        return DataCheck((), notes=(f"the HBase index was not compared: {error}",)), False
    except HoodieError as error:
        return DataCheck((Problem(kinds.HBASE_DIFFERS, HBASE.name, found=str(error)),)), False
    return _of_index(report, kinds.HBASE_DIFFERS), "keys" in report.checked


def _of_index(report: Report, kind: kinds.FindingKind) -> DataCheck:
    """Return the findings about an index as problems; keys of several rows have a kind of their own."""
    problems = [
        Problem(
            kinds.KEY_DOUBLED if found.kind == IndexProblem.DOUBLED else kind,
            found.key,
            found.expected,
            f"{found.kind}: {found.found}" if found.found else found.kind,
        )
        for found in report.findings
    ]
    return DataCheck(tuple(problems), notes=() if report.ok else (str(report).partition("\n")[0],))


def _check_partition(call: Call, survey: Survey, partition: PartitionKind) -> DataCheck:
    """Compare a metadata partition with the files, if the table has it and this release maintains it."""
    if not partition.is_in(survey.view.config) or partition.is_outdated(data_table(survey.view)):
        return DataCheck(())
    kind = kinds.KINDS[partition.differs]
    try:
        report = verify_partition(call, partition.name)
    except HoodieError as error:
        return DataCheck((Problem(kind, partition.name, found=str(error)),))
    problems = (
        Problem(kind, found.key, found.expected, f"{found.kind}: {found.found or 'none'}") for found in report.findings
    )
    return DataCheck(tuple(problems), notes=() if report.ok else (str(report).partition("\n")[0],))


def _damage(store: Store, found: FileSlice, path: str, error: Exception) -> Problem:
    """Return the finding of a slice that cannot be read: of the file that the error names, or of the file `path`."""
    if isinstance(error, CorruptFileError):
        damaged = next((one for one in found.paths if store.uri(one) == error.path), None)
        if damaged is not None:
            return Problem(kinds.FILE_DAMAGED, damaged, found=str(error).removeprefix(error.path).lstrip(": "))
    return Problem(kinds.FILE_DAMAGED, path, found=str(error))
