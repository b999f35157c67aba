"""The forms of `ultijobs backfill`: starting, pending, the ledger."""
