"""SQL statements on tables: MERGE INTO, UPDATE, DELETE FROM, and CALL of Hudi's procedures.

Statements are parsed here and run by the methods of `Table`. Expressions stay Spark SQL. docs/sql.md.
"""
