"""The only package that imports PySpark: the Spark engine, conversions of DataFrames, the data source."""

from hoodie.spark.catalog import catalog_path
from hoodie.spark.cdc import read_cdc
from hoodie.spark.datasource import register
from hoodie.spark.engine import SparkDataset, SparkEngine, active_session, session_of
from hoodie.spark.frames import assigned, filter_exists
from hoodie.spark.locations import record_locations
from hoodie.spark.merge_rows import merged_rows
from hoodie.spark.merge_source import merge_source
from hoodie.spark.scan import read_scan
from hoodie.spark.session import open_local_session
from hoodie.spark.small_tables import from_arrow, to_arrow
from hoodie.spark.stream_sink import start_stream
from hoodie.spark.types import arrow_schema_of

__all__ = [
    "SparkDataset",
    "SparkEngine",
    "active_session",
    "arrow_schema_of",
    "assigned",
    "catalog_path",
    "filter_exists",
    "from_arrow",
    "merge_source",
    "merged_rows",
    "open_local_session",
    "read_cdc",
    "read_scan",
    "record_locations",
    "register",
    "session_of",
    "start_stream",
    "to_arrow",
]
