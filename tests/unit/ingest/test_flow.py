"""One flow: each batch once, whatever happened before; starts, bad rows, several events of a key, previews."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pytest

import hoodie
from hoodie.commit.steps import Step
from hoodie.errors import BadRowsError, HoodieError, InvalidConfigError, SourceError
from hoodie.format.instants.ingest_checkpoint import KEYS
from hoodie.ingest.bad_rows import POSITION, REASON, VALUE, BadRowsPolicy, divided
from hoodie.ingest.flow import Flow, Start
from hoodie.ingest.source import Batch, Decoded, Request
from hoodie.ingest.target import Target
from hoodie.ingest.transforms import transforms_of
from hoodie.storage import MemoryStore
from hoodie.table import Table
from hoodie.view.table_view import TableView
from tests.support.archived import OFTEN, active_times
from tests.support.flows import CREATE, Numbers, flow_into, numbers_of, rows_of_numbers
from tests.support.steps import once_at

PLACE = KEYS[0]


def made(store: MemoryStore | None = None, **options: Any) -> MemoryStore:
    store = store or MemoryStore()
    hoodie.create(store.uri(""), rows_of_numbers(range(0)), **{**CREATE, **options})
    return store


def run(flow: Flow, batches: int = 100) -> int:
    """Run at most so many batches; return how many there were."""
    for done in range(batches):
        if flow.run_batch() is None:
            return done
    return batches


def begun(store: MemoryStore, count: int, **options: Any) -> str | None:
    """Run a flow of so many numbers; return the place behind which it began."""
    source = Numbers(count)
    run(flow_into(store, source, **options))
    return source.plans[0]


def extra(store: MemoryStore) -> dict[str, str]:
    view = Table(store).view()
    return dict(view.commit_metadata(view.completed_writes()[-1]).extra_metadata)


@pytest.mark.parametrize(
    "options", [{}, {"type": "merge_on_read"}, {"table_version": 6}, {"table_version": 8}], ids=str
)
def test_a_flow_goes_on_behind_the_newest_commit(options: dict[str, Any]) -> None:
    store = made(**options)
    for count in (3, 3, 8):  # new processes, and a source that grows
        run(flow_into(store, Numbers(count)))
        assert numbers_of(Table(store)) == list(range(count))
        assert extra(store)[PLACE] == str(count)


def test_other_writers_and_services_do_not_lose_the_place() -> None:
    store = made(properties=OFTEN)
    run(flow_into(store, Numbers(4)))
    for number in range(30):
        Table(store).upsert(rows_of_numbers(range(100, 101 + number % 2)))
    assert len(active_times(store)) < 30
    assert begun(store, 6) == "4"
    assert numbers_of(Table(store)) == [0, 1, 2, 3, 4, 5, 100, 101]


def test_a_restore_takes_the_place_back_with_the_rows() -> None:
    store = made()
    run(flow_into(store, Numbers(4)))
    Table(store).savepoint()
    run(flow_into(store, Numbers(8)))
    (savepoint,) = [found.requested_time for found in Table(store).timeline if found.action.value == "savepoint"]
    Table(store).restore(savepoint)
    assert numbers_of(Table(store)) == list(range(4))
    run(flow_into(store, Numbers(8)))
    assert numbers_of(Table(store)) == list(range(8))


@pytest.mark.parametrize("step", [Step.BEGUN, Step.WRITTEN, Step.LOCATED])
@pytest.mark.parametrize(
    "options",
    [*({"operation": name} for name in ("upsert", "insert", "bulk_insert")), {"name": "a", "is_named": True}],
    ids=lambda options: "-".join(map(str, options.values())),
)
def test_two_flows_that_read_the_same_batch_write_it_once(step: Step, options: dict[str, Any]) -> None:
    store = made(index="simple")
    first, second = (flow_into(store, Numbers(2), **{"operation": "insert", **options}) for _ in range(2))
    results: list[object] = []
    with once_at(step, lambda: results.append(second.run_batch())):
        assert first.run_batch() is None  # it planned again, and nothing was left
    assert results[0] is not None
    assert numbers_of(Table(store)) == [0, 1]


def test_flows_with_names_write_one_table() -> None:
    store = made()
    other = rows_of_numbers(range(50, 54))

    @dataclass
    class Fifties:
        def plan(self, request: Request) -> Batch | None:
            return None if request.after else Batch(place="done", read=lambda: other)

    for count in (2, 4):
        run(flow_into(store, Numbers(count), name="a", is_named=True))
        run(flow_into(store, Fifties(), name="b", is_named=True))
    assert numbers_of(Table(store)) == [0, 1, 2, 3, 50, 51, 52, 53]
    assert json.loads(extra(store)[PLACE]) == {"a": "4", "b": "done"}


def test_a_start_counts_once() -> None:
    store = made()
    assert begun(store, 6) is None
    for start, place in ((Start(place="2"), "2"), (Start(ignore="first"), None)):
        assert [begun(store, 6, start=start), begun(store, 6, start=start)] == [place, "6"]
    assert numbers_of(Table(store)) == list(range(6))


def test_a_new_text_to_ignore_counts_before_a_new_place() -> None:
    store = made()
    starts = (Start(), Start(place="2", ignore="x"), Start(place="4", ignore="x"))
    assert [begun(store, 6, start=start) for start in starts] == [None, None, "4"]


def test_a_batch_without_rows_stores_its_place() -> None:
    store = made()

    def nothing(rows: pa.Table, _context: object) -> pa.Table:
        return rows.slice(0, 0)

    run(flow_into(store, Numbers(4), transforms=[nothing]))
    assert extra(store)[PLACE] == "4"
    assert numbers_of(Table(store)) == []


def test_a_table_is_created_with_the_columns_of_the_first_batch(tmp_path: Any) -> None:
    path = str(tmp_path / "numbers")
    with pytest.raises(InvalidConfigError, match="there is no table; create it"):
        hoodie.ingest(Numbers(2), path, spark=False)
    with pytest.raises(InvalidConfigError, match="unknown keys"):
        hoodie.ingest(Numbers(2), path, create={"keys": "id"}, spark=False)
    with pytest.raises(InvalidConfigError, match=r'such as \{"record_key": "id"\}, found'):
        hoodie.ingest(Numbers(2), path, create="id", spark=False)
    result = hoodie.ingest(Numbers(5), path, create=CREATE, spark=False)
    assert (result.batches, result.inserted, result.place, result.lag_rows) == (3, 5, "5", 0)
    assert "3 batches, 5 inserted" in str(result)
    assert numbers_of(hoodie.open(path)) == list(range(5))
    assert "nothing new" in str(hoodie.ingest(Numbers(5), path, spark=False))
    several = {"record_key": ["id", "n"], "table_version": 8, "properties": {"hoodie.clean.automatic": "false"}}
    hoodie.ingest(Numbers(2), f"{path}-2", create=several, spark=False)
    assert hoodie.open(f"{path}-2").view().config.record_key_fields == ("id", "n")


@dataclass(frozen=True)
class Events:
    """Events of keys in an order that is not that of the rows."""

    rows: pa.Table
    order: tuple[str, ...] = ("at",)

    def plan(self, request: Request) -> Batch | None:
        return None if request.after else Batch(place="1", read=lambda: Decoded(rows=self.rows, order=self.order))


def events() -> pa.Table:
    return rows_of_numbers(range(4), at=[5, 1, 2, 9]).set_column(0, "id", pa.array(["a", "a", "b", "b"]))


def test_the_last_event_of_a_key_counts() -> None:
    store = made(partition_by=())
    run(flow_into(store, Events(events())))
    found = Table(store).to_arrow(["id", "n"]).sort_by("id").to_pylist()
    assert found == [{"id": "a", "n": 0}, {"id": "b", "n": 3}]
    assert Table(store).schema.names == ["id", "n", "city"]


def test_transforms_that_drop_the_order_are_noted() -> None:
    store = made(partition_by=())
    flow = flow_into(store, Events(events()), transforms=[lambda rows, _context: rows.drop_columns(["at"])])
    result = flow.run_batch()
    assert result is not None
    assert "the transforms drop at" in result.notes[0]


@pytest.mark.parametrize("operation", ["upsert", "insert"])
def test_transforms_that_drop_the_flag_of_deletes_are_refused(operation: str) -> None:
    store, events = made(partition_by=()), rows_of_numbers(range(2), _hoodie_is_deleted=pa.array([True, False]))
    options = {"transforms": transforms_of("SELECT id, n, city FROM source"), "operation": operation}
    with pytest.raises(InvalidConfigError, match="drop the column _hoodie_is_deleted"):
        flow_into(store, Events(events, order=()), **options).run_batch()
    assert numbers_of(Table(store)) == []


def test_the_operation_delete_needs_no_flag() -> None:
    store, events = made(partition_by=()), rows_of_numbers(range(2), _hoodie_is_deleted=pa.array([True, False]))
    Table(store).upsert(rows_of_numbers(range(3)))
    options = {"transforms": transforms_of("SELECT id FROM source"), "operation": "delete"}
    flow_into(store, Events(events, order=()), **options).run_batch()
    assert numbers_of(Table(store)) == [2]


def test_deletes_of_a_table_pass_transforms_that_keep_the_flag() -> None:
    source, target = made(), MemoryStore()
    Table(source).upsert(rows_of_numbers(range(3)))
    chain = {"kind": "hudi", "path": source.uri(""), "mode": "cdc"}
    query = "SELECT id, n, city, _hoodie_is_deleted FROM source"
    for count in (3, 2):
        hoodie.ingest(chain, target.uri(""), create=CREATE, transform=query, spark=False)
        found = Table(target)
        assert (len(numbers_of(found)), found.schema.names) == (count, ["id", "n", "city"])
        Table(source).delete(rows_of_numbers(range(1)))
    Table(source).delete(rows_of_numbers(range(1, 2)))
    with pytest.raises(HoodieError, match="drop the column _hoodie_is_deleted"):
        hoodie.ingest(chain, target.uri(""), transform="SELECT id, n, city FROM source", spark=False)


def test_an_ordering_of_the_table_decides_by_itself() -> None:
    store = made(partition_by=(), ordering="n")
    run(flow_into(store, Events(events())))
    assert sorted(Table(store).to_arrow("n")["n"].to_pylist()) == [1, 3]


@pytest.mark.parametrize(
    ("create", "deletes_by"),
    [
        ({}, ()),
        ({"ordering": "n"}, ("n",)),
        ({"ordering": ["n"], "index": "simple"}, ("n", "city")),
        ({"index": "global_simple"}, ()),
    ],
    ids=str,
)
def test_a_source_knows_what_decides_a_delete(create: dict[str, Any], deletes_by: tuple[str, ...]) -> None:
    store = MemoryStore()
    flow = Flow(name="numbers", source=Numbers(2), target=Target(path=store.uri(""), create={**CREATE, **create}))
    for _ in range(2):
        request = flow.request(flow.begun())
        assert (request.keys, request.deletes_by) == (("id",), deletes_by)
        flow.run_batch()
    request = replace(flow, operation="insert").request(flow.begun())
    assert (request.keys, request.deletes_by) == ((), ())


@dataclass(frozen=True)
class Mixed:
    """A batch of two good rows and two bad ones."""

    def plan(self, request: Request) -> Batch | None:
        reasons = pa.array([None, "no JSON", None, "no number"], pa.string())
        rows = rows_of_numbers(range(4)).append_column(REASON, reasons)
        rows = rows.append_column(POSITION, pa.array([f"line {n}" for n in range(4)]))
        rows = rows.append_column(VALUE, pa.array(["x" * 500] * 4))
        return None if request.after else Batch(place="1", read=lambda: divided(rows))


def test_bad_rows_refuse_their_batch_with_samples() -> None:
    store = made()
    before = active_times(store)
    with pytest.raises(BadRowsError, match=r"2 rows of the batch cannot be used(?s:.*)line 1: no JSON: xxx") as error:
        flow_into(store, Mixed()).run_batch()
    assert len(str(error.value)) < 1000
    assert active_times(store) == before


def test_bad_rows_are_left_out_up_to_a_limit() -> None:
    store = made()
    with pytest.raises(BadRowsError, match="and 1 are allowed"):
        flow_into(store, Mixed(), bad_rows=BadRowsPolicy(mode="skip", max=1)).run_batch()
    result = flow_into(store, Mixed(), bad_rows=BadRowsPolicy(mode="skip", max=2)).run_batch()
    assert result is not None
    assert result.bad_rows == 2
    assert "2 bad rows" in str(result)
    assert numbers_of(Table(store)) == [0, 2]


def test_bad_rows_go_to_a_table_each_once(tmp_path: Any) -> None:
    store, path = made(), str(tmp_path / "bad")
    policy = BadRowsPolicy(mode=path)
    with pytest.raises(HoodieError, match="died"), once_at(Step.RECORDED, _die):
        flow_into(store, Mixed(), bad_rows=policy).run_batch()
    for _ in range(2):
        run(flow_into(store, Mixed(), bad_rows=policy))
    found = hoodie.open(path).to_arrow(["flow", "position", "reason"]).sort_by("position").to_pylist()
    assert found == [
        {"flow": "numbers", "position": "line 1", "reason": "no JSON"},
        {"flow": "numbers", "position": "line 3", "reason": "no number"},
    ]
    assert numbers_of(Table(store)) == [0, 2]


def _die() -> None:
    raise SourceError("died")


def test_a_preview_changes_nothing() -> None:
    store = made()
    run(flow_into(store, Numbers(2)))
    before = store.list("", recursive=True)

    class Again(Numbers):
        def plan(self, request: Request) -> Batch | None:
            return super().plan(replace(request, after="0"))

    preview = flow_into(store, Again(6, step=4)).preview()
    assert preview is not None
    assert (preview.rows, preview.new, preview.lag_rows, preview.place) == (4, 2, 2, "4")
    assert "4 rows, 2 of them with new keys" in str(preview)
    assert store.list("", recursive=True) == before
    assert flow_into(store, Numbers(2)).preview() is None


def test_the_table_of_bad_rows_has_the_options_of_its_store() -> None:
    with pytest.raises(InvalidConfigError, match="aws_regoin"):
        hoodie.ingest(Mixed(), Table(made()), bad_rows="s3://lake/bad", storage_options={"aws_regoin": "eu-west-1"})


class Ordered:
    """Batches of events in an order of their source."""

    def plan(self, request: Request) -> Batch:
        number = int(request.after or 0)
        rows = rows_of_numbers(range(number, number + 2), id=pa.array(["k", "k"]), _order=pa.array([0, 1]))
        return Batch(place=str(number + 1), read=lambda: Decoded(rows=rows, order=("_order",)))


@pytest.mark.parametrize("options", [{}, {"name": "a", "is_named": True}, {"operation": "insert"}], ids=str)
def test_a_batch_loads_the_table_once_before_its_write(options: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    flow = flow_into(made(), Ordered(), **options)
    flow.run_batch()
    loads = []
    load = TableView.load

    def counted(*given: Any) -> TableView:
        loads.append(given)
        return load(*given)

    monkeypatch.setattr(TableView, "load", counted)
    assert flow.run_batch() is not None
    assert len(loads) == 4  # by the flow, the checks of the write, its begin, and its commit


def test_what_follows_a_commit_cannot_fail_it() -> None:
    store = made()

    def fail() -> None:
        raise OSError("no permission")

    class Archiving(Numbers):
        def plan(self, request: Request) -> Batch | None:
            batch = super().plan(request)
            return None if batch is None else replace(batch, after_commit=fail)

    with pytest.warns(hoodie.HoodieWarning, match="committed"):
        result = flow_into(store, Archiving(2)).run_batch()
    assert result is not None
    assert "no permission" in result.notes[0]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: hoodie.ingest({"kind": "telex"}, "memory://x"), "kind='telex': expected one of files, kafka"),
        (lambda: hoodie.ingest("rows.json", "memory://x"), "expected a hoodie.Source"),
        (lambda: hoodie.ingest(Numbers(1), "memory://x", operation="insrt", create=CREATE), "a stream takes one of"),
        (lambda: hoodie.ingest(Numbers(1), "memory://x", limit=0, create=CREATE), "limit=0"),
        (lambda: hoodie.ingest(Numbers(1), 7), "table: expected a path"),
        (lambda: hoodie.ingest(Numbers(1), "memory://x", bad_rows_max=3), "bad_rows_max=3"),
        (lambda: hoodie.ingest({"kind": "function", "call": "x"}, "memory://x"), "expected a function"),
    ],
)
def test_wrong_arguments(call: Callable[[], object], words: str) -> None:
    with pytest.raises(InvalidConfigError, match=words):
        call()


def test_a_place_in_the_archive_beside_an_active_savepoint() -> None:
    store = made()
    run(flow_into(store, Numbers(4)))
    Table(store).savepoint()
    run(flow_into(store, Numbers(20)))
    options = {**OFTEN, "hoodie.archive.beyond.savepoint": "true"}
    for number in range(12):
        Table(store).upsert(rows_of_numbers(range(100, 101 + number % 2)), properties=options)
    assert begun(store, 22) == "20"
    assert numbers_of(Table(store)) == [*range(22), 100, 101]


@pytest.mark.parametrize("version", [6, 9])
def test_a_named_flow_commits_beside_the_others(version: int) -> None:
    store = made(index="simple", table_version=version)
    first, second = (flow_into(store, Numbers(4), name=name, is_named=True, operation="insert") for name in "ab")
    run(first, 1)
    with once_at(Step.WRITTEN, lambda: second.run_batch()):
        result = first.run_batch()
    assert result is not None
    run(flow_into(store, Numbers(4), name="b", is_named=True, operation="insert"))
    assert numbers_of(Table(store)) == [0, 0, 1, 1, 2, 2, 3, 3]


def test_a_flow_that_gets_a_name_does_not_begin_anew_by_itself() -> None:
    store = made()
    run(flow_into(store, Numbers(4)))
    with pytest.raises(InvalidConfigError, match="the place '4' of a flow without a name"):
        flow_into(store, Numbers(6), name="a", is_named=True).run_batch()
    assert begun(store, 6, name="a", is_named=True, start=Start(place="4")) == "4"


def test_a_start_counts_once_even_if_runs_between_do_not_give_it() -> None:
    store, start = made(), Start(place="1", ignore="x")
    assert [begun(store, 4, start=start), begun(store, 6), begun(store, 8, start=start)] == ["1", "4", "6"]


def test_an_empty_start_is_refused() -> None:
    starts: list[dict[str, Any]] = [{"checkpoint": ""}, {"ignore_checkpoint": ""}]
    for start in starts:
        with pytest.raises(InvalidConfigError, match="expected a text, found an empty one"):
            hoodie.ingest(Numbers(2), "memory://x", create=CREATE, **start)


@dataclass
class Placed:
    """A source that returns the same place each time."""

    place: str

    def plan(self, request: Request) -> Batch | None:
        return Batch(place=self.place, read=lambda: rows_of_numbers(range(2)))


def test_a_place_that_does_not_move_on() -> None:
    flow = flow_into(made(), Placed("here"))
    assert flow.run_batch() is not None
    with pytest.raises(SourceError, match="returned the place 'here' again"):
        flow.run_batch()


def test_a_place_with_the_form_of_named_places() -> None:
    store = made()
    with pytest.raises(InvalidConfigError, match="has the form of the places of named flows"):
        flow_into(store, Placed('{"p": "1"}')).run_batch()
    assert active_times(store) == []
    assert flow_into(store, Placed('{"p": "1"}'), name="a", is_named=True).run_batch() is not None


@dataclass
class FromNow:
    """A source whose first batch has no rows, only a place."""

    def plan(self, request: Request) -> Batch | None:
        return None if request.after else Batch(place="9", rows=0, read=lambda: pa.table({}))


def test_a_first_batch_without_rows_stores_its_place(tmp_path: Any) -> None:
    path = str(tmp_path / "numbers")
    with pytest.raises(InvalidConfigError, match="pass schema="):
        hoodie.ingest(FromNow(), path, create=CREATE, spark=False)
    schema = rows_of_numbers(range(0)).schema
    result = hoodie.ingest(FromNow(), path, create=CREATE, schema=schema, spark=False, transform="SELECT 1 FROM source")
    assert (result.place, hoodie.open(path).schema) == ("9", schema)


def test_a_continuous_flow_that_fails_warns() -> None:
    store, stop = made(), threading.Event()

    class Failing(Numbers):
        def plan(self, request: Request) -> Batch | None:
            if len(self.plans) == 2:
                stop.set()
            self.plans.append(request.after)
            raise SourceError("no broker")

    with pytest.warns(hoodie.HoodieWarning, match="no broker; the batch is tried again"):
        result = hoodie.ingest(Failing(2), Table(store), continuous=True, stop=stop)
    assert result.error == "no broker"


def test_code_of_the_user_that_exits_fails_its_flow_only() -> None:
    class Exiting(Numbers):
        def plan(self, request: Request) -> Batch | None:
            raise SystemExit(0)

    with pytest.raises(HoodieError, match="SystemExit: 0"):
        hoodie.ingest(Exiting(2), Table(made()))
