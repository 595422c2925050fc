"""Render for a terminal: tables, JSON lines, errors and progress. This module calls no table operation.

Standard output is for results, standard error for progress and errors. Tables are printed as a grid if it fits the
terminal, otherwise each record as a block of lines. Users' data is printed unchanged. In the library's own tables
(`own`) numbers have thousands separators, sizes have units, and headings have spaces instead of underscores. JSON has
one document per line, each printed as soon as it is available; `format/json_values.py` has its values.
"""

from __future__ import annotations

import errno
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

import pyarrow as pa
import typer
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from hoodie.cli.words import in_words, result_in_words
from hoodie.display import size_text
from hoodie.format.json_values import printable_values, rows_of, to_json
from hoodie.progress import Progress, listening

if TYPE_CHECKING:
    from rich.progress import Progress as Bars
    from rich.progress import TaskID

_BIDIRECTIONAL: Final = (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
_CONTROLS: Final = {
    code: repr(chr(code))[1:-1] for code in (*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029, *_BIDIRECTIONAL)
}
"""Characters that change a terminal, or the order of a line, and what is shown for them."""
_COLUMN_GAP = 2
_FOLDED_CHARS_MIN = 20
_CELL_CHARS_MAX = 120
_TIME: Final = re.compile(r"T(\d\d:\d\d:\d\d)(?:\.(\d{3})\d*)?")


def _shown(text: str) -> str:
    r"""Return the text with escapes for control characters, so that data sends no commands to a terminal.

    >>> _shown("red \x1b[31m")
    'red \\x1b[31m'
    """
    return text.translate(_CONTROLS)


class _Console(Console):
    """A console whose errors are the command's: by itself it ends the process when its reader is gone."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))


def output() -> Console:
    """Create a console on the current standard output. A new console is needed after the stream is redirected."""
    return _Console(highlight=False, soft_wrap=False, emoji=False)


def _errors() -> Console:
    return _Console(stderr=True, highlight=False, soft_wrap=True, emoji=False)


def drop_output() -> None:
    """Write no more to standard output and standard error if their readers are gone, such as `head -1`.

    Python flushes both once more at its end.
    """
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


@contextmanager
def going_on() -> Iterator[None]:
    """Go on without output if the reader of the body's output is gone."""
    try:
        yield
    except BrokenPipeError:
        drop_output()


def print_error(error: BaseException, *, table: str | None = None) -> None:
    """Print an error in one line on standard error, in the words of the command line; `table` as for `in_words`."""
    text = _line(in_words(str(error), table)) or type(error).__name__
    _errors().print("hoodie:", text, style="red", markup=False)


def print_note(text: str) -> None:
    """Print a note in one line on standard error."""
    _errors().print("note:", _line(text), style="yellow", markup=False)


def _line(text: str) -> str:
    return _shown(" ".join(text.split()))


def print_json(value: Any) -> None:
    typer.echo(to_json(value))


def print_rows(batches: Iterable[pa.RecordBatch]) -> None:
    """Print each row as its own document; `hoodie upsert TABLE -` reads them back."""
    for batch in batches:
        for row in rows_of(batch):
            print_json(row)


class Printable(Protocol):
    """A result of the library: its text is for people, its plain values for JSON."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command answers: a text for people, which is printed as it is, and JSON documents."""

    text: str
    documents: Sequence[Mapping[str, Any]]

    @classmethod
    def of(cls, *results: Printable, table: str | None = None) -> Answer:
        """Return the texts of results one below the other, and a document for each; `table` as for `in_words`."""
        texts = (str(result_in_words(result, table)) for result in results)
        return cls("\n".join(texts), [result.to_dict() for result in results])


def print_answer(
    found: Answer | Printable | pa.Table,
    as_json: bool,
    *,
    own: bool = False,
    table: str | None = None,
    whole: bool = False,
) -> None:
    """Print rows, a result or an answer; an empty text is not printed.

    `own` and `whole` as for `print_table`; `table`: the path in the arguments, as for `in_words`, for a result.
    """
    if isinstance(found, pa.Table):
        if as_json:
            print_rows(found.to_batches())
        elif not found.num_rows:
            output().print(f"no rows ({', '.join(found.column_names)})", markup=False)
        else:
            print_table(output(), found, own=own, whole=whole)
        return
    answer = found if isinstance(found, Answer) else Answer.of(found, table=table)
    if as_json:
        for document in answer.documents:
            print_json(document)
    elif answer.text:
        typer.echo(answer.text)


def print_table(console: Console, rows: pa.Table, *, own: bool = False, whole: bool = False) -> None:
    """Print all rows; the caller must limit their number. `whole`: long texts too, with their line breaks."""
    texts = _texts(rows, own, whole)
    least = [_least_width(name, column, own) for name, column in texts.items()]
    if whole and rows.num_columns <= 2 and sum(least) > console.width:
        _print_pairs(console, texts)
    elif sum(least) <= console.width or rows.num_columns <= 2:
        print_grid(console, rows, own=own, whole=whole)
    else:
        shown = [(_shown(name.replace("_", " ") if own else name), column) for name, column in texts.items()]
        longest = max(len(name) for name, _ in shown)
        for number in range(rows.num_rows):
            console.rule(f"row {number + 1}", align="left", style="dim")
            for name, column in shown:
                _print_pair(console, name, longest, column[number])


def _print_pairs(console: Console, texts: Mapping[str, list[str]]) -> None:
    """Print the rows of one or two columns whose texts are longer than a line: a name, and the text beside it."""
    *names, values = texts.values()
    longest = max(map(len, names[0]), default=0) if names else 0
    for number, value in enumerate(values):
        _print_pair(console, names[0][number] if names else "", longest, value)


def _print_pair(console: Console, name: str, width: int, text: str) -> None:
    """Print a name, and a text whose further lines stand below its first one."""
    margin = " " * (width + 2) if width else ""
    for place, line in enumerate(text.split("\n")):
        console.print(f"{f'{name:<{width}}  ' if width and not place else margin}{line}", markup=False, soft_wrap=True)


def print_grid(console: Console, rows: pa.Table, *, own: bool = False, whole: bool = False) -> None:
    """Print all rows as a grid.

    If the terminal is too narrow, long values are folded, and the headings of `own` tables have line breaks between
    their words.
    """
    grid = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    texts = _texts(rows, own, whole)
    is_narrow = sum(_width(name, column) for name, column in texts.items()) > console.width
    for field in rows.schema:
        grid.add_column(
            Text(field.name.replace("_", "\n" if is_narrow else " ") if own else _shown(field.name)),
            justify="right" if _is_number(field.type) else "left",
            overflow="fold",
            # Numbers and instants are not folded.
            no_wrap=max(map(len, texts[field.name]), default=0) <= _FOLDED_CHARS_MIN,
        )
    for row in zip(*texts.values(), strict=True):
        # Plain text, because square brackets in data are not markup.
        grid.add_row(*map(Text, row))
    console.print(grid)


def _width(heading: str, cells: list[str]) -> int:
    return max([len(heading), *(len(line) for text in cells for line in text.split("\n"))]) + _COLUMN_GAP


def _least_width(name: str, cells: list[str], own: bool) -> int:
    """Return the characters that a column needs if its heading is broken between words and long values are folded."""
    heading = max(name.split("_"), key=len) if own else name
    return min(_width(heading, cells), _FOLDED_CHARS_MIN + _COLUMN_GAP) if own else _width(heading, cells)


def _texts(rows: pa.Table, own: bool, whole: bool = False) -> dict[str, list[str]]:
    is_time = {field.name: pa.types.is_timestamp(field.type) for field in rows.schema}
    return {
        name: [cell(name, value, own=own, is_time=is_time[name], whole=whole) for value in printable_values(rows[name])]
        for name in rows.column_names
    }


def cell(name: str, value: Any, *, own: bool = False, is_time: bool = False, whole: bool = False) -> str:
    """Convert one value to a string.

    ISO texts of times (`is_time`) get milliseconds, control characters are escaped, and long strings are truncated.
    `whole`: they are not, and keep their line breaks; tabs become spaces.

    >>> cell("size_bytes", 1500, own=True), cell("rows", 336776, own=True), cell("flight", 1545), cell("x", None)
    ('1.5 kB', '336,776', '1545', '')
    """
    if value is None:
        return ""
    if own and isinstance(value, int) and not isinstance(value, bool):
        is_size = name.endswith("_bytes") or name.startswith("bytes")
        return size_text(value) if is_size else f"{value:,}"
    if is_time:
        return _TIME.sub(lambda clock: f" {clock[1]}.{clock[2] or '000'}", value)
    if whole:
        return "\n".join(_shown(line.expandtabs()) for line in str(value).rstrip("\n").split("\n"))
    text = _shown(str(value))
    return text if len(text) <= _CELL_CHARS_MAX else f"{text[: _CELL_CHARS_MAX - 1]}…"


def _is_number(data_type: pa.DataType) -> bool:
    return bool(pa.types.is_integer(data_type) or pa.types.is_floating(data_type) or pa.types.is_decimal(data_type))


class ProgressBar:
    """A bar for the tasks of the current step, and a bar for all steps as soon as their number is known."""

    def __init__(self, bars: Bars) -> None:
        self._bars = bars
        self._title = ""
        self._begun = 0
        self._overall: TaskID | None = None
        self._current: TaskID | None = None

    def expect(self, steps: int) -> None:
        """Set the number of all steps; the steps begun so far count as done."""
        self._overall = self._bars.add_task("all steps", total=steps, completed=self._begun)

    def begin(self, title: str) -> None:
        """Begin a step with this title; the step before it counts as done."""
        self._title = title
        if self._overall is not None:
            self._bars.update(self._overall, completed=self._begun)
        self._begun += 1
        self._restart(title)

    def show(self, report: Progress) -> None:
        """Show a progress notification of the library."""
        if self._current is None or not report.tasks_total:
            self._restart(f"{self._title} · {report.phase}" if report.phase else self._title)
        else:
            self._bars.update(self._current, completed=report.tasks_done, total=report.tasks_total)

    def _restart(self, description: str) -> None:
        """Replace the task of the bar with a new task, because rich keeps the total of an old task."""
        if self._current is not None:
            self._bars.remove_task(self._current)
        self._current = self._bars.add_task(description, total=None)


@contextmanager
def progress_bar(title: str | None = None, *, console: Console | None = None) -> Iterator[ProgressBar]:
    """Show the progress of the writes in the body; the bar is removed at the end of the body.

    The default console is standard error.
    """
    # Most commands show no bar, and each loads this module.
    from rich.progress import BarColumn, MofNCompleteColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bars

    console = _errors() if console is None else console
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=30),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Bars(*columns, console=console, transient=True, disable=not console.is_terminal) as bars:
        bar = ProgressBar(bars)
        if title is not None:
            bar.begin(title)
        with listening(bar.show):
            yield bar
