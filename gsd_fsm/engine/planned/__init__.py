"""Loops that follow a plan: execute its tasks, verify it, commit and tag the work."""
