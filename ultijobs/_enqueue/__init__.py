"""From a handle and an input to a stored row: validation, the caller's transaction, sync callers."""
