"""Which Spark session serves a call, behind a protocol that the room `spark` implements.

`import hoodie` loads no PySpark. The package, which is above `spark/`, hands in the function that loads that room. The
function is called only if the caller passes a Spark session or DataFrame, or uses Spark already.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager
from datetime import date, datetime
from typing import TYPE_CHECKING, Any, Protocol

from hoodie.errors import UnsupportedError

if TYPE_CHECKING:
    import pyarrow as pa

    from hoodie.engine.api import Dataset, Engine
    from hoodie.merge_into.by_condition import UpdatePlan
    from hoodie.merge_into.plan import MergePlan
    from hoodie.read.cdc_plan import CdcPlan
    from hoodie.read.plan import ScanPlan
    from hoodie.read.times import When
    from hoodie.storage import Store, StoreSpec
    from hoodie.view.table_view import TableView


class SparkRoom(Protocol):
    """What `table/`, `statements/` and `cli/` ask of Spark; the package `hoodie.spark` implements it.

    Frames and sessions are objects of PySpark, classic or Connect.
    """

    def active_session(self) -> Any | None: ...
    def check_literals(self, session: Any, text: str) -> None: ...
    def now(self, session: Any) -> tuple[datetime, date]: ...
    def open_local_session(self, name: str) -> Any: ...
    def open_session(self, name: str, confs: Mapping[str, str]) -> Any: ...
    def register(self, session: Any) -> None: ...
    def unregister(self, session: Any) -> None: ...
    def load(self, session: Any, store: StoreSpec, options: Mapping[str, str]) -> Any: ...
    def save(self, session: Any, store: Store, frame: Any, wanted: Any) -> Any: ...
    def engine_of(self, session: Any) -> Engine: ...
    def engine_and_dataset(self, frame: Any) -> tuple[Engine, Dataset]: ...
    def arrow_schema_of(self, schema: Any) -> pa.Schema: ...
    def to_arrow(self, frame: Any) -> pa.Table: ...
    def answer(self, session: Any, result: Any, *, stacklevel: int = 3) -> Any: ...
    def from_arrow(self, session: Any, table: pa.Table) -> Any: ...
    def read_scan(self, session: Any, plan: ScanPlan) -> Any: ...
    def read_cdc(self, session: Any, plan: CdcPlan, *, flat: bool = False) -> Any: ...
    def divided(self, frame: Any, reason: str) -> tuple[Any, Callable[[], int | None]]: ...
    def mapped(self, frame: Any, work: Callable[[pa.Table], pa.Table], schema: pa.Schema) -> Any: ...
    def in_types(
        self, frame: Any, texts: Mapping[str, str], schema: pa.Schema, call: str, constant: Collection[str]
    ) -> Any: ...
    def assigned(self, session: Any, plan: UpdatePlan, assignments: Mapping[str, str]) -> Any: ...
    def filter_exists(self, view: TableView, frame: Any, *, is_global: bool) -> Any: ...
    def record_locations(self, view: TableView, frame: Any, *, as_of: When | None = None) -> Any: ...
    def merge_source(self, frame: Any, store: Store) -> AbstractContextManager[Callable[[], Any]]: ...
    def merged_rows(self, plan: MergePlan, frame: Any, staged: Any, bytes_max: int) -> Any: ...
    def Catalog(self, session: Any) -> Any: ...
    def start_stream(
        self,
        context: Any,
        frame: Any,
        operation: str,
        *,
        checkpoint: str | None,
        trigger: Mapping[str, Any] | None,
        name: str | None,
        identifier: str | None,
        output_mode: str,
        properties: Mapping[str, str],
    ) -> Any: ...


_loaders: list[Callable[[], SparkRoom]] = []


def use(load: Callable[[], SparkRoom]) -> None:
    """Set the function that loads the room `spark`; the package calls this once."""
    _loaders[:] = [load]


def spark_room() -> SparkRoom:
    """Load and return the room `spark`. Raises: UnsupportedError if PySpark is not installed."""
    try:
        return _loaders[0]()
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "pyspark":
            raise
        raise UnsupportedError(
            "the call requires Spark, and PySpark is not installed: pip install 'hoodie[spark]'; without Spark, "
            "t.to_arrow() returns the rows as an Arrow table"
        ) from error


def is_spark(value: object) -> bool:
    """Return whether the value is an object of PySpark (classic or Connect)."""
    return type(value).__module__.partition(".")[0] == "pyspark"


def active_session() -> Any | None:
    """Return the active Spark session of this program; None if there is none or the program does not use Spark."""
    return spark_room().active_session() if "pyspark" in sys.modules else None


def engine_and_dataset(data: object) -> tuple[Engine, Dataset]:
    """Return the engine that processes the data without moving it, and the data as a dataset of that engine.

    Spark processes a Spark DataFrame; this process processes what `engine.inputs.dataset_of` accepts.

    Raises: UnsupportedError for data of any other type.
    """
    if is_spark(data):
        return spark_room().engine_and_dataset(data)
    from hoodie.engine import LocalEngine
    from hoodie.engine.inputs import dataset_of

    return LocalEngine(), dataset_of(data)


def arrow_schema(schema: Any) -> pa.Schema:
    """Return the Arrow schema of a pyarrow Schema, a Spark StructType or DataFrame, or in-process data.

    Raises: as `engine.inputs.table_in_memory`.
    """
    if is_spark(schema):
        return spark_room().arrow_schema_of(getattr(schema, "schema", schema))
    from hoodie.engine.inputs import schema_of

    return schema_of(schema)
