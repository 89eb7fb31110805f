"""The end of a phase: its summary, what the project's own files say of it, and the last report."""
