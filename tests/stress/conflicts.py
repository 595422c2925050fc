"""Count how often writers on overlapping keys meet a conflict: `python -m tests.stress.conflicts`.

Eight threads, each with a handle of its own, upsert a few of the same keys of a table in memory again and again, with
and without retries. Prints counts, no times: how many writes raised a conflict, and how many attempts the others took.
The table is judged at the end: every acknowledged row is there once, or a later one.
"""

from __future__ import annotations

import random
import re
import sys
import uuid
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa

import hoodie
from hoodie.config import concurrency
from tests.support.steps import ONE_TRY

SCHEMA = pa.schema([("id", pa.string()), ("city", pa.string()), ("operation", pa.string())])
WRITERS, WRITES, KEYS, ROWS, CITIES = 8, 12, 400, 6, 4

EARLY = {concurrency.EARLY_CONFLICTS.key: "true", concurrency.EARLY_COMMIT_CONFLICTS.key: "true"}
NON_BLOCKING = {concurrency.CONCURRENCY_MODE.key: "NON_BLOCKING_CONCURRENCY_CONTROL"}
WAYS: Mapping[str, tuple[tuple[str, ...], Mapping[str, str]]] = {
    "no retries": (("copy_on_write", "merge_on_read"), ONE_TRY),
    "retries": (("copy_on_write", "merge_on_read"), {}),
    "retries, early detection": (("copy_on_write", "merge_on_read"), EARLY),
    "non-blocking, no retries": (("merge_on_read",), {**NON_BLOCKING, **ONE_TRY}),
    "non-blocking": (("merge_on_read",), NON_BLOCKING),
}


def write(path: str, number: int, properties: Mapping[str, str]) -> tuple[Counter[str], dict[str, set[str]]]:
    """Upsert again and again; return the counts, and the operations that were acknowledged for each key."""
    chooser = random.Random(f"{number} {sorted(properties)}")
    table = hoodie.open(path)
    counts: Counter[str] = Counter()
    written: dict[str, set[str]] = {}
    for turn in range(WRITES):
        operation = f"{number}-{turn}"
        keys = [f"k{key}" for key in chooser.sample(range(KEYS), ROWS)]
        cities = [f"c{int(key[1:]) % CITIES}" for key in keys]
        rows = pa.table([keys, cities, [operation] * ROWS], schema=SCHEMA)
        counts["writes"] += 1
        try:
            notes = " ".join(table.upsert(rows, properties=dict(properties)).notes)
        except hoodie.CommitConflictError:
            counts["conflicts"] += 1
            continue
        for key in keys:
            written.setdefault(key, set()).add(operation)
        retried = re.search(r"retried (once|(\d+) times)", notes)
        if retried:
            counts["retried"] += 1
            counts["retries"] += int(retried[2] or 1)
    return counts, written


def measure(table_type: str, properties: Mapping[str, str]) -> Counter[str]:
    """Run all writers on a new table, and judge it. Raises: AssertionError if a row is lost or doubled."""
    path = f"memory://conflicts-{uuid.uuid4().hex}"
    hoodie.create(path, SCHEMA, record_key="id", partition_by="city", type=table_type)
    with ThreadPoolExecutor(WRITERS) as pool:
        done = list(pool.map(lambda number: write(path, number, properties), range(WRITERS)))
    written: dict[str, set[str]] = {}
    for _, keys in done:
        for key, operations in keys.items():
            written.setdefault(key, set()).update(operations)
    found = hoodie.open(path).to_arrow(columns=["id", "operation"]).to_pylist()
    stored = {row["id"]: row["operation"] for row in found}
    assert len(stored) == len(found), "a key is stored twice"
    assert stored.keys() == written.keys(), "a key was lost, or came from a write that raised an error"
    assert all(stored[key] in operations for key, operations in written.items()), "a row of no acknowledged write"
    return sum((counts for counts, _ in done), Counter())


def main() -> int:
    """Print one line of a table for each way to write and each table type."""
    print("| table type | options | writes | conflicts raised | writes that were retried | retries |")
    print("|---|---|---|---|---|---|")
    for way, (types, properties) in WAYS.items():
        for table_type in types:
            counts = measure(table_type, properties)
            share = f"{counts['conflicts']} ({counts['conflicts'] / counts['writes']:.0%})"
            numbers = f"{counts['writes']} | {share} | {counts['retried']} | {counts['retries']}"
            print(f"| {table_type} | {way} | {numbers} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
