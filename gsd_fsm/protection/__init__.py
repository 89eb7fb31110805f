"""Find what a check depends on, and whether it changed."""
