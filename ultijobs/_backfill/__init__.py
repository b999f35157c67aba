"""One pass of a backfill: its gate, its pages at their pace, the mark after each, and the count at the end."""
