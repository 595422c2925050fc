"""Reads, one module for each kind of read: plan the read, then execute the plan in this process or by Spark."""
