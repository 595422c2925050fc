"""Clustering plans and advice: pure functions of file slices."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from hoodie.config import clustering
from hoodie.errors import InvalidConfigError
from hoodie.files.slices import BaseFile, FileSlice, LogFile
from hoodie.format.filenames import LogFileName
from hoodie.format.instants.service_metadata import ClusteringPlan, RequestedReplaceMetadata
from hoodie.services.clustering.plan import (
    PlanLimits,
    PlanRequest,
    RowOrder,
    choose_partitions,
    plan_clustering,
    small_files,
)

LIMITS = PlanLimits(small_bytes=100, target_bytes=200, group_bytes=300)


def base(file_id: str, size_bytes: int, path: str = "p", instant: str = "1") -> FileSlice:
    file = BaseFile(path, f"{file_id}_0-0-0_{instant}.parquet", file_id, instant, size_bytes)
    return FileSlice(path, file_id, instant, file)


def logged(file_id: str, size_bytes: int, *, has_base: bool = False) -> FileSlice:
    name = LogFileName.parse(f".{file_id}_2.log.1_0-0-0")
    assert name is not None
    found = base(file_id, 50) if has_base else FileSlice("p", file_id, "2", None)
    return FileSlice("p", file_id, found.base_instant_time, found.base_file, (LogFile("p", name, size_bytes),))


def groups(plan: ClusteringPlan) -> list[list[str]]:
    return [[piece.file_id for piece in group.slices] for group in plan.input_groups]


def planned(slices: list[FileSlice], limits: PlanLimits = LIMITS, **more: object) -> list[list[str]]:
    request = PlanRequest(limits=limits, **more)  # type: ignore[arg-type]
    return groups(plan_clustering(slices, set(), request).plan)


def test_small_slices_are_grouped_by_partition_largest_first_up_to_the_bytes_of_a_group() -> None:
    slices = [base("a", 90), base("b", 99), base("c", 100), base("d", 80), base("e", 70), base("f", 60), base("x", 9)]
    assert planned(slices) == [["b", "a", "d"], ["e", "f", "x"]]
    assert planned([base("a", 10, "p"), base("b", 10, "q"), base("c", 10, "q")]) == [["b", "c"]]
    oldest = PlanLimits(small_bytes=100, group_bytes=300, slice_order=("instant_time", "size"))
    by_time = [base("a", 1, instant="3"), base("b", 2, instant="2"), base("c", 3, instant="2")]
    assert planned(by_time, oldest) == [["c", "b", "a"]]


def test_a_base_file_alone_is_only_clustered_to_sort_or_to_split_it() -> None:
    assert planned([base("a", 90)]) == []
    assert planned([base("a", 90)], order=RowOrder(columns=("x",))) == [["a"]]
    assert planned([base("a", 90)], PlanLimits(small_bytes=100, target_bytes=40)) == [["a"]]
    assert planned([logged("a", 5, has_base=True)]) == [["a"]]
    single = PlanLimits(small_bytes=100, clusters_single=False)
    assert planned([logged("a", 5, has_base=True)], single) == []
    assert planned([logged("a", 5), logged("b", 7)]) == [["b", "a"]]


def test_busy_groups_and_groups_above_the_maximum_are_left_out() -> None:
    slices = [base(name, 90, path) for path in ("p", "q", "r") for name in (f"{path}1", f"{path}2")]
    request = PlanRequest(limits=PlanLimits(small_bytes=100, groups_max=1), missing=frozenset({"z"}))
    found = plan_clustering(slices, {("p", "p1")}, request)
    assert groups(found.plan) == [["q1", "q2"]]
    assert found.left_out == ("r",)
    assert found.plan.missing_schedule_partitions == ("r", "z")


def test_the_plan_is_what_the_jvm_stores() -> None:
    request = PlanRequest(
        order=RowOrder(columns=("x", "y"), layout="hilbert"), limits=LIMITS, uri=lambda p: f"file:/{p}"
    )
    plan = plan_clustering([base("a", 90), logged("b", 5)], set(), request).plan
    whole = RequestedReplaceMetadata(operation_type="CLUSTER", clustering_plan=plan, extra_metadata={})
    again = RequestedReplaceMetadata.parse(whole.to_bytes(), path="test").clustering_plan
    assert again == plan
    assert plan.strategy is not None
    assert plan.strategy.strategy_params == {
        "hoodie.clustering.plan.strategy.sort.columns": "x,y",
        "hoodie.layout.optimize.strategy": "hilbert",
    }
    (group,) = plan.input_groups
    assert [piece.data_file_path for piece in group.slices] == ["file:/p/a_0-0-0_1.parquet", ""]
    assert [piece.delta_file_paths for piece in group.slices] == [(), ("file:/p/.b_2.log.1_0-0-0",)]
    assert group.num_output_file_groups == 1
    assert group.metrics == {
        "TOTAL_LOG_FILES": 1.0,
        "TOTAL_LOG_FILES_SIZE": 5.0,
        "TOTAL_IO_READ_MB": 0.0,
        "TOTAL_IO_WRITE_MB": 0.0,
        "TOTAL_IO_MB": 0.0,
    }


@pytest.mark.parametrize(
    ("settings", "chosen"),
    [
        ({}, ["a", "b", "c", "d"]),
        ({"plan.strategy.partition.selected": "b, d,x"}, ["b", "d"]),
        ({"plan.strategy.partition.regex.pattern": "[ab]|d."}, ["a", "b"]),
        ({"plan.partition.filter.mode": "RECENT_DAYS"}, ["c", "d"]),
        (
            {
                "plan.partition.filter.mode": "recent_days",
                "plan.strategy.daybased.skipfromlatest.partitions": "1",
                "plan.strategy.daybased.lookback.partitions": "1",
            },
            ["c"],
        ),
        (
            {
                "plan.partition.filter.mode": "SELECTED_PARTITIONS",
                "plan.strategy.cluster.begin.partition": "b",
                "plan.strategy.cluster.end.partition": "c",
            },
            ["b", "c"],
        ),
        ({"plan.partition.filter.mode": "DAY_ROLLING"}, ["c"]),
    ],
)
def test_partitions_are_chosen_as_in_hudi(settings: Mapping[str, str], chosen: list[str]) -> None:
    properties = {f"hoodie.clustering.{key}": value for key, value in settings.items()}
    assert choose_partitions(["d", "b", "a", "c"], properties, hour=2) == chosen


def test_options_are_parsed_or_refused() -> None:
    assert clustering.CLUSTER_LAYOUT.get({clustering.CLUSTER_LAYOUT.key: "Z-ORDER"}) == "zorder"
    strategy = "org.apache.hudi.client.clustering.update.strategy.SparkAllowUpdateStrategy"
    assert clustering.CLUSTER_UPDATES.get({clustering.CLUSTER_UPDATES.key: strategy}) == "allow"
    assert PlanLimits.of({clustering.CLUSTER_SLICE_ORDER.key: "INSTANT_TIME,SIZE"}).slice_order == (
        "instant_time",
        "size",
    )
    for option, wrong in (
        (clustering.CLUSTER_LAYOUT, "spiral"),
        (clustering.CLUSTER_UPDATES, "maybe"),
        (clustering.CLUSTER_PARTITION_PATTERN, "("),
        (clustering.CLUSTER_SLICE_ORDER, "name"),
    ):
        with pytest.raises(InvalidConfigError, match=option.key):
            option.get({option.key: wrong})


def test_advice_names_the_partitions_with_many_small_files() -> None:
    few = [base(f"f{number}", 5, "few") for number in range(9)]
    many = [base(f"m{number:02}", 5, "many") for number in range(20)]
    large = [base(f"l{number:02}", 99, "most") for number in range(12)]
    found = small_files([*few, *large, *many], (), PlanLimits(small_bytes=100, target_bytes=99, group_bytes=10_000))
    assert (found.partitions, found.file_slices, found.files_after, found.size_bytes) == (("many",), 20, 2, 100)
    assert "20 small file slices" in str(found)
    assert not small_files(few).is_advised
    busy = {("many", found.file_id) for found in many[:11]}
    assert not small_files(many, busy, PlanLimits()).is_advised
