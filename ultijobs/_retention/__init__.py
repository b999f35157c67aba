"""Retention above the drivers: whose times hold, and how a sweep goes on without being in anybody's way."""
