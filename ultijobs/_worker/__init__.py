"""The process that claims, runs, renews and settles."""
