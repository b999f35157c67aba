"""One claimed job, run to one outcome."""
