"""ultijobs, for people at a terminal."""
