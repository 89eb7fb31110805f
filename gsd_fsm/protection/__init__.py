"""What a check depends on: find it, and tell whether it changed."""
