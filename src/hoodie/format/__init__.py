"""Codecs of the on-disk format: bytes to frozen records and back. No I/O, no Spark, no table logic."""
