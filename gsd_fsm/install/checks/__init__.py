"""Check an installation: what is registered, what runs, and what surrounds it."""
