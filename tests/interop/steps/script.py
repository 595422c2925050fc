"""What a step of a script may use, and what is recorded after it: rows, schema and properties of its table.

The same steps run with JVM Hudi and with hoodie; `run.py` runs the steps of one page in a process of its own.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pyarrow.parquet as pq

FORMAT: Final = "hudi"
_VOLATILE: Final = ("_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_file_name")
_NAMED: Final = re.compile(r"\{(\w+)(?:\[(-?\d+)\])?\}")
_FINISHED: Final = (".commit", ".deltacommit", ".replacecommit")
QUICK: Final = {
    "hoodie.upsert.shuffle.parallelism": "2",
    "hoodie.insert.shuffle.parallelism": "2",
    "hoodie.bulkinsert.shuffle.parallelism": "2",
    "hoodie.delete.shuffle.parallelism": "2",
}
"""Options of an ordinary script; they have no effect on rows."""
COLUMNS: Final = "id int, ts bigint, v string, p string"
KEYED: Final = {
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.partitionpath.field": "p",
}
MERGE_ON_READ: Final = {"hoodie.datasource.write.table.type": "MERGE_ON_READ"}
OPERATION: Final = "hoodie.datasource.write.operation"
FIRST: Final = ((1, 1, "a", "x"), (2, 1, "b", "x"), (3, 1, "c", "y"))
"""Rows of `COLUMNS`."""


@dataclass(slots=True)
class Step:
    """One step: what it does in words, and the call. It may return a DataFrame, whose rows are compared too."""

    name: str
    call: Callable[[Script], Any] | None


@dataclass
class Page:
    """The steps of one page of the documentation."""

    title: str
    steps: list[Step] = field(default_factory=list)

    def step(self, name: str) -> Callable[[Callable[[Script], Any]], Callable[[Script], Any]]:
        """Add a step, or the call of a step that is there; steps run in the order of the module."""

        def add(call: Callable[[Script], Any]) -> Callable[[Script], Any]:
            named = [step for step in self.steps if step.name == name and step.call is None]
            if named:
                named[0].call = call
            else:
                self.steps.append(Step(name, call))
            return call

        return add

    def add(self, name: str, call: Callable[[Script], Any], *, table: str = "") -> None:
        """Add a step of one expression; `table`: it goes on with this table."""

        def run(it: Script) -> Any:
            if table:
                it.use(table)
            return call(it)

        self.step(name)(run)


class Script:
    """A session and the folder of a page. `table` is the table that the steps write, until `use` chooses another.

    `run_sql` runs a statement: JVM Hudi's in the session, hoodie's with its own function.
    """

    def __init__(self, spark: Any, folder: Path, run_sql: Callable[[str], Any]) -> None:
        self.spark, self._folder, self.run_sql = spark, folder, run_sql
        self.table, self._managed = "t", False
        self._last: tuple[object, dict[str, Any]] = (None, {})

    @property
    def path(self) -> str:
        """The path of the table."""
        warehouse = Path(self.spark.conf.get("spark.sql.warehouse.dir").removeprefix("file:"))
        return str((warehouse if self._managed else self._folder) / self.table)

    def use(self, table: str, *, managed: bool = False) -> None:
        """Go on with a table of this name; a managed one is in the warehouse."""
        self.table, self._managed = table, managed

    def sql(self, text: str) -> Any:
        """Run a statement with the values of names in braces.

        `{t}` is the table, `{path}` its path, and `{folder}` the folder of the page. `{requested[0]}`, `{completed[0]}`
        and `{dashed[0]}` are times of the first commit. `{compaction_requested}` is `planned("compaction.requested")`.
        """
        return self.run_sql(_NAMED.sub(self._value, text))

    def _value(self, found: re.Match[str]) -> str:
        name, number = found.groups()
        match name:
            case "t":
                return self.table
            case "path":
                return self.path
            case "folder":
                return str(self._folder)
            case "dashed":
                return dashed(self.instants()[int(number)][0])
            case "requested" | "completed":
                return self.instants()[int(number)][name == "completed"]
        return self.planned(name.replace("_", "."))

    def frame(self, columns: str, *rows: Sequence[Any]) -> Any:
        """Return a DataFrame of the rows; `columns` is a schema in SQL."""
        return self.spark.createDataFrame([tuple(row) for row in rows], columns)

    def save(self, frame: Any, mode: str, options: Mapping[str, Any]) -> None:
        """Write the frame with the options of the script."""
        given = {"hoodie.table.name": self.table, **QUICK, **options}
        frame.write.format(FORMAT).options(**given).mode(mode).save(self.path)

    def load(self, **options: Any) -> Any:
        """Read the table with options of the script."""
        return self.spark.read.format(FORMAT).options(**options).load(self.path)

    def instants(self) -> list[tuple[str, str]]:
        """Return requested and completion time of the completed commits, oldest first."""
        folder = Path(self.path, ".hoodie", "timeline")
        names = [found.name for found in folder.iterdir() if found.suffix in _FINISHED]
        pairs = [name.partition(".")[0].partition("_") for name in names]
        return sorted((requested, completed) for requested, _, completed in pairs)

    def planned(self, suffix: str) -> str:
        """Return the requested time of the newest instant whose file has this suffix."""
        folder = Path(self.path, ".hoodie", "timeline")
        return max(found.name for found in folder.glob(f"*.{suffix}")).partition(".")[0].partition("_")[0]

    def services(self, *, files: bool = False, metadata: bool = False) -> Any:
        """Return what table services left, as counts in a DataFrame: instants by action and state, archived ones too.

        `files`: also base files, log files and file groups of each partition. `metadata`: also the metadata partitions.
        """
        found = self._instant_counts()
        if files:
            found += self._file_counts()
        if metadata:
            found += Counter(f"metadata {name}" for name in self.metadata_partitions())
        return self.frame("what string, n int", *sorted(found.items()))

    def metadata_partitions(self) -> list[str]:
        """Return the metadata partitions that the table's properties name."""
        return sorted(filter(None, self._properties().get("hoodie.table.metadata.partitions", "").split(",")))

    def _instant_counts(self) -> Counter[str]:
        folder = Path(self.path, ".hoodie", "timeline")
        states: dict[str, tuple[int, str]] = {}
        for name in (found.name for found in folder.iterdir() if found.is_file() and found.name[0] != "."):
            times, *rest = name.split(".")
            requested, _, completed = times.partition("_")
            state = "completed" if completed else rest[-1]
            action = rest[0] if completed or len(rest) > 1 else "commit"
            rank = ("requested", "inflight", "completed").index(state)
            states[requested] = max((rank, f"{action} {state}"), states.get(requested, (-1, "")))
        return Counter(text for _, text in states.values()) + Counter(
            f"{action} archived" for action in self._archived()
        )

    def _archived(self) -> list[str]:
        history = Path(self.path, ".hoodie", "timeline", "history")
        if not (history / "_version_").is_file():
            return []
        manifest = json.loads((history / f"manifest_{(history / '_version_').read_text().strip()}").read_text())
        actions = {}
        for entry in manifest["files"]:
            rows = pq.read_table(history / entry["fileName"], columns=["instantTime", "action"]).to_pylist()
            actions.update({row["instantTime"]: row["action"] for row in rows})
        return list(actions.values())

    def _file_counts(self) -> Counter[str]:
        found: Counter[str] = Counter()
        groups = set()
        for file in Path(self.path).rglob("*"):
            partition = str(file.parent.relative_to(self.path))
            if file.suffix == ".crc" or partition.startswith(".hoodie") or not file.is_file():
                continue
            if file.suffix == ".parquet":
                found[f"{partition}: base files"] += 1
                groups.add((partition, file.name.partition("_")[0]))
            elif ".log." in file.name:
                found[f"{partition}: log files"] += 1
                groups.add((partition, file.name[1:].partition("_")[0]))
        return found + Counter(f"{partition}: file groups" for partition, _ in groups)

    def state(self) -> dict[str, Any]:
        """Return rows, schema and properties of the table; `{}` if there is none. It is read only if a file changed."""
        if not Path(self.path, ".hoodie", "hoodie.properties").is_file():
            return {}
        files = self._files()
        if self._last[0] != files:
            frame = self.spark.read.format(FORMAT).load(self.path)
            self._last = files, {**contents(frame), "properties": self._properties()}
        return self._last[1]

    def _files(self) -> dict[str, tuple[int, int]]:
        """Return size and time of each file of the table."""
        found = ((path, path.stat()) for path in Path(self.path).rglob("*") if path.is_file())
        return {str(path): (stat.st_size, stat.st_mtime_ns) for path, stat in found}

    def _properties(self) -> dict[str, str]:
        lines = Path(self.path, ".hoodie", "hoodie.properties").read_text("utf-8").splitlines()
        pairs = (line.partition("=") for line in lines if line and not line.startswith("#"))
        return {key: value.replace("\\:", ":").replace("\\=", "=") for key, _, value in pairs}


def dashed(instant: str) -> str:
    """Return an instant as a time in words: `2026-01-02 03:04:05.678`."""
    return re.sub(r"(....)(..)(..)(..)(..)(..)(...)", r"\1-\2-\3 \4:\5:\6.\7", instant)


def contents(frame: Any) -> dict[str, Any]:
    """Return rows and schema of a DataFrame in JSON, without columns whose values no second run repeats."""
    kept = [column for column in frame.columns if column not in _VOLATILE]
    rows = [{name: _plain(value) for name, value in row.asDict(True).items()} for row in frame.select(*kept).collect()]
    schema = [f"{column.name} {column.dataType.simpleString()}" for column in frame.schema]
    return {"rows": sorted(rows, key=repr), "schema": schema}


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(name): _plain(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_plain(part) for part in value]
    return value if isinstance(value, (int, float, str, bool, type(None))) else str(value)
