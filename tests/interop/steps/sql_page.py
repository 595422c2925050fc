"""Pages in SQL: `NAME.sql` has the statements of each step after a line `-- step: NAME`.

Further lines may stand between the name of a step and its statements:

    -- table: NAME [managed]   the steps from here on are about this table; a managed one is in the warehouse
    -- volatile: COLUMNS       no second run repeats the values of these columns of a procedure: they are compared as 0
    -- without: PREFIX         columns with this prefix are not compared
    -- where: CONDITION        only these rows are compared
    -- select: EXPRESSIONS     only these values are compared
    -- result: columns         only the columns of the last query are compared
    -- result: services [and files | and metadata]   what table services left is compared, in place of a query
    -- result: has files       whether the table has files is compared

A step returns the rows of its last query. A step without statements is a function of `NAME.py`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.interop.steps.script import Script, Step

_LINE: Final = re.compile(r"-- (\w+): (.*)")
_COMMAS: Final = re.compile(r", (?![^(]*\))")
_QUERIES: Final = ("SELECT", "WITH", "SHOW", "DESC", "CALL")
_COUNTS: Final = (
    "total_bytes_written",
    "time_taken_in_millis",
    "time_cost",
    "file_id",
    "file_size",
    "file_name",
    "file_path",
    "data_file",
    "data_file_size",
    "start_clean_time",
)
"""Columns of procedures whose values no second run repeats."""


def sql_steps(module: str) -> list[Step]:
    """Return the steps of the file `NAME.sql` beside the module `NAME.py`."""
    _, *parts = Path(module).with_suffix(".sql").read_text(encoding="utf-8").split("-- step: ")
    return [_step(part) for part in parts]


def _step(part: str) -> Step:
    name, *lines = part.strip().splitlines()
    given: dict[str, str] = {}
    for key, text in (match.groups() for line in lines if (match := _LINE.fullmatch(line))):
        given[key] = f"{given[key]}, {text}" if key in given else text
    texts = "\n".join(line for line in lines if not _LINE.fullmatch(line)).removesuffix(";").split(";\n")
    statements = [" ".join(text.split()) for text in texts if text]
    asks = any(text.startswith(_QUERIES) for text in statements)
    assert asks or not given.keys() & {"volatile", "without", "where", "select"}, f"no query in step {name}"
    return Step(name, SqlStep(statements=statements, **given) if statements else None)


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlStep:
    """Statements, and the lines before them."""

    statements: Sequence[str]
    table: str = ""
    volatile: str = ""
    without: str = ""
    where: str = ""
    select: str = ""
    result: str = ""

    def __call__(self, it: Script) -> Any:
        """Run the statements, and return what is compared."""
        if self.table:
            name, _, managed = self.table.partition(" ")
            it.use(name, managed=bool(managed))
        frame: Any = None
        for statement in self.statements:
            found = it.sql(statement)
            if statement.startswith("CALL"):
                found.collect()
                found = without_values(found, *self.volatile.split(", "))
            if statement.startswith(_QUERIES):
                frame = found
        match self.result.split():
            case ["services", *more]:
                return it.services(files="files" in more, metadata="metadata" in more)
            case ["has", "files"]:
                return it.frame("files boolean", (Path(it.path, ".hoodie").is_dir(),))
            case ["columns"]:
                frame.collect()
                return frame.limit(0)
        return self._part(frame)

    def _part(self, frame: Any) -> Any:
        """Return the rows and columns that are compared."""
        if self.without:
            frame = frame.select(*(name for name in frame.columns if not name.startswith(self.without)))
        if self.where:
            frame = frame.where(self.where)
        return frame.selectExpr(*_COMMAS.split(self.select)) if self.select else frame


def without_values(frame: Any, *volatile: str) -> Any:
    """Return the frame with 0 for the values of volatile columns, in their types, unless they are null."""
    columns = []
    for name, kind in frame.dtypes:
        if name in (*_COUNTS, *volatile):
            columns.append(f"CASE WHEN `{name}` IS NOT NULL THEN CAST('0' AS {kind}) END AS `{name}`")
        else:
            columns.append(f"`{name}`")
    return frame.selectExpr(*columns)
