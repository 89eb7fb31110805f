"""The use cases of gsd-fsm: typed, without a terminal, shared by the CLI and by Python callers."""
