"""Clustering together with cleans, archiving and statistics: rows, readers and ranges stay right."""

from __future__ import annotations

import pytest

from hoodie.errors import HistoryLostError
from hoodie.table import Table
from hoodie.timeline import Action
from tests.support.archived import OFTEN, active_times, archived_times
from tests.support.cleaned_tables import NO_CLEAN, check_listing, data_files
from tests.support.deaths import check_tidy
from tests.support.tables import Rows, rows_of, trips, trips_store

SMALL = {"hoodie.parquet.small.file.limit": "0"}


def test_replaced_file_groups_go_when_the_clustering_leaves_the_retained_window() -> None:
    rows: Rows = {f"k{number}": (number, "sf") for number in range(3)}
    store = trips_store(*({key: row} for key, row in rows.items()), properties={**NO_CLEAN, **SMALL})
    table = Table(store)
    before = table.timeline.instants[-1].requested_time
    small = {*data_files(store)["city=sf"]}
    assert table.cluster().counts["file_slices"] == 3
    retained = {"hoodie.clean.commits.retained": "2"}
    assert table.clean(properties=retained).instant is None, "the commit before the clustering is retained"
    assert small < {*data_files(store)["city=sf"]}
    assert table.to_arrow(as_of=before).num_rows == 3
    for number in range(2):
        table.upsert(trips({"k0": (10 + number, "sf")}))
    rows["k0"] = (11, "sf")
    assert table.clean(properties=retained).counts["files_deleted"] == len(small)
    assert not small & {*data_files(store)["city=sf"]}
    with pytest.raises(HistoryLostError):
        table.to_arrow(as_of=before)
    assert rows_of(store) == rows
    check_listing(table)
    check_tidy(store)


def test_ranges_follow_a_clustering() -> None:
    ranges = {**NO_CLEAN, **SMALL, "hoodie.metadata.index.column.stats.enable": "true"}
    both = [{f"k{number}": (number, "sf"), f"l{number}": (100 + number, "sf")} for number in range(4)]
    table = Table(trips_store(*both, properties=ranges))
    assert len(table.to_arrow(where="ts < 50")) == 4
    small = {"hoodie.clustering.plan.strategy.target.file.max.bytes": "1"}
    table.cluster("ts", properties=small)
    assert table.index.verify("column_stats").ok
    for where, expected in (("ts < 2", [0, 1]), ("ts >= 102", [102, 103]), ("ts = 50", [])):
        assert sorted(table.to_arrow(where=where).column("ts").to_pylist()) == expected
    table.upsert(trips({"k0": (500, "sf")}))
    table.clean(properties={"hoodie.clean.commits.retained": "1"})
    assert table.index.verify("column_stats").ok
    assert table.to_arrow(where="ts > 400").column("id").to_pylist() == ["k0"]


def test_many_commits_with_clusterings_cleans_and_archiving() -> None:
    services = {"hoodie.clustering.inline": "true", "hoodie.clustering.inline.max.commits": "3", **SMALL}
    store = trips_store(properties={**OFTEN, **services})
    rows, done = Rows(), set[str]()
    for number in range(24):
        table = Table(store)
        if number % 11 == 10:
            gone = f"k{number % 7}"
            found = rows.pop(gone)
            result = table.delete(trips({gone: found}).select(["id", "city"]))
        else:
            change = {f"k{number % 7}": (number, "sf"), f"n{number}": (number, "nyc")}
            result = table.upsert(trips(change))
            rows |= change
        assert not [note for service in result.services for note in service.notes]
        done |= {service.operation for service in result.services}
        if number % 10 == 9:
            assert rows_of(store) == rows
    assert done >= {"clustering", "clean", "archive"}
    assert rows_of(store) == rows
    assert any(found.action is Action.REPLACE_COMMIT for found in Table(store).view().archive().completed())
    assert not {*archived_times(store)} & {*active_times(store)}
    check_tidy(store)


def test_archiving_keeps_the_commits_that_make_a_clustering_due() -> None:
    inline = {"hoodie.clustering.inline": "true", "hoodie.clustering.inline.max.commits": "6"}
    few = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "4"}
    store = trips_store(properties={**OFTEN, **SMALL, **inline, **few})
    rows, clusterings = Rows(), list[int]()
    for number in range(16):
        Table(store).insert(trips({f"k{number}": (number, "sf")}))
        rows[f"k{number}"] = (number, "sf")
        operations = Table(store).history(archived=True)["operation"].to_pylist()
        clusterings.append(operations.count("cluster"))
    assert clusterings[4:6] == [0, 1], clusterings
    assert clusterings[-1] >= 2
    assert archived_times(store), "nothing was archived"
    assert len(Table(store).timeline.writes().completed().instants) < 14
    assert rows_of(store) == rows
