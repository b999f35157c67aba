"""What a process counts and measures, and the port on which it tells that."""
