"""Upgrade and downgrade: a table becomes one of another version, after a plan, and only when asked."""
