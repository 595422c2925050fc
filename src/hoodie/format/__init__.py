"""The bytes of a table: parse them into frozen records, and make them again. Pure: no I/O, no Spark, no table logic."""
