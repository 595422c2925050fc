"""What a table stores about itself.

`hoodie.properties` and its keys, the table version, merge rule and key generator.
"""
