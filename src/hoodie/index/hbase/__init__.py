"""The HBase index: one row of an HBase table for each record key (docs/indexes/hbase.md, docs/format/hbase.md)."""
