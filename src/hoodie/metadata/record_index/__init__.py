"""The metadata partition `record_index`: its buckets, the state of them at an instant, and look-ups in one bucket."""
