"""The engine: standard library only, bundled into the hook."""
