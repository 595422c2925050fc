"""The only package that imports PySpark: the Spark engine, conversions of DataFrames, the data source."""

from hoodie.spark.answers import answer
from hoodie.spark.assignment import in_types
from hoodie.spark.catalog import Catalog
from hoodie.spark.divided import divided
from hoodie.spark.engine import SparkDataset, SparkEngine, active_session, engine_and_dataset, engine_of
from hoodie.spark.lookups import assigned, filter_exists, record_locations
from hoodie.spark.merge import merge_source, merged_rows
from hoodie.spark.merged import read_cdc
from hoodie.spark.scan import read_scan
from hoodie.spark.session import check_literals, now, open_local_session, open_session
from hoodie.spark.small_tables import from_arrow, to_arrow
from hoodie.spark.stream_sink import start_stream
from hoodie.spark.takeover import load, register, save, unregister
from hoodie.spark.tasks import mapped
from hoodie.spark.types import arrow_schema_of

__all__ = [
    "Catalog",
    "SparkDataset",
    "SparkEngine",
    "active_session",
    "answer",
    "arrow_schema_of",
    "assigned",
    "check_literals",
    "divided",
    "engine_and_dataset",
    "engine_of",
    "filter_exists",
    "from_arrow",
    "in_types",
    "load",
    "mapped",
    "merge_source",
    "merged_rows",
    "now",
    "open_local_session",
    "open_session",
    "read_cdc",
    "read_scan",
    "record_locations",
    "register",
    "save",
    "start_stream",
    "to_arrow",
    "unregister",
]
