"""Options of the HBase index."""

from __future__ import annotations

from typing import Final

from hoodie.config.option import Option, count, flag, positive, text

HBASE_TABLE: Final = Option(
    "hoodie.index.hbase.table",
    "",
    text,
    "0.4",
    "Required with index='hbase', and stored: the HBase table of the index, with a namespace as `namespace:table`.",
)
HBASE_THRIFT_HOST: Final = Option(
    "hoodie.index.hbase.thrift.host", "127.0.0.1", text, "hoodie", "Host of an HBase Thrift 2 server."
)
HBASE_THRIFT_PORT: Final = Option(
    "hoodie.index.hbase.thrift.port", 9090, positive, "hoodie", "Port of the HBase Thrift 2 server."
)
HBASE_THRIFT_SSL: Final = Option(
    "hoodie.index.hbase.thrift.ssl", False, flag, "hoodie", "Whether the connection to the Thrift server uses TLS."
)
HBASE_THRIFT_CA_FILE: Final = Option(
    "hoodie.index.hbase.thrift.ssl.ca.file",
    "",
    text,
    "hoodie",
    "PEM file with the authorities that may sign the Thrift server's certificate; default: those of the system.",
)
HBASE_TIMEOUT_MS: Final = Option(
    "hoodie.index.hbase.timeout.ms",
    30_000,
    positive,
    "hoodie",
    "Milliseconds after which a connection to the Thrift server, or an answer of it, is given up with an error.",
)
HBASE_GET_BATCH: Final = Option(
    "hoodie.index.hbase.get.batch.size", 1000, positive, "0.4", "Keys of one request that reads the HBase index."
)
HBASE_PUT_BATCH: Final = Option(
    "hoodie.index.hbase.put.batch.size", 1000, positive, "0.4", "Keys of one request that writes the HBase index."
)
HBASE_QPS_MAX: Final = Option(
    "hoodie.index.hbase.max.qps.per.region.server",
    0,
    count,
    "0.4",
    "Maximum number of keys that one write reads or writes in a second, for each region server that has a region of "
    "the HBase table; 0 for no limit.",
)
HBASE_UPDATE_PARTITION_PATH: Final = Option(
    "hoodie.hbase.index.update.partition.path",
    False,
    flag,
    "0.5.3",
    "HBase index: a record whose partition path changed moves to the new partition (true, stored for new tables), or "
    "stays in its old partition (false).",
)
HBASE_IDENTITY: Final = Option(
    "hoodie.python.index.hbase.id",
    "",
    text,
    "hoodie",
    "Stored: the identity of the HBase index, which a row of the HBase table has too. Each build sets a new one.",
)
HBASE_BUILT: Final = Option(
    "hoodie.python.index.hbase.built",
    "",
    text,
    "hoodie",
    "Stored: the newest commit when the HBase index was built. The index is incomplete if that commit is taken back.",
)
