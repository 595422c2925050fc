"""Recovery that a user starts: rollbacks, savepoints, restores."""
