"""Durable background jobs for Python on the Postgres you already have."""
