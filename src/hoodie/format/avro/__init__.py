"""Avro: schemas, container files, and records that are frozen dataclasses.

Row data is decoded and encoded by whole columns in `rows/`.
"""
