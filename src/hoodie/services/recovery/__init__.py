"""Recovery that a user starts: roll back a pending instant."""
