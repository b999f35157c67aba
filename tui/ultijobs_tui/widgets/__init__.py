"""Widgets that know lines and rows, not jobs."""
