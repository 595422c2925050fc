"""Make a Hudi table of Parquet files: find and read footers, unify schemas, count keys, then write or point to rows."""
