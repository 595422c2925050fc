"""Schemas of tables: Avro and Arrow types, schema evolution, and the conversion of rows to a schema."""
