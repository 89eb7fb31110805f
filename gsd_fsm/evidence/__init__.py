"""Run checks and interpret their results."""
