"""`upper` and `lower` as in Spark: letters that become several, and a final sigma; also in another process."""

from __future__ import annotations

import pickle
import subprocess
import sys

import pyarrow as pa
import pytest

from hoodie.records.condition import Condition
from hoodie.records.expression import RowExpression

TEXTS = ["straße", "ﬁn", "ŉ", "ᾳ", "և", "İx", "ΟΔΌΣ", "ΣΣ Σ", "Σ", "ab", "", None]


@pytest.mark.parametrize("data_type", [pa.string(), pa.large_string()])
@pytest.mark.parametrize("name", ["upper", "lower"])
def test_all_letters_change_as_in_java(name: str, data_type: pa.DataType) -> None:
    """Python has Java's rules; tests/contract/expression_cases.py compares with Spark."""
    rows = pa.table({"s": pa.array(TEXTS, data_type)})
    found = RowExpression.parse(f"{name}(s)", rows.schema).values(rows)
    assert found.to_pylist() == [None if text is None else getattr(text, name)() for text in TEXTS]


def test_a_filter_works_in_a_process_that_parsed_none() -> None:
    schema = pa.schema([("s", pa.string())])
    sent = pickle.dumps(Condition.parse("upper(s) = 'STRASSE'").row_group_filter(schema, in_utc=True))
    script = (
        "import pickle, sys, pyarrow as pa, hoodie.files.slice_read\n"
        "print(pa.table({'s': ['stra\\u00dfe', 'x']}).filter(pickle.load(sys.stdin.buffer)).num_rows)"
    )
    done = subprocess.run([sys.executable, "-c", script], input=sent, capture_output=True, check=True)
    assert done.stdout.split() == [b"1"]
