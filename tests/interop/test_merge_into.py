"""`MERGE INTO` of JVM Hudi and `t.merge` with the same clauses leave the same rows in two equal tables."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import hoodie
from hoodie.table.merge import TableMerger
from tests.interop.judges import HIVE, QUICK_OPTIONS, Jvm
from tests.interop.shared_trips import SCHEMA, TYPES
from tests.support.rows import assert_same_rows
from tests.support.tables import table_of

Trip = tuple[str, int, float | None, str]
SESSION = {**QUICK_OPTIONS, "hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false"}
ON = "t.id = s.id AND t.city = s.city"
trips = partial(table_of, SCHEMA)


STORED = trips(
    ("expression", 5, 1.0, "sf"),
    ("deleted", 5, 2.0, "sf"),
    ("not deleted", 5, 3.0, "nyc"),
    ("no clause", 5, 4.0, "nyc"),
    ("no source", 5, 5.0, "sf"),
    ("older", 5, 6.0, "sf"),
    ("older delete", 5, 7.0, "nyc"),
    ("same", 5, 8.0, "nyc"),
)
MIXED = trips(
    ("expression", 6, 10.0, "sf"),
    ("deleted", 6, -1.0, "sf"),
    ("not deleted", 6, 30.0, "nyc"),
    ("no clause", 6, 0.0, "nyc"),
    ("older", 4, 60.0, "sf"),
    ("same", 5, 80.0, "nyc"),
    ("new", 1, 1.0, "sf"),
    ("new, not inserted", 1, -1.0, "sf"),
    ("older new partition", 4, 9.0, "la"),
)
ALL = trips(
    ("expression", 7, None, "sf"),
    ("no clause", 4, 44.0, "nyc"),
    ("deleted", 1, 22.0, "sf"),
    ("new again", 2, 1.0, "la"),
)
OLDER_DELETE = trips(("older delete", 4, -1.0, "nyc"))


class Twins:
    """Two equal tables: `MERGE INTO` changes one, `t.merge` the other."""

    def __init__(self, jvm: Jvm, folder: Path, table_type: str, ordering: str | None) -> None:
        self.jvm, self.path, self.only_known = jvm, folder / "ours", table_type == "merge_on_read"
        self.ours = hoodie.create(
            self.path, SCHEMA, record_key="id", partition_by="city", ordering=ordering, type=table_type, index="simple",
            name="twin", spark=False,
        )  # fmt: skip
        self.ours.upsert(STORED)
        self.theirs, self.name = folder / "theirs", ""
        shutil.copytree(self.path, self.theirs)

    def merge(self, source: pa.Table, clauses: str, build: Callable[[TableMerger], TableMerger]) -> None:
        """Merge the source into both tables."""
        self.jvm.frame(source).createOrReplaceTempView("merge_source")
        self.jvm.sql(f"MERGE INTO {self.name} t USING merge_source s ON {ON} {clauses}")
        build(self.ours.merge(source, ON)).execute()

    def upsert_partial(self, rows: pa.Table) -> None:
        """Upsert rows that lack columns: in the JVM by a merge that sets and inserts the columns they have.

        Without new rows on a merge-on-read table: there the JVM's merge fails if it inserts rows that lack columns.
        """
        only_known = self.only_known
        if only_known:
            known = self.ours.to_arrow(["id"])["id"]
            rows = rows.filter(pc.is_in(rows["id"], known))
        self.jvm.frame(rows).createOrReplaceTempView("merge_source")
        columns = rows.schema.names
        self.jvm.sql(
            f"MERGE INTO {self.name} t USING merge_source s ON {ON} "
            f"WHEN MATCHED THEN UPDATE SET {', '.join(f'{name} = s.{name}' for name in columns)} "
            + ("" if only_known else f"WHEN NOT MATCHED THEN INSERT ({', '.join(columns)}) ")
            + ("" if only_known else f"VALUES ({', '.join(f's.{name}' for name in columns)})")
        )
        self.ours.upsert(rows, partial=True)

    def rows_of_both(self) -> tuple[pa.Table, pa.Table]:
        """The rows of our table, as we and the JVM read them alike, and those of the JVM's."""
        ours = self.ours.to_arrow(SCHEMA.names)
        assert_same_rows(ours, self.jvm.read(self.path, SCHEMA.names), key=["id", "city"])
        return ours, self.jvm.read(self.theirs, SCHEMA.names)

    def assert_same(self) -> None:
        assert_same_rows(*self.rows_of_both(), key=["id", "city"])


@contextmanager
def _twins(jvm: Jvm, folder: Path, table_type: str, ordering: str | None) -> Iterator[Twins]:
    twins = Twins(jvm, folder, table_type, ordering)
    with jvm.configured(SESSION), jvm.named(twins.theirs) as twins.name:
        yield twins


def jvm_write(jvm: Jvm, path: Path, table_type: str, rows: pa.Table, ordering: str | None) -> None:
    jvm.write(
        rows, path, table_name="twin", key="id", partition="city", ordering=ordering, table_type=table_type.upper(),
        options=HIVE,
    )  # fmt: skip


@pytest.mark.matrix(keep=1)
@pytest.mark.parametrize("ordering", ["ts", None], ids=["event time", "commit time"])
@pytest.mark.parametrize("table_type", TYPES)
def test_both_merge_the_same(jvm: Jvm, tmp_path: Path, table_type: str, ordering: str | None) -> None:
    with _twins(jvm, tmp_path, table_type, ordering) as twins:
        # The JVM takes no columns of the target in updates of a merge-on-read table.
        fare = "s.fare * 2" if table_type == "merge_on_read" else "t.fare + s.fare"
        twins.merge(
            MIXED,
            f"WHEN MATCHED AND s.fare > 0 THEN UPDATE SET id = s.id, city = s.city, ts = s.ts, fare = {fare} "
            "WHEN MATCHED AND s.fare < 0 THEN DELETE "
            "WHEN NOT MATCHED AND s.fare > 0 THEN INSERT (id, ts, city) VALUES (s.id, s.ts, s.city)",
            lambda merge: (
                merge.when_matched_update({"ts": "s.ts", "fare": fare}, "s.fare > 0")
                .when_matched_delete("s.fare < 0")
                .when_not_matched_insert({"id": "s.id", "ts": "s.ts", "city": "s.city"}, "s.fare > 0")
            ),
        )
        twins.assert_same()
        twins.merge(
            ALL,
            "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
            lambda merge: merge.when_matched_update_all().when_not_matched_insert_all(),
        )
        twins.assert_same()
        twins.merge(OLDER_DELETE, "WHEN MATCHED THEN DELETE", lambda merge: merge.when_matched_delete())
        ours, theirs = twins.rows_of_both()
        assert "older delete" not in ours["id"].to_pylist()
        # Without ordering columns, the JVM takes a merge that only deletes for an insert. On a merge-on-read table it
        # logs the delete with the ordering value of the source row, which loses.
        keeps = table_type == "merge_on_read" or ordering is None
        assert ("older delete" in theirs["id"].to_pylist()) == keeps
        assert_same_rows(ours, theirs.filter(pc.field("id") != "older delete"), key=["id", "city"])
        jvm_write(jvm, twins.path, table_type, trips(("no clause", 9, 99.0, "nyc")), ordering)
        assert twins.ours.count("fare = 99.0") == 1
        assert twins.ours.count() == ours.num_rows


@pytest.mark.matrix(keep=1)
@pytest.mark.parametrize("ordering", ["ts", None], ids=["event time", "commit time"])
@pytest.mark.parametrize("table_type", TYPES)
def test_a_partial_upsert_leaves_the_rows_of_a_merge(
    jvm: Jvm, tmp_path: Path, table_type: str, ordering: str | None
) -> None:
    """Columns that the data lacks keep their values, or are null in new rows; then both sides go on with the table."""
    with _twins(jvm, tmp_path, table_type, ordering) as twins:
        twins.upsert_partial(MIXED.drop_columns(["fare"]))
        twins.assert_same()
        twins.upsert_partial(ALL.drop_columns(["fare"]))
        twins.assert_same()
        before = twins.ours.count()
        jvm_write(jvm, twins.path, table_type, trips(("no clause", 9, 99.0, "nyc")), ordering)
        twins.ours.upsert(trips(("no clause", 10, 0.0, "nyc")).drop_columns(["fare"]), partial=True)
        assert twins.ours.to_arrow(["ts", "fare"], "id = 'no clause'").to_pylist() == [{"ts": 10, "fare": 99.0}]
        assert_same_rows(twins.ours.to_arrow(SCHEMA.names), jvm.read(twins.path, SCHEMA.names), key=["id", "city"])
        assert twins.ours.count() == before
