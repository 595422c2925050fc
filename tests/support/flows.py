"""A source of numbers for tests of ingestions, and the flow that writes it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from hoodie.ingest.flow import Flow
from hoodie.ingest.source import Batch, Request
from hoodie.ingest.target import Target
from hoodie.storage import Store
from hoodie.table import Table

CREATE = {"record_key": "id", "partition_by": "city"}


@dataclass
class Numbers:
    """The numbers up to `count`, `step` in a batch; a place is the next number. Each number is also counted by key."""

    count: int
    step: int = 2
    plans: list[str | None] = field(default_factory=list)

    def plan(self, request: Request) -> Batch | None:
        self.plans.append(request.after)
        first = int(request.after or 0)
        last = min(first + (request.limit or self.step), self.count)
        if first >= last:
            return None
        return Batch(
            place=str(last),
            read=lambda: rows_of_numbers(range(first, last)),
            about=f"numbers {first} to {last - 1}",
            rows=last - first,
            lag_rows=self.count - last,
        )


def rows_of_numbers(numbers: range, **columns: Any) -> pa.Table:
    """Rows of numbers: the key, the partition, and the number as value."""
    return pa.table(
        {
            "id": pa.array([f"k{number:03}" for number in numbers], pa.string()),
            "n": pa.array(numbers, pa.int64()),
            "city": pa.array([("sf", "nyc")[number % 2] for number in numbers], pa.string()),
            **columns,
        }
    )


def flow_into(store: Store, source: Any, **options: Any) -> Flow:
    """A flow that writes a table in this store, as a new process makes it: nothing is known of it."""
    return Flow(
        name=options.pop("name", "numbers"),
        source=source,
        target=Target(path=store.uri(""), create=options.pop("create", None), table=Table(store)),
        **options,
    )


def numbers_of(table: Table) -> list[int]:
    """The numbers of a table, sorted; one that was written twice appears twice."""
    return sorted(table.to_arrow("n")["n"].to_pylist())
