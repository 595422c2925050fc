"""Options: ours are known where they are checked, those of JVM Hudi have a fate."""

from __future__ import annotations

import importlib
import pkgutil
import re

import pyarrow as pa
import pytest

import hoodie
import hoodie.config
from hoodie.config import OPTIONS, Option, check_options
from hoodie.config.hudi_options import Fate, hudi_options
from hoodie.config.translation import _CLASSES, translated
from hoodie.errors import HoodieWarning, InvalidConfigError
from hoodie.format.table.call_options import is_table_property
from tests.support.tables import new_table
from tests.tidy.sources import PACKAGE


def test_every_option_is_known() -> None:
    names = [found.name for found in pkgutil.iter_modules(hoodie.config.__path__)]
    modules = [importlib.import_module(f"hoodie.config.{name}") for name in names]
    defined = [value for module in modules for value in vars(module).values() if isinstance(value, Option)]
    assert {option.key for option in defined} == OPTIONS.keys()
    makes = re.compile(r"(?<![\w.])Option\(")
    made = {path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py") if makes.search(path.read_text())}
    # Those of creation are table properties, which are known besides.
    elsewhere = {path.as_posix() for path in made if path.parts[0] != "config"}
    assert elsewhere == {"write/create.py"}, "options of other modules would be read, but refused as unknown"


def test_a_refused_key_is_not_advised() -> None:
    with pytest.raises(InvalidConfigError, match=r"unknown option 'hoodie.table.type'; hoodie.config.OPTIONS lists"):
        check_options({"hoodie.table.type": "MERGE_ON_READ"})


def test_the_growth_factor_of_the_record_index_is_an_option_of_every_call() -> None:
    check_options({"hoodie.metadata.record.index.growth.factor": "1.5"})


# Options of JVM Hudi: second names, Java classes, options without effect, options that are refused

SCRIPT = {
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "city",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.SimpleKeyGenerator",
    "hoodie.datasource.write.payload.class": "org.apache.hudi.common.model.DefaultHoodieRecordPayload",
    "hoodie.datasource.write.table.name": "trips",
    "hoodie.datasource.write.operation": "upsert",
    "hoodie.datasource.hive_sync.enable": "false",
    "hoodie.upsert.shuffle.parallelism": "2",
    "hoodie.cleaner.commits.retained": "3",
    "hoodie.metadata.enable": "true",
}
"""Options of an ordinary script."""


TRIPS = pa.table({"id": ["a", "b"], "city": ["sf", "ny"], "ts": [1, 1]})


@pytest.fixture
def table() -> hoodie.Table:
    return new_table(TRIPS.schema, partition_by="city", ordering="ts", name="trips")


def test_every_key_has_a_fate_that_holds() -> None:
    for option in hudi_options().values():
        is_ours = option.key in OPTIONS or is_table_property(option.key)
        assert (option.fate is Fate.USED) == is_ours, option
        if option.fate in (Fate.NAME, Fate.CLASS):
            target = hudi_options().get(option.text)
            assert option.text in OPTIONS or is_table_property(option.text) or target is not None, option
        assert bool(option.text) == (option.fate is not Fate.USED), option
        assert (option.fate is Fate.CLASS) == (option.key in _CLASSES), option


def test_classes_that_do_what_is_done_here_ask_for_nothing() -> None:
    key, package = "hoodie.write.lock.conflict.resolution.strategy", "org.apache.hudi.client.transaction"
    simple = f"{package}.SimpleConcurrentFileWritesConflictResolutionStrategy"
    assert translated({key: simple}).idle == {key: simple}
    with pytest.raises(InvalidConfigError, match="two writes of one file group conflict"):
        translated({key: "com.example.NoConflicts"})


def test_the_default_of_the_jvm_asks_for_nothing() -> None:
    for option in hudi_options().values():
        if option.fate in (Fate.IDLE, Fate.REFUSED, Fate.CALL) and option.default:
            assert translated({option.key: option.default}).idle == {option.key: option.default}


def test_options_of_an_ordinary_script(table: hoodie.Table) -> None:
    result = table.upsert(TRIPS, properties=SCRIPT)
    assert result.inserted == 2
    (note,) = [note for note in result.notes if "without effect here" in note]
    assert "hoodie.upsert.shuffle.parallelism" in note
    assert "hoodie.metadata.enable" in note
    assert "recordkey" not in note


def test_services_name_them_too(table: hoodie.Table) -> None:
    table.upsert(TRIPS)
    (note,) = table.clean(properties={"hoodie.cleaner.parallelism": "4", "hoodie.cleaner.commits.retained": "3"}).notes
    assert note.endswith("hoodie.cleaner.parallelism")


def test_what_has_no_notes_warns() -> None:
    with pytest.warns(HoodieWarning, match=r"without effect here.*hoodie\.insert\.shuffle\.parallelism"):
        new_table(TRIPS.schema, properties={"hoodie.insert.shuffle.parallelism": "2"})


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({"hoodie.datasource.hive_sync.enable": "true"}, "no catalog is synchronised"),
        ({"hoodie.combine.before.upsert": "false"}, "always merged before they are written"),
        ({"hoodie.datasource.write.operation": "delete"}, "call the method"),
        ({"hoodie.datasource.write.recordkey.field": "ts"}, "is fixed when the table is created: expected 'id'"),
        ({"hoodie.datasource.write.payload.class": "a.b.OwnPayload"}, "no counterpart here; expected one of Over"),
        ({"hoodie.cleaner.policy": "X", "hoodie.clean.policy": "Y"}, r"are names of one option, hoodie\.clean\.policy"),
        ({"hoodie.index.typ": "simple"}, r"did you mean 'hoodie\.index\.type'"),
        ({"hoodie.datasorce.write.operaton": "insert"}, r"did you mean 'hoodie\.datasource\.write\.operation'\?"),
        ({"hoodie.no.such.option": "1"}, r"unknown option 'hoodie\.no\.such\.option'; hoodie\.config\.OPTIONS"),
    ],
)
def test_refused(table: hoodie.Table, properties: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidConfigError, match=message):
        table.upsert(TRIPS, properties=properties)
    assert not table.timeline.instants


def test_the_default_of_a_property_that_the_table_does_not_store(table: hoodie.Table) -> None:
    default = {"hoodie.datasource.write.slash.separated.date.partitioning": "False", "hoodie.python.durable": "false"}
    assert not default.keys() & table.view().config.raw.keys()
    assert table.upsert(TRIPS, properties=default).inserted == 2
    for key in default:
        with pytest.raises(InvalidConfigError, match="is fixed when the table is created: expected None"):
            table.upsert(TRIPS, properties={key: "true"})


def test_two_names_with_one_value(table: hoodie.Table) -> None:
    both = {"hoodie.cleaner.commits.retained": "3", "hoodie.clean.commits.retained": "3"}
    assert table.upsert(TRIPS, properties=both).notes == ()


def test_strategy_classes_of_clustering_choose_partitions() -> None:
    key, package = "hoodie.clustering.plan.strategy.class", "org.apache.hudi.client.clustering.plan.strategy."
    mode = "hoodie.clustering.plan.partition.filter.mode"
    by_days = translated({key: f"{package}SparkRecentDaysClusteringPlanStrategy"})
    assert by_days.properties == {mode: "RECENT_DAYS"}
    # The default leaves the choice to the mode.
    by_size = translated({key: f"{package}SparkSizeBasedClusteringPlanStrategy", mode: "DAY_ROLLING"})
    assert by_size.properties == {mode: "DAY_ROLLING"}
    with pytest.raises(InvalidConfigError, match="SparkSizeBasedClusteringPlanStrategy"):
        translated({key: "com.example.Mine"})


def test_an_asynchronous_clean_runs_after_the_commit(table: hoodie.Table) -> None:
    options = {"hoodie.clean.async": "true", "hoodie.clean.commits.retained": "1"}
    for turn in range(4):
        result = table.upsert(TRIPS.set_column(2, "ts", pa.array([turn, turn])), properties=options)
    assert [service.operation for service in result.services] == ["clean"]
    assert "hoodie.clean.async" in str(result.notes)
