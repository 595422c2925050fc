"""`hoodie head --json | hoodie upsert -` makes the same table, for every type; and what tables show of odd values."""

from __future__ import annotations

import io
import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hoodie
from hoodie.cli.terminal import print_rows
from hoodie.ingest.rows.json_rows import JsonRows
from hoodie.ingest.rows.rules import InputOptions
from tests.support.command_line import Run
from tests.support.seeds import examples
from tests.support.tables import new_table

_LONG = st.integers(-(1 << 63), (1 << 63) - 1)
_INT = st.integers(-(1 << 31), (1 << 31) - 1)
_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
_DIGITS = st.integers(-(10**38) + 1, 10**38 - 1)
LEAVES: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.bool_(): st.booleans(),
    pa.int32(): _INT,
    pa.int64(): _LONG,
    pa.float32(): st.floats(width=32),
    pa.float64(): st.floats(),
    pa.string(): _TEXT,
    pa.binary(): st.binary(max_size=5),
    pa.binary(3): st.binary(min_size=3, max_size=3),
    pa.date32(): st.integers(-300_000_000, 300_000_000),
    pa.timestamp("us"): _LONG,
    pa.timestamp("us", "UTC"): _LONG,
    pa.timestamp("ms"): st.integers(-(1 << 53), 1 << 53),
    pa.time64("us"): st.integers(0, 86_399_999_999),
    pa.time32("ms"): st.integers(0, 86_399_999),
    pa.decimal128(38, 0): _DIGITS.map(Decimal),
    pa.decimal128(38, 38): _DIGITS.map(lambda digits: Decimal(digits).scaleb(-38)),
    pa.decimal128(5, 2): st.integers(-99_999, 99_999).map(lambda digits: Decimal(digits).scaleb(-2)),
}
"""Types of columns, and their values: stored numbers for dates and times, because Python has only years 1 to 9999."""


def _array(data_type: pa.DataType, values: list[Any]) -> pa.Array:
    if pa.types.is_temporal(data_type):
        return pa.array(values, pa.int32() if data_type.bit_width == 32 else pa.int64()).cast(data_type)
    return pa.array(values, data_type)


def _nested(leaf: pa.Array) -> dict[str, pa.Array]:
    """Return the leaf in lists, maps and structs of each other, with nulls at every depth."""
    rows = len(leaf)
    half = [place // 2 for place in range(rows + 1)]
    mask = pa.array([place % 5 == 3 for place in range(rows)])
    lists = pa.ListArray.from_arrays(
        pa.array([None if place % 4 == 1 and place < rows else at for place, at in enumerate(half)], pa.int32()),
        leaf,
        type=pa.list_(pa.field("element", leaf.type)),
    )
    maps = pa.MapArray.from_arrays(pa.array(half, pa.int32()), pa.array([f"k{n} é\n" for n in range(rows)]), leaf)
    structs = pa.StructArray.from_arrays([leaf, lists, maps], ["x", "l", "m"], mask=mask)
    return {"x": leaf, "l": lists, "m": maps, "s": structs}


def _printed(rows: pa.Table, capsys: pytest.CaptureFixture[str]) -> str:
    print_rows(rows.to_batches())
    return capsys.readouterr().out


def _same(rows: pa.Table, other: pa.Table) -> bool:
    """Return whether tables are equal, and NaN is in the same places."""
    return rows.equals(other) or repr(rows.to_pylist()) == repr(other.to_pylist())


@settings(max_examples=examples(60))
@given(data=st.data())
def test_printed_rows_are_read_back(data: st.DataObject) -> None:
    data_type = data.draw(st.sampled_from(list(LEAVES)))
    values = data.draw(st.lists(st.none() | LEAVES[data_type], min_size=1, max_size=12))
    rows = pa.table(_nested(_array(data_type, values)))
    with pytest.MonkeyPatch.context() as patched:
        lines: list[str] = []
        patched.setattr("typer.echo", lines.append)
        print_rows(rows.to_batches())
    text = "\n".join(lines)
    assert not any(ord(char) < 0x20 and char != "\n" for char in text)
    read = pa.Table.from_batches(JsonRows(io.BytesIO(text.encode()), InputOptions(types=rows.schema)))
    assert read.schema == rows.schema
    assert _same(read, rows), (text, read)


def test_head_goes_through_a_pipe_into_the_same_table(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    far = [-62_135_596_800_000_001, 253_402_300_800_000_000, -(10**17), 10**17, None, 0]
    odd = {
        "flag": pa.array([True, False, None, True, False, True]),
        "long": pa.array([(1 << 63) - 1, -(1 << 63), None, (1 << 53) + 1, 0, 1], pa.int64()),
        "small": pa.array([math.nan, math.inf, -math.inf, 0.1, None, 3.4028234663852886e38], pa.float32()),
        "double": pa.array([math.nan, math.inf, -math.inf, 5e-324, None, 1.7976931348623157e308]),
        "bytes": pa.array([b"", b"abcd", b"\xff\x00", None, b"YWJj", b"="], pa.binary()),
        "text": pa.array(["", "null", None, '"\\\n', "\x1b[31m\x9b1m", "NaN"]),
        "day": pa.array([-800_000, 3_000_000, None, 0, -719_528, 1], pa.int32()).cast(pa.date32()),
        "at": pa.array(far, pa.int64()).cast(pa.timestamp("us", "UTC")),
        "local": pa.array(far, pa.int64()).cast(pa.timestamp("us")),
        "number": pa.array(
            [Decimal(10**36), Decimal("-0.1"), None, Decimal(0), Decimal(1), Decimal(-1)], pa.decimal128(38, 1)
        ),
    }
    nested = {f"{name}_{kind}": array for name, leaf in odd.items() for kind, array in _nested(leaf).items()}
    rows = pa.table({"id": [f"{n}" for n in range(6)], **nested})
    first, second = tmp_path / "first", tmp_path / "second"
    for path in (first, second):
        hoodie.create(path, rows.schema, record_key="id", index="simple", spark=False)
    hoodie.open(first).upsert(rows)
    out = run.text("head", first, "--json")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(out.encode())))
    run.text("upsert", second, "-")
    names = rows.column_names
    stored, copied = (hoodie.open(path).to_arrow(names).sort_by("id") for path in (first, second))
    assert stored.num_rows == 6
    assert all(stored[name].equals(copied[name]) for name in names if name.split("_")[0] not in ("small", "double"))
    # NaN is not equal to itself, also where Arrow compares.
    kept = [name for name in names if name.split("_")[0] in ("small", "double")]
    assert repr(stored.select(kept).to_pylist()) == repr(copied.select(kept).to_pylist())
    assert run("head", second, "--json")[1] == out


def test_standard_input_is_read_once(tmp_path: Path, run: Run) -> None:
    new_table(pa.schema([("id", pa.string())]), path=tmp_path / "t")
    said = run.error("upsert", tmp_path / "t", "-", "-")
    assert said == "hoodie: standard input (-) can be read only once; name it once\n"


def test_a_map_with_a_key_twice_is_printed_as_pairs(capsys: pytest.CaptureFixture[str]) -> None:
    maps = pa.array([[("a", 1), ("a", 2)], [("b", 3)]], pa.map_(pa.string(), pa.int64()))
    rows = pa.table({"m": maps})
    text = _printed(rows, capsys)
    assert text.splitlines() == ['{"m": [["a", 1], ["a", 2]]}', '{"m": {"b": 3}}']
    read = pa.Table.from_batches(JsonRows(io.BytesIO(text.encode()), InputOptions(types=rows.schema)))
    assert read.equals(rows)


def test_years_that_python_lacks_are_printed_by_every_command(tmp_path: Path, run: Run) -> None:
    micros = [-62_135_596_800_000_000 - 86_400_000_000, 253_402_300_800_000_000]
    schema = pa.schema([("id", pa.string()), ("day", pa.date32()), ("at", pa.timestamp("us", "UTC"))])
    days = pa.array([one // 86_400_000_000 for one in micros], pa.int32()).cast(pa.date32())
    rows = pa.table([["a", "b"], days, pa.array(micros, pa.int64()).cast(pa.timestamp("us", "UTC"))], schema=schema)
    table = hoodie.create(tmp_path / "t", schema, record_key="id", spark=False)
    table.upsert(rows)
    expected = [
        {"id": "a", "day": "0000-12-31", "at": "0000-12-31T00:00:00+00:00"},
        {"id": "b", "day": "+10000-01-01", "at": "+10000-01-01T00:00:00+00:00"},
    ]
    for command in (("head", table.path), ("get", table.path, "a", "b"), ("changes", table.path)):
        assert sorted(run.rows(*command), key=str) == sorted(expected, key=str)
        out = run.text(*command)
        assert "+10000-01-01 00:00:00.000+00:00" in out
        assert "0000-12-31" in out


def test_data_sends_no_commands_to_the_terminal(tmp_path: Path, run: Run) -> None:
    text = "\x1b[31mred\x1b[0m\x07\r\n\x9b2J\u202eevil :warning: [bold]"
    schema = pa.schema([("id", pa.string()), ("s", pa.struct([("x", pa.string())]))])
    table = new_table(schema, pa.table([[text], [{"x": text}]], schema=schema), path=tmp_path / "t")
    for command in (("head",), ("head", "-c", "id"), ("head", "--meta"), ("changes",), ("head", "--json")):
        out = run.text(command[0], table.path, *command[1:])
        assert not {*"\x1b\x07\r\x9b"} & {*out}, command
        if "--json" not in command:
            assert "\u202e" not in out
        if "-c" in command:
            assert r"\x1b[31mred\x1b[0m\x07\r\n\x9b2J\u202eevil:warning:[bold]" in "".join(out.split())
    said = run.error("get", table.path, "\x1b[31mred")
    assert ("\x1b" in said, r"\x1b[31mred" in said) == (False, True)
