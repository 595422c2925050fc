"""Upgrade and downgrade: a table gets another version, after a plan, and only by an explicit call."""
