"""jittok's benchmarks for asv."""
