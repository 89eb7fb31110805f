"""The hook: signals of an agent's client in, decisions out."""
