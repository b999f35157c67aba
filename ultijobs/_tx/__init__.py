"""A caller's own transaction: what kind it is, and how a statement of ours is run in it. Imports no library itself."""
