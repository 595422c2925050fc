"""Files that commands read: right rows, or one line with the file, the row and the column, and no trace of a write."""

from __future__ import annotations

import codecs
import gzip
import hashlib
import io
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hoodie
from tests.support.command_line import Run
from tests.support.tables import new_table

SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("n", pa.int64()),
        ("f", pa.float32()),
        ("d", pa.float64()),
        ("at", pa.timestamp("us", "UTC")),
        ("local", pa.timestamp("us")),
        ("s", pa.struct([("a", pa.int32())])),
        ("y", pa.binary()),
    ]
)
FILL = ("--option", "hoodie.write.set.null.for.missing.columns=true")
CSV, LINE = b"id,n\na,1\n", b'{"id":"a","n":1}\n'
_TEXTS = [hashlib.sha256(b"%d" % number).hexdigest() for number in range(60_000)]
"""Texts that do not compress well."""
_NOISE = "".join(_TEXTS[:1_500]).encode()


def _parquet(damaged_at: float) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table({"id": _TEXTS, "n": range(60_000)}), sink, row_group_size=20_000, compression="snappy")
    data = bytearray(sink.getvalue())
    place = int(len(data) * damaged_at)
    data[place : place + 3_000] = bytes(3_000)
    return bytes(data)


BROKEN = {
    "empty.csv": (b"", "Empty CSV file"),
    "empty.parquet": (b"", "expected a parquet file"),
    "garbage.csv": (bytes(range(256)) * 10, ""),
    "garbage.json": (bytes(range(256)) * 10, "row 1: expected one JSON object"),
    "garbage.parquet": (bytes(range(256)) * 10, "expected a parquet file"),
    "packed.csv": (gzip.compress(CSV), "expected .csv, found the beginning of a .gz file; rename it"),
    "packed.json": (gzip.compress(LINE), "expected .json, found the beginning of a .gz file"),
    "parquet.csv": (_parquet(0.5), "expected .csv, found the beginning of a .parquet file"),
    "plain.csv.gz": (CSV, "expected a csv file, but it cannot be read"),
    "cut.csv.gz": (gzip.compress(b"id,n\n" + _NOISE + b",1\n")[:-5_000], "expected a csv file, but it cannot be read"),
    "cut.json.gz": (gzip.compress(_NOISE)[:-5_000], "expected a json file"),
    "cut.parquet": (_parquet(0.5)[:-100], "expected a parquet file"),
    "utf16.csv": (CSV.decode().encode("utf-16"), "expected UTF-8, found UTF-16; convert the file"),
    "utf16.json": (LINE.decode().encode("utf-16"), "expected UTF-8, found UTF-16; convert the file"),
    "utf16le.csv": (CSV.decode().encode("utf-16-le"), ""),
    "utf16le.json": (LINE.decode().encode("utf-16-le"), "row 1: expected one JSON object"),
    "latin.csv": ("id,n\na,1\ncafé,2\n".encode("latin1"), r"column 'id', row 2: b'caf\xe9' is not UTF-8; convert"),
    "header.csv": ("id,né\na,1\n".encode("latin1"), "the header is not UTF-8"),
    "latin.json": (LINE + '{"id":"café"}\n'.encode("latin1"), r"row 2: b'{" r'"id":"caf\xe9"}' r"\n' is not UTF-8"),
    "ragged.csv": (b"id,n\na,1\n\nb\n", "row 2: expected 2 fields, as in the header, found 1: 'b'"),
    "wide.csv": (CSV + b"b,2,3\n", "row 2: expected 2 fields, as in the header, found 3: 'b,2,3'"),
    "quote.csv": (b'n,id\n1,a\n2,"b\n3,c\n4,d\n', "row 2: a quote is not closed"),
    "twice.csv": (b"id,n,id,n\na,1,b,2\n", "the header has 'id', 'n' more than once"),
    "twice.json": (LINE + b'{"id":"b","n":1,"n":2}\n', "row 2: an object has the name 'n' more than once"),
    "inside.json": (b'{"id":"b","s":{"a":1,"a":2}}\n', "row 1: an object has the name 'a' more than once"),
    "array.json": (b'[{"id":"a"}]\n', "row 1: expected a JSON object, found [{'id': 'a'}]"),
    "pretty.json": (b'{\n "id": "a"\n}\n', "row 1: expected one JSON object on each line"),
    "deep.json": (b'{"id":' + b"[" * 100_000 + b"\n", "row 1: expected one JSON object on each line"),
    "digits.json": (b'{"n":' + b"9" * 5_000 + b"}\n", "row 1: expected one JSON object on each line"),
    "surrogate.json": (LINE + b'{"id":"\\ud800"}\n', r"column 'id', row 2: '\ud800' (str) does not fit string"),
    "nowhere.csv": (None, "no such file"),
    "/dev/null": (None, "found a pipe or device"),
    "folder.csv": (None, "expected a file, found a folder"),
    "name.txt": (CSV, "expected .parquet, .csv, or one of .json"),
}
"""Files that no command can read, and what it says."""

MISFITS = {
    "d.csv": (b"id,d\na,1\nb,9007199254740993\n", "column 'd', row 2: '9007199254740993' does not fit double"),
    "f.csv": (b"id,f\na,1\nb,16777217\n", "column 'f', row 2: '16777217' does not fit float"),
    "inf.csv": (b"id,d\na,1e999\n", "column 'd', row 1: '1e999' does not fit double"),
    "n.csv": (b"id,n\na,9223372036854775808\n", "column 'n', row 1: '9223372036854775808' does not fit int64"),
    "zone.csv": (b"id,local\na,2024-01-31T00:00Z\n", "column 'local', row 1: '2024-01-31T00:00Z' does not fit"),
    "struct.csv": (b"id,s\na,x\n", "column 's': a text cannot become struct<a: int32>; write the rows as JSON"),
    "key.csv": (b"id,n\na,1\n,2\n", "column 'id', row 2: the table allows no null here"),
    "d.json": (LINE + b'\n{"id":"b","d":9007199254740993}', "column 'd', row 3: '9007199254740993' does not"),
    "long.json": (b'{"id":"a","d":12345678901234567890123}', "column 'd', row 1: '12345678901234567890123' does not"),
    "f.json": (b'{"id":"a","f":1e39}', "column 'f', row 1: '1E+39' does not fit float"),
    "inf.json": (b'{"id":"a","d":1e999}', "column 'd', row 1: '1E+999' does not fit double"),
    "n.json": (b'{"id":"a","n":9223372036854775808}', "column 'n', row 1: '9223372036854775808' does not fit int64"),
    "text.json": (b'{"id":"a","n":"5"}', "column 'n', row 1: '5' (str) does not fit int64"),
    "number.json": (b'{"id":5}', "column 'id', row 1: 5 (int) does not fit string"),
    "true.json": (b'{"id":"a","n":true}', "column 'n', row 1: True (bool) does not fit int64"),
    "zone.json": (b'{"id":"a","local":"2024-01-31T00:00Z"}', "column 'local', row 1: '2024-01-31T00:00Z' does not fit"),
    "local.json": (b'{"id":"a","at":"2024-01-31T00:00"}', "row 1: '2024-01-31T00:00' does not fit timestamp[us, tz"),
    "epoch.json": (b'{"id":"a","at":1700000000}', "column 'at', row 1: 1700000000 (int) does not fit timestamp"),
    "field.json": (LINE + b'{"id":"b","s":{"A":1}}', "column 's.A', row 2: the table has no such field in 's' (a)"),
    "shape.json": (b'{"id":"a","s":[1]}', "column 's', row 1: [1] (list) does not fit struct<a: int32>"),
    "bytes.json": (b'{"id":"a","y":"%%%"}', "column 'y', row 1: '%%%' does not fit binary; expected base64"),
    "key.json": (LINE + b'{"n":2}', "column 'id', row 2: the table allows no null here"),
    "damaged.parquet": (_parquet(0.5), "cannot be read"),
}
"""Files with a value that does not fit a table of `SCHEMA`, and what writes of all columns say."""

GOOD = {
    "bom.csv": (codecs.BOM_UTF8 + CSV, {"a": 1}),
    "bom.json": (codecs.BOM_UTF8 + LINE, {"a": 1}),
    "crlf.csv": (b"id,n\r\na,1\r\n\r\nb,2", {"a": 1, "b": 2}),
    "crlf.json": (b'{"id":"a","n":1}\r\n\r\n{"id":"b","n":2}', {"a": 1, "b": 2}),
    "header.csv": (b"id,n\n", {}),
    "empty.json": (b"", {}),
    "packed.csv.gz": (gzip.compress(CSV), {"a": 1}),
    "packed.jsonl.gz": (gzip.compress(LINE), {"a": 1}),
    "lines.csv": (b'id,n\n"a\n""b""",1\n"c\n",2', {'a\n"b"': 1, "c\n": 2}),
    "end.csv": (b'n,id\n1,"a\nb"\n', {"a\nb": 1}),
    "quotes.csv": (b'id,n\n5" a,1\n6",2\n', {'5" a': 1, '6"': 2}),
    "large.csv": (b"id,n\na,1\n" + b"b" * 5_000_000 + b",2\nc,3\n", {"a": 1, "b" * 5_000_000: 2, "c": 3}),
    "whole.json": (b'{"id":"a","n":5.0}\n{"id":"b","n":1e3}', {"a": 5, "b": 1000}),
    "codes.csv": (b"id,n\n007,7\n", {"007": 7}),
}
"""Files that are read, and the `n` of each `id`."""


def _write(folder: Path, name: str, data: bytes | None) -> Path:
    path = folder / name
    if data is not None:
        path.write_bytes(data)
    elif name.startswith("folder"):
        path.mkdir()
    return path


@pytest.fixture
def table(tmp_path: Path) -> hoodie.Table:
    """A table without rows, in which a refused write left nothing."""
    return new_table(SCHEMA, path=tmp_path / "table", index="simple")


def _refused(run: Run, table: hoodie.Table, file: Path, said: str, *command: object) -> None:
    code, out, err = run(*command)
    assert (code, out) == (1, ""), (file.name, command, err)
    assert err.count("\n") == 1, err
    assert err.startswith(f"hoodie: {file}: "), err
    assert said in err, (said, err)
    assert hoodie.open(table.path).timeline.latest() is None, (file.name, command)


def test_no_command_reads_a_broken_file(table: hoodie.Table, tmp_path: Path, run: Run) -> None:
    path, fresh = tmp_path / "table", tmp_path / "fresh"
    merge = "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN DELETE"
    first_block = {"surrogate.json", "latin.csv", "ragged.csv", "wide.csv", "quote.csv"}
    for name, (data, said) in BROKEN.items():
        file = _write(tmp_path, name, data)
        _refused(run, table, file, said, "upsert", path, file, *FILL)
        _refused(run, table, file, said, "insert", path, file, "--bulk", *FILL)
        _refused(run, table, file, said, "delete", path, file)
        _refused(run, table, file, said, "sql", merge, "--table", f"t={path}", "--data", f"s={file}")
        if name not in first_block:
            _refused(run, table, file, said, "create", fresh, "--like", file, "--key", "id")
        assert not fresh.exists()


def test_values_that_python_objects_are_refused_for_are_refused(table: hoodie.Table, tmp_path: Path, run: Run) -> None:
    for name, (data, said) in MISFITS.items():
        file = _write(tmp_path, name, data)
        for command in (("upsert",), ("insert",), ("insert", "--bulk")):
            _refused(run, table, file, said, command[0], tmp_path / "table", file, *command[1:], *FILL)


def test_odd_files_are_read(table: hoodie.Table, tmp_path: Path, run: Run) -> None:
    for name, (data, expected) in GOOD.items():
        file = _write(tmp_path, name, data)
        run.text("upsert", tmp_path / "table", file, *FILL)
        rows = hoodie.open(table.path).to_arrow(["id", "n"])
        assert dict(zip(rows["id"].to_pylist(), rows["n"].to_pylist(), strict=True)) == expected, name
        run.text("delete", tmp_path / "table", file)
        assert hoodie.open(table.path).count() == 0, name


def test_a_column_that_begins_late_is_refused_with_its_row(table: hoodie.Table, tmp_path: Path, run: Run) -> None:
    lines = b"".join(b'{"id":"%06d","n":1}\n' % number for number in range(250_000))
    file = _write(tmp_path, "late.json", lines + b'{"id":"z","tip":1}\n')
    _refused(
        run, table, file, "column 'tip', row 250001: neither the table nor the beginning", "upsert", table.path, file
    )


def test_a_misspelt_column_is_added_only_with_the_option(table: hoodie.Table, tmp_path: Path, run: Run) -> None:
    file = _write(tmp_path, "tip.json", b'{"id":"a","tip":1.5,"more":{"x":[12345678901234567890]}}\n')
    err = run.error("upsert", table.path, file)
    assert ("--option hoodie.python.schema.evolution=always" in err, "Arrow" in err) == (True, False), err
    assert run.json("upsert", table.path, file, "--option", "hoodie.python.schema.evolution=always")["notes"] == [
        "column tip added: double",
        "column more added: struct<x: list<element: decimal128(38, 0)>>",
    ]


def test_columns_of_a_key_file_that_are_no_keys_are_not_read(table: hoodie.Table, tmp_path: Path, run: Run) -> None:
    table.upsert([{"id": "a", "n": 1}, {"id": "b", "n": 2}], properties={FILL[1].split("=")[0]: "true"})
    for name, data in {
        "keys.csv": 'id,note\na,"caf\xe9"\n'.encode("latin1"),
        "keys.json": b'{"id":"b","note":1}\n{"id":"c","note":"x"}\n',
    }.items():
        run.text("delete", table.path, _write(tmp_path, name, data))
    assert hoodie.open(table.path).count() == 0


def test_types_are_inferred_without_a_loss(tmp_path: Path, run: Run) -> None:
    cases = {
        "big": ("12345678901234567890", "decimal128(38, 0)"),
        "code": ("01234", "string"),
        "day": ("2024-01-31", "date32[day]"),
        "at": ("2024-01-31T12:00:00.5Z", "timestamp[us, tz=UTC]"),
        "local": ("2024-01-31 12:00:00", "timestamp[us]"),
        "n": ("5", "int64"),
        "x": ("1.5", "double"),
        "yes": ("true", "bool"),
    }
    fields, expected = ({name: case[place] for name, case in cases.items()} for place in (0, 1))
    bare = {"big", "n", "x", "yes"}
    line = ", ".join(f'"{name}": {text if name in bare else json.dumps(text)}' for name, text in fields.items())
    for name, data in {
        "rows.csv": f"{','.join(fields)}\n{','.join(fields.values())}\n",
        "rows.json": f"{{{line}}}\n",
    }.items():
        file, path = _write(tmp_path, name, data.encode()), tmp_path / name.replace(".", "_")
        assert run.json("create", path, "--like", file, "--key", "n")["columns"] == expected
        run.text("upsert", path, file)
        assert str(hoodie.open(path).to_arrow(["big"])["big"][0]) == fields["big"]


def test_a_json_file_of_two_types_names_both_rows(tmp_path: Path, run: Run) -> None:
    file = _write(tmp_path, "mixed.json", b'{"a":null}\n{"a":[{"b":1}]}\n{"a":[{"b":2},{"b":"x"}]}\n')
    said = run.error("create", tmp_path / "t", "--like", file)
    assert f"{file}: column 'a.element.b', row 3: 'x' has another type than 1 in row 2" in said
