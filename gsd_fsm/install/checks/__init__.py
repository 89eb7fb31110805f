"""Check an installation: its settings, its hook and their environment."""
