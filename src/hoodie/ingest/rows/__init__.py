"""Read files of rows (Parquet, CSV, JSON lines, Avro): one file, or many as one stream; the caller opens the bytes."""
