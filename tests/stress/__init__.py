"""Many writer processes on one table, which are killed and stopped at random; see `run.py`."""
