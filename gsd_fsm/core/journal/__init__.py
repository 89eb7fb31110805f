"""The journal on disk: verified, locked, appended to, cached and repaired."""
