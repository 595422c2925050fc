"""The record index (RFC-08): the location of every key, in file groups of HFiles, committed with the data."""
