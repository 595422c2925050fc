"""SQL statements on tables: CREATE TABLE, INSERT, SELECT, MERGE INTO, UPDATE, DELETE, ALTER TABLE, CALL, …

Statements are parsed here and run by the methods of `Table`. Expressions stay Spark SQL. docs/sql.md.
"""
