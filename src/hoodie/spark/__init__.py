"""The only room that imports PySpark: the Spark engine, DataFrames in and out, the data source."""

from hoodie.spark.engine import SparkDataset, SparkEngine, active_session, session_of
from hoodie.spark.frames import assigned, filter_exists, to_arrow
from hoodie.spark.scan import read_scan
from hoodie.spark.session import open_local_session
from hoodie.spark.types import arrow_schema_of

__all__ = [
    "SparkDataset",
    "SparkEngine",
    "active_session",
    "arrow_schema_of",
    "assigned",
    "filter_exists",
    "open_local_session",
    "read_scan",
    "session_of",
    "to_arrow",
]
