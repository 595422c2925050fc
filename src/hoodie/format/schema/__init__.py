"""Schemas of tables: Avro to Arrow and back, evolution, and rows brought into a schema."""
