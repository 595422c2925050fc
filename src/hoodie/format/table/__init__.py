"""The configuration that a table stores.

That is `hoodie.properties` and its keys, the table version, the merge rule and the key generator.
"""
